# Shared by the tests beside it: sourced, not run.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
failures=0

# fail MESSAGE: records a failure; finish reports them all.
fail() {
  echo "FAIL: $*"
  failures=$((failures + 1))
}

finish() {
  echo "$failures failures"
  [ "$failures" = 0 ]
}

# A folder that is removed at the end.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Scripts are executable and parse; bad arguments are refused; presets parse and are all there.
source "$(dirname "$0")/common.sh"
cmake=$1

for script in setup run test lint package check-sources check-headers; do
  [ -x "$source_dir/scripts/$script" ] || fail "scripts/$script is not executable"
  bash -n "$source_dir/scripts/$script" || fail "scripts/$script does not parse"
done
[ -x "$source_dir/.ci/run" ] || fail ".ci/run is not executable"
bash -n "$source_dir/.ci/run" || fail ".ci/run does not parse"

grep -qE 'kernels build .*--strict' "$source_dir/.ci/run" || fail ".ci/run lets shipped kernels spill"
help=$("$source_dir/scripts/package" --help) || fail "scripts/package --help fails"
grep -qF "usage: scripts/package DIR" <<<"$help" || fail "scripts/package --help: $help"

for call in "setup --nonsense" "lint --nonsense" "test nonsense" "package" "package --nonsense"; do
  # shellcheck disable=SC2086  # a command and its arguments
  if output=$("$source_dir/scripts/"$call 2>&1); then
    fail "scripts/$call was accepted"
  elif ! grep -qE '^error: (unknown|usage)' <<<"$output"; then
    fail "scripts/$call: no clear message: $output"
  fi
done

presets=$(cd "$source_dir" && "$cmake" --list-presets 2>&1) || fail "cmake --list-presets: $presets"
for preset in release dev ci; do
  grep -qF "\"$preset\"" <<<"$presets" || fail "no preset named $preset"
done
finish

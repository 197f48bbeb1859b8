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

# Set-up on a system without the browser: everything else is installed, and it says what is left out.
stubs=$scratch/stubs
mkdir "$stubs"
for tool in dpkg-query apt-get apt-cache sudo; do
  cat >"$stubs/$tool" <<'END'
#!/usr/bin/env bash
case $(basename "$0") in
  dpkg-query) printf '%s installed\n' g++ cmake ninja-build libfmt-dev nlohmann-json3-dev libcli11-dev sqlite3 \
    libboost-context-dev nettle-dev libgtest-dev libbenchmark-dev libjs-chart.js python3-yaml ;;
  apt-get) echo "$*" >>"${0%/*}/calls" ;;
  apt-cache) [ "$2" = chromium ] && echo "  Candidate: (none)" || echo "  Candidate: 1.0" ;;
  sudo) "$@" ;;
esac
END
  chmod +x "$stubs/$tool"
done
output=$(PATH="$stubs:$PATH" "$source_dir/scripts/setup" --readers 2>&1) || fail "scripts/setup --readers: $output"
grep -qF "there is no package chromium here" <<<"$output" || fail "scripts/setup --readers does not say what is missing: $output"
grep -qE 'install .* libbenchmark-tools python3-scipy$' "$stubs/calls" || fail "scripts/setup --readers: $(cat "$stubs/calls")"
rm "$stubs/calls"
PATH="$stubs:$PATH" "$source_dir/scripts/setup" >/dev/null 2>&1 || fail "scripts/setup fails where everything is there"
[ ! -e "$stubs/calls" ] || fail "scripts/setup installs where everything is there"

# Long steps show signs of life where no terminal shows their output, and their status is theirs.
logged_in_pipe() { bash -c 'source "$0/scripts/common.sh"; sign_interval=1; log=$1; shift; logged "$log" "$@"' "$source_dir" "$scratch/log" "$@" 2>&1; }
output=$(logged_in_pipe bash -c 'echo "[3/9] compiling"; sleep 2.5') || fail "logged loses the status"
grep -qE '^ +[12] s: \[3/9\] compiling$' <<<"$output" || fail "logged shows no sign of life: $output"
started=$SECONDS
status=0
output=$(logged_in_pipe bash -c 'echo bad; exit 7') || status=$?
[ "$status" = 7 ] && [ -z "$output" ] && [ "$(<"$scratch/log")" = bad ] || fail "logged: status $status, output '$output'"
[ $((SECONDS - started)) -lt 2 ] || fail "logged keeps its caller waiting"

presets=$(cd "$source_dir" && "$cmake" --list-presets 2>&1) || fail "cmake --list-presets: $presets"
for preset in release dev ci; do
  grep -qF "\"$preset\"" <<<"$presets" || fail "no preset named $preset"
done
finish

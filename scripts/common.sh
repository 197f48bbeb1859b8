# Shared by the scripts beside it: sourced, not run.
# Messages for people go to stderr, so that stdout carries only what the called program writes.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s\n' "$*" >&2; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

jobs() { nproc 2>/dev/null || echo 2; }

# logged LOG COMMAND...: all output goes to LOG; a line on stderr every sign_interval seconds says how far it is.
sign_interval=15
logged() {
  local log=$1 status=0 started=$SECONDS watch
  shift
  : >"$log"
  (
    # What waits must not keep a caller's pipe or lock open, nor go on without this script.
    while sleep "$sign_interval" >/dev/null 2>&1 9>&- && kill -0 $$ 2>/dev/null; do
      say "  $((SECONDS - started)) s: $(tail -n 1 "$log" | tr '\r' '\n' | tail -n 1 | cut -c 1-120)"
    done
  ) &
  watch=$!
  "$@" >"$log" 2>&1 || status=$?
  kill "$watch" 2>/dev/null || true
  wait "$watch" 2>/dev/null || true
  return "$status"
}

# quietly LOG COMMAND...: a terminal sees the command's output; otherwise it goes to LOG, with a sign of
# life from time to time, and only a failure shows its last lines.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  if [ -t 2 ]; then
    "$@" >&2
  elif ! logged "$log" "$@"; then
    tail -n 40 "$log" >&2
    say "the whole output is in $log"
    return 1
  fi
}

# configure PRESET: configures build/PRESET once; ninja repeats it by itself when a CMake file changes.
configure() {
  if [ ! -f "$root/build/$1/build.ninja" ]; then
    say "configuring build/$1"
    (cd "$root" && quietly "build/$1/configure.log" cmake --preset "$1") || die "cmake --preset $1 failed"
  fi
}

# build PRESET TARGET...
build() {
  local preset=$1 started=$SECONDS
  shift
  configure "$preset"
  say "building $* in build/$preset on $(jobs) cores"
  (cd "$root" && quietly "build/$preset/build.log" ninja -C "build/$preset" -j "$(jobs)" "$@") ||
    die "the build in build/$preset failed"
  say "built in $((SECONDS - started)) s"
}

# Tracked files where git is at hand, else every file outside build/.
project_files() {
  if command -v git >/dev/null && git -C "$root" rev-parse >/dev/null 2>&1; then
    git -C "$root" ls-files -co --exclude-standard
  else
    (cd "$root" && find . -path ./build -prune -o -path ./.git -prune -o -type f -printf '%P\n')
  fi | LC_ALL=C sort
}

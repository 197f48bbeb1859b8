# The project obeys its own rules, and scripts/check-sources finds a planted breach of each.
source "$(dirname "$0")/common.sh"

"$source_dir/scripts/check-sources" || fail "scripts/check-sources found breaches"

# planted FILE CONTENT EXPECTED: a tree with just this file is refused with this message.
planted() {
  local file=$1 content=$2 expected=$3 tree=$scratch/tree output
  rm -rf "$tree"
  mkdir -p "$tree/scripts" "$tree/$(dirname "$file")"
  cp "$source_dir"/scripts/{common.sh,check-sources} "$tree/scripts/"
  printf '%b' "$content" >"$tree/$file"
  if output=$("$tree/scripts/check-sources" 2>&1); then
    fail "$file with '$content' was accepted"
  elif ! grep -qF -- "$expected" <<<"$output"; then
    fail "$file with '$content': expected '$expected', got: $output"
  fi
}

once='#pragma once\n'
planted src/core/a.cpp 'void f() { printf("x"); }\n' 'only src/cli and plugins print'
planted src/core/a.cpp 'auto v = std::getenv("X");\n' 'only src/cli and plugins print'
planted tuning/a.cpp 'void f() { exit(1); }\n' 'only src/cli and plugins print'
planted kernels/x/a.h "${once}int i = threadIdx.x;\n" 'CUDA words'
planted kernels/x/a.h "${once}void f() { __syncthreads(); }\n" 'CUDA words'
planted kernels/x/a.h "${once}#include <cmath>\n" 'kernels include only kernels/'
planted src/core/a.cpp '// TODO''\nint TODO = 1;\n' 'unfinished marks'
planted src/core/a.h 'int i;\n' 'no #pragma once'
planted docs/a.md "see /ho""me/me/file\n" 'paths of one machine'
planted src/core/a.cpp "$(printf 'int x;\\n%.0s' $(seq 501))" 'files over 500 lines'

# What only looks like a breach is accepted.
tree=$scratch/good
mkdir -p "$tree/scripts" "$tree/src/core" "$tree/src/cli" "$tree/kernels/platform"
cp "$source_dir"/scripts/{common.sh,check-sources} "$tree/scripts/"
printf 'void f(S& s) { s.exit(); _exit(0); } // printf("x")\n' >"$tree/src/core/a.cpp"
printf 'void f() { printf("x"); }\n' >"$tree/src/cli/a.cpp"
printf '#pragma once\nint i = threadIdx.x;\n' >"$tree/kernels/platform/device.h"
"$tree/scripts/check-sources" || fail "a clean tree was refused"
finish

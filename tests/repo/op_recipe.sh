# The code of docs/adding-an-op.md compiles as it stands. Blocks follow a line **PATH**.
# With a second argument the files are written into that tree, and the name is added to its op list.
source "$(dirname "$0")/common.sh"
compiler=$1 tree=${2:-$scratch}

awk -v tree="$tree" '
  /^\*\*[^*]+\*\*$/ { path = substr($0, 3, length($0) - 4); next }
  /^```/ && inside  { inside = 0; path = ""; close(file); next }
  /^```/ && path    { inside = 1; file = tree "/" path; dir = file; sub(/\/[^\/]*$/, "", dir); system("mkdir -p \"" dir "\"")
                      printf "" > file; next }
  inside            { print > file }' "$source_dir/docs/adding-an-op.md"
expected="kernels/scale_add/args.h kernels/scale_add/scale_add.h kernels/scale_add/instances.txt src/ops/scale_add.h
src/ops/scale_add.cpp src/reference/scale_add.cpp"
for file in $expected; do
  [ -s "$tree/$file" ] || fail "the page has no block for $file"
done
if [ $# -gt 1 ]; then
  echo scale_add >>"$tree/src/ops/op_list.txt"
  finish
  exit
fi

printf '#include "scale_add/scale_add.h"\nvoid (*kernel)(cudabk::ScaleAddArgs) = &cudabk::scale_add<256>;\n' \
  >"$scratch/kernel.cpp"
for unit in src/ops/scale_add.cpp src/reference/scale_add.cpp kernel.cpp; do
  "$compiler" -std=c++20 -fsyntax-only -Wall -Wextra -Wno-missing-field-initializers -Werror -I "$scratch/src" \
    -I "$scratch/kernels" -I "$source_dir/src" -I "$source_dir/kernels" "$scratch/$unit" || fail "$unit does not compile"
done
finish

# An installed build starts from another folder, and so does a copy of bin/ and lib/ of the build folder; the libraries
# that were carried along are the ones in use.
source "$(dirname "$0")/common.sh"
cmake=$1 build=$2

"$cmake" --install "$build" --prefix "$scratch/first" >/dev/null || fail "cmake --install failed"
mkdir "$scratch/second words"
mv "$scratch/first" "$scratch/second words/installed"
mkdir "$scratch/second words/copied"
cp -r "$build/bin" "$build/lib" "$scratch/second words/copied/"
cd /
for tree in "$scratch/second words/installed" "$scratch/second words/copied"; do
  version=$(env -i HOME="$scratch" "$tree/bin/cudabk" --version) || fail "$tree/bin/cudabk does not start"
  [[ $version == *cudabk* ]] || fail "unexpected version text '$version'"
  env -i HOME="$scratch" "$tree/bin/cudabk" list types >/dev/null || fail "'list types' fails in $tree"
  libraries=$(ldd "$tree/bin/cudabk")
  for library in "$tree"/lib/*.so*; do
    name=$(basename "$library")
    line=$(grep -F "$name " <<<"$libraries" || true)
    [ -z "$line" ] || [[ $line == *"$tree/"* ]] || fail "$name is not taken from $tree/lib: $line"
  done
  ! grep -qF "not found" <<<"$libraries" || fail "missing libraries: $libraries"
done
finish

# The licence and the attribution of the format tables are in place.
source "$(dirname "$0")/common.sh"

for line in "MIT License" "The cudabk authors" "Copyright (c) 2023-2026 The ggml authors" "format tables"; do
  grep -qF "$line" "$source_dir/LICENSE" || fail "LICENSE does not say '$line'"
done
finish

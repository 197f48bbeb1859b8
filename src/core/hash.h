// SHA-256 (from libnettle) for code hashes, cache keys and result digests.
#pragma once

#include <string>
#include <string_view>

namespace cudabk {

std::string sha256_hex(std::string_view data);  // 64 lower-case hexadecimal digits

}  // namespace cudabk

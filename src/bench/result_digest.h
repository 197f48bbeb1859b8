// The digest that results and verdicts carry, over what a document says and not over how it is laid out.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cudabk {

// "sha256:" + hash of all members of `document` but "digest": names in ascending order, no blanks, whole numbers as
// digits, other numbers as the shortest decimal that reads back as the same double. So a file that was read and written
// again by another tool keeps its digest, and one with a changed value does not.
// `document` must not nest deeper than kMaxJsonDepth.
std::string digest_of_document(const nlohmann::ordered_json& document);

}  // namespace cudabk

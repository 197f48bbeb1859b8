// Profiles: dispatch tables on disk (JSON, schema cudabk-profile/1) and how one is found for a device.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "dispatch/problem.h"

namespace cudabk {

struct Profile {
  static constexpr std::string_view kSchema = "cudabk-profile/1";

  struct DeviceKey {
    std::string name, arch;
    int sm_count = 0;
    int64_t l2_bytes = 0;
  } device;
  std::map<std::string, std::string> made_by;                  // cudabk, driver, cuda, date
  std::map<std::string, std::map<std::string, Table>> tables;  // op -> key -> rules
  std::map<std::string, std::string> layouts;                  // weight type -> "raw" or "frag"; raw where absent
  std::map<std::string, int64_t> constants;                    // every other threshold
  std::map<std::string, std::string> evidence;                 // free text and numbers, kept verbatim
  std::string source;                                          // path, or "built-in sm_90a"
  std::string why;                                             // why this one is in use
  std::vector<std::string> warnings;                           // stale rules, dropped rules

  std::string_view layout_of(std::string_view type) const;  // "raw" or "frag"
  const Table& table(const Problem& problem) const;         // empty table when there is none
};

// What profiles are checked against: the ops' families. Where `dims` or `keys` names an op, the dimensions of its rules
// and the keys of its tables are checked too ("*" is always a key).
struct FamilySet {
  std::map<std::string, std::span<const Family>> by_op;
  std::map<std::string, std::vector<std::string>> dims;
  std::map<std::string, std::vector<std::string>> keys;
};

// kStrict: files named by the user; anything unknown is an error. kLenient: files that were found; a rule this build
// cannot read is dropped with a warning, the others stay.
enum class ParseMode { kStrict, kLenient };

// Parses and checks. kInvalid with file, JSON path and reason for: bad JSON, wrong schema, unknown op, family or
// parameter, an unknown layout or type of one, a value outside the search space, an interval with low > high, a
// code that is no hash, wrong types.
Result<Profile> parse_profile(std::string_view json, std::string source, const FamilySet& families,
                              ParseMode mode = ParseMode::kStrict);
std::string profile_to_json(const Profile& profile);

// --profile FILE / CUDABK_PROFILE -> this GPU by name -> this architecture -> nearest lower one -> built-in defaults.
// An explicit file made for another GPU is refused (kInvalid). `user_dir` holds files written by `tune` (may be empty).
Result<Profile> find_profile(const DeviceInfo& device, const std::filesystem::path& explicit_file,
                             const std::filesystem::path& user_dir, const FamilySet& families);

// "" when the profile was made for `device`, else what differs. A profile named "*" is for every GPU of its
// architecture.
std::string device_mismatch(const Profile::DeviceKey& made_for, const DeviceInfo& device);

// Values of every constant where no profile names it.
const std::map<std::string, int64_t>& built_in_constants();
// 90 for "sm_90a"; 0 for anything that is not an architecture name.
int arch_number(std::string_view arch);

// File name for a device's profile: "nvidia-h200-sm_90a-132.json".
std::string profile_file_name(const DeviceInfo& device);

// The files of profiles/, embedded at build time: name and content.
struct EmbeddedProfile {
  std::string_view name;
  std::string_view json;
};
std::span<const EmbeddedProfile> embedded_profiles();

// ---- work on profiles (profile_edit.cpp) ----

// Hash of the variant a rule names as this build makes it; "" where it cannot be told.
using CodeHashOf = std::function<std::string(const std::string& op, const std::string& key, const Rule& rule)>;
// Marks rules whose recorded hash differs from the present one and warns of each. Returns how many are stale.
int mark_stale(Profile& profile, const CodeHashOf& hash_of);

// `changes` over `base`: tables (whole, by op and key), layouts, constants and evidence of `changes` win. kInvalid when
// the two were made for different devices.
Result<Profile> merge_profiles(const Profile& base, const Profile& changes);

// Merges `changes` into the file under a lock and writes it atomically, so that two tuners may share one file. A file
// that does not exist yet starts as `initial`. One that cannot be read as a profile is set aside as FILE.corrupt
// (returned as a warning); one made for another device is refused.
Result<Profile> update_profile_file(const std::filesystem::path& path, const Profile& initial, const Profile& changes,
                                    const FamilySet& families);

// Drops rules that can never win: no family or configuration of that name, or an earlier rule with the same variant
// covers theirs. Returns one line per dropped rule.
std::vector<std::string> prune_profile(Profile& profile, const FamilySet& families);

// One line per difference: rules, layouts, constants, device.
std::vector<std::string> diff_profiles(const Profile& a, const Profile& b);

// "n 1..8, k 4096..: mmvq warps=4 rows=2"
std::string rule_text(const Rule& rule);

}  // namespace cudabk

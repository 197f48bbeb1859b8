// Profiles: dispatch tables on disk (JSON, schema cudabk-profile/1) and how one is found for a device.
#pragma once

#include <filesystem>
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
  std::map<std::string, std::string> made_by;                     // cudabk, driver, cuda, date
  std::map<std::string, std::map<std::string, Table>> tables;     // op -> key -> rules
  std::map<std::string, int64_t> constants;                       // every other threshold
  std::map<std::string, std::string> evidence;                    // free text and numbers, kept verbatim
  std::string source;                                             // path, or "built-in sm_90a"
  std::string why;                                                // why this one is in use
  std::vector<std::string> warnings;                              // stale rules, dropped rules

  const Table& table(const Problem& problem) const;               // empty table when there is none
};

// What profiles are checked against: the ops' families.
struct FamilySet {
  std::map<std::string, std::span<const Family>> by_op;
};

// Parses and checks. kInvalid with file, JSON path and reason for: bad JSON, wrong schema, unknown op, family or
// parameter, a value outside the search space, an interval with low > high, wrong types.
Result<Profile> parse_profile(std::string_view json, std::string source, const FamilySet& families);
std::string profile_to_json(const Profile& profile);

// --profile FILE / CUDABK_PROFILE -> this GPU by name -> this architecture -> nearest lower one -> built-in defaults.
// An explicit file made for another GPU is refused (kInvalid). `user_dir` holds files written by `tune` (may be empty).
Result<Profile> find_profile(const DeviceInfo& device, const std::filesystem::path& explicit_file,
                             const std::filesystem::path& user_dir, const FamilySet& families);

// File name for a device's profile: "nvidia-h200-sm_90a-132.json".
std::string profile_file_name(const DeviceInfo& device);

// The files of profiles/, embedded at build time: name and content.
struct EmbeddedProfile {
  std::string_view name;
  std::string_view json;
};
std::span<const EmbeddedProfile> embedded_profiles();

}  // namespace cudabk

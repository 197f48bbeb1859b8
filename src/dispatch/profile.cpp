// Profiles: finding the one for a device.
#include "dispatch/profile.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "core/file.h"
#include "core/hash.h"

namespace cudabk {

const Table& Profile::table(const Problem& problem) const {
  static const Table kEmpty;
  const auto op = tables.find(problem.op);
  if (op == tables.end()) {
    return kEmpty;
  }
  auto it = op->second.find(problem.key);
  if (it == op->second.end()) {
    it = op->second.find("*");
  }
  return it == op->second.end() ? kEmpty : it->second;
}

std::string_view Profile::layout_of(std::string_view type) const {
  const auto it = layouts.find(std::string(type));
  return it == layouts.end() ? std::string_view("raw") : std::string_view(it->second);
}

const std::map<std::string, int64_t>& built_in_constants() {
  static const std::map<std::string, int64_t> kConstants = {
      {"offload_min_batch", 32},     // columns from which an op with host weights moves to the GPU
      {"peer_copy_max_batch", 128},  // columns up to which split results travel peer to peer
      {"split_column_stride", 128},  // columns per step of a product over split weights
      {"graph_max_updates", 4},      // consecutive re-instantiations before a graph is given up
  };
  return kConstants;
}

int arch_number(std::string_view arch) {
  if (!arch.starts_with("sm_")) {
    return 0;
  }
  int number = 0;
  const auto [end, error] = std::from_chars(arch.data() + 3, arch.data() + arch.size(), number);
  const std::string_view suffix(end, static_cast<size_t>(arch.data() + arch.size() - end));
  const bool legal = error == std::errc{} && number > 0 && (suffix.empty() || suffix == "a" || suffix == "f");
  return legal ? number : 0;
}

std::string profile_file_name(const DeviceInfo& device) {
  std::string slug;
  bool lossy = false;
  for (const char c : device.name) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    lossy = lossy || !(plain || c == ' ');
    if (plain) {
      slug += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  while (!slug.empty() && slug.back() == '-') {
    slug.pop_back();
  }
  if (lossy || slug.empty()) {  // two names must not share a file
    slug = fmt::format("{}{}{}", slug, slug.empty() ? "" : "-", sha256_hex(device.name).substr(0, 8));
  }
  return fmt::format("{}-{}-{}.json", slug, device.arch, device.sm_count);
}

std::string device_mismatch(const Profile::DeviceKey& made_for, const DeviceInfo& device) {
  if (made_for.arch != device.arch) {
    return fmt::format("made for {}, this device is {}", made_for.arch, device.arch);
  }
  if (made_for.name == "*") {
    return "";
  }
  if (made_for.name != device.name) {
    return fmt::format("made for \"{}\", this device is \"{}\"", made_for.name, device.name);
  }
  if (made_for.sm_count != device.sm_count) {
    return fmt::format("made for {} multiprocessors, this device has {}", made_for.sm_count, device.sm_count);
  }
  return "";
}

namespace {

// A found file: parsed leniently. Unreadable, unparsable or for another device -> nothing, with the reason in `notes`.
std::optional<Profile> accept(std::string_view json, const std::string& source, const DeviceInfo* device,
                              const FamilySet& families, std::vector<std::string>& notes) {
  Result<Profile> profile = parse_profile(json, source, families, ParseMode::kLenient);
  if (!profile.ok()) {
    notes.push_back(profile.error().message + " (file ignored)");
    return std::nullopt;
  }
  if (device != nullptr) {
    if (const std::string why = device_mismatch(profile->device, *device); !why.empty()) {
      notes.push_back(fmt::format("{}: {} (file ignored)", source, why));
      return std::nullopt;
    }
  }
  return std::move(profile).value();
}

std::optional<Profile> from_user_dir(const std::filesystem::path& dir, const std::string& name,
                                     const DeviceInfo& device, const FamilySet& families,
                                     std::vector<std::string>& notes) {
  std::error_code error;
  if (dir.empty() || !std::filesystem::exists(dir / name, error)) {
    return std::nullopt;
  }
  const Result<std::string> text = read_file(dir / name);
  if (!text.ok()) {
    notes.push_back(text.error().message + " (file ignored)");
    return std::nullopt;
  }
  return accept(*text, (dir / name).string(), &device, families, notes);
}

const EmbeddedProfile* embedded(std::string_view name) {
  for (const EmbeddedProfile& p : embedded_profiles()) {
    if (p.name == name) {
      return &p;
    }
  }
  return nullptr;
}

// The embedded architecture file with the highest number below `number`.
const EmbeddedProfile* nearest_lower(int number) {
  const EmbeddedProfile* best = nullptr;
  int best_number = 0;
  for (const EmbeddedProfile& p : embedded_profiles()) {
    const std::string_view stem = p.name.substr(0, p.name.rfind(".json"));
    const int n = arch_number(stem);
    if (n > best_number && n < number) {
      best = &p;
      best_number = n;
    }
  }
  return best;
}

Result<Profile> load_explicit(const DeviceInfo& device, const std::filesystem::path& file, const FamilySet& families) {
  CUDABK_ASSIGN(const std::string text, read_file(file));
  CUDABK_ASSIGN(Profile profile, parse_profile(text, file.string(), families, ParseMode::kStrict));
  if (const std::string why = device_mismatch(profile.device, device); !why.empty()) {
    return invalid(fmt::format("{}: /device: {}", file.string(), why));
  }
  profile.why = "named by --profile or CUDABK_PROFILE";
  return profile;
}

Profile search(const DeviceInfo& device, const std::filesystem::path& user_dir, const FamilySet& families) {
  std::vector<std::string> notes;
  const auto finish = [&](Profile profile, std::string why) {
    profile.why = std::move(why);
    profile.warnings.insert(profile.warnings.begin(), notes.begin(), notes.end());
    return profile;
  };
  const std::string own = profile_file_name(device);
  if (auto p = from_user_dir(user_dir, own, device, families, notes)) {
    return finish(std::move(*p), "tuned on this device");
  }
  if (const EmbeddedProfile* e = embedded(own)) {
    if (auto p = accept(e->json, fmt::format("built-in {}", own), &device, families, notes)) {
      return finish(std::move(*p), "built in for this device");
    }
  }
  const std::string by_arch = device.arch + ".json";
  if (auto p = from_user_dir(user_dir, by_arch, device, families, notes)) {
    return finish(std::move(*p), "for this architecture");
  }
  if (const EmbeddedProfile* e = embedded(by_arch)) {
    if (auto p = accept(e->json, "built-in " + device.arch, nullptr, families, notes)) {
      return finish(std::move(*p),
                    fmt::format("built-in defaults of this architecture; no profile of {}", device.name));
    }
  }
  if (const EmbeddedProfile* e = nearest_lower(arch_number(device.arch))) {
    const std::string stem(e->name.substr(0, e->name.rfind(".json")));
    if (auto p = accept(e->json, "built-in " + stem, nullptr, families, notes)) {
      return finish(std::move(*p), fmt::format("nearest lower architecture; none for {}", device.arch));
    }
  }
  Profile none;
  none.device = {"*", device.arch, 0, 0};
  none.constants = built_in_constants();
  none.source = "built-in defaults";
  return finish(std::move(none), fmt::format("no profile for {} or any lower architecture", device.arch));
}

}  // namespace

Result<Profile> find_profile(const DeviceInfo& device, const std::filesystem::path& explicit_file,
                             const std::filesystem::path& user_dir, const FamilySet& families) {
  Profile profile;
  if (!explicit_file.empty()) {
    CUDABK_ASSIGN(profile, load_explicit(device, explicit_file, families));
  } else {
    profile = search(device, user_dir, families);
  }
  const auto driver = profile.made_by.find("driver");
  if (driver != profile.made_by.end() && !device.driver_text.empty() && driver->second != device.driver_text) {
    profile.warnings.push_back(fmt::format("{}: measured with driver {}, this is {}; run `cudabk tune` to re-check",
                                           profile.source, driver->second, device.driver_text));
  }
  return profile;
}

}  // namespace cudabk

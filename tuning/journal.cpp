#include "tuning/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/file.h"

namespace cudabk {
namespace {

using Json = nlohmann::ordered_json;
using Stage = JournalEntry::Stage;

const char* stage_name(Stage stage) {
  switch (stage) {
    case Stage::kScreen:
      return "screen";
    case Stage::kConfirm:
      return "confirm";
    case Stage::kQuarantine:
      return "quarantine";
  }
  return "screen";
}

Result<Stage> parse_stage(const std::string& name) {
  for (const Stage stage : {Stage::kScreen, Stage::kConfirm, Stage::kQuarantine}) {
    if (name == stage_name(stage)) {
      return stage;
    }
  }
  return invalid(fmt::format("unknown stage \"{}\"", name));
}

Json identity_json(const JournalEntry& e) {
  Json shape = Json::object();
  for (const auto& [name, value] : e.shape) {
    shape[name] = value;
  }
  return {{"device", e.device}, {"arch", e.arch}, {"sm_count", e.sm_count},    {"op", e.op},
          {"key", e.key},       {"shape", shape}, {"use", e.candidate.family}, {"config", Json(e.candidate.config)},
          {"code", e.code}};
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string JournalEntry::identity() const {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", device, arch, sm_count, op, key, shape_label(shape),
                     candidate.text(), code, stage_name(stage), against);
}

std::string journal_line(const JournalEntry& e) {
  Json json = identity_json(e);
  json["stage"] = stage_name(e.stage);
  if (e.stage == Stage::kQuarantine) {
    json["reason"] = e.reason;
    return dump(json);
  }
  json["ns"] = e.ns;
  json["low_ns"] = e.low_ns;
  json["high_ns"] = e.high_ns;
  json["samples"] = e.samples;
  if (e.stage == Stage::kConfirm) {
    json["against"] = e.against;
    json["ratio"] = e.ratio;
    json["ratio_low"] = e.ratio_low;
    json["ratio_high"] = e.ratio_high;
  }
  return dump(json);
}

Result<JournalEntry> parse_journal_line(std::string_view line) {
  try {
    const Json json = Json::parse(line);
    JournalEntry e;
    CUDABK_ASSIGN(e.stage, parse_stage(json.at("stage").get<std::string>()));
    e.device = json.at("device").get<std::string>();
    e.arch = json.at("arch").get<std::string>();
    e.sm_count = json.at("sm_count").get<int>();
    e.op = json.at("op").get<std::string>();
    e.key = json.at("key").get<std::string>();
    for (const auto& [name, value] : json.at("shape").items()) {
      e.shape.emplace_back(name, value.get<int64_t>());
    }
    e.candidate.family = json.at("use").get<std::string>();
    e.candidate.config = json.at("config").get<Config>();
    e.code = json.at("code").get<std::string>();
    if (e.stage == Stage::kQuarantine) {
      e.reason = json.at("reason").get<std::string>();
      return e;
    }
    e.ns = json.at("ns").get<double>();
    e.low_ns = json.at("low_ns").get<double>();
    e.high_ns = json.at("high_ns").get<double>();
    e.samples = json.at("samples").get<int64_t>();
    if (e.stage == Stage::kConfirm) {
      e.against = json.at("against").get<std::string>();
      e.ratio = json.at("ratio").get<double>();
      e.ratio_low = json.at("ratio_low").get<double>();
      e.ratio_high = json.at("ratio_high").get<double>();
    }
    return e;
  } catch (const Json::exception& error) {
    return invalid(error.what());
  }
}

namespace {

// Whether `line` is what a kill may leave of an entry.
bool begins_an_entry(std::string_view line) {
  constexpr std::string_view kBegin = "{\"device\":\"";
  return line.substr(0, kBegin.size()) == kBegin.substr(0, line.size());
}

}  // namespace

Result<Journal> Journal::open(const std::filesystem::path& path, bool fresh) {
  Journal journal;
  std::error_code error;
  if (path.has_parent_path()) {
    std::filesystem::create_directories(path.parent_path(), error);
  }
  bool cut_short = false, foreign = false;
  if (std::filesystem::exists(path, error)) {
    if (fresh) {
      std::filesystem::rename(path, path.string() + ".old", error);
    } else {
      CUDABK_ASSIGN(const std::string text, read_file(path));
      cut_short = !text.empty() && text.back() != '\n';
      for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = std::string_view(text).substr(at, end - at);
        at = end + 1;
        if (line.empty() || line.starts_with("{\"begin\"")) {
          continue;
        }
        Result<JournalEntry> entry = parse_journal_line(line);
        if (!entry.ok()) {
          ++journal.skipped_;
          foreign = foreign || !begins_an_entry(line);
          continue;
        }
        entry->earlier = true;
        std::string identity = entry->identity();
        journal.entries_[std::move(identity)] = std::move(entry).value();
      }
    }
  }
  if (foreign && journal.entries_.empty()) {  // a slip: a profile, a result
    return invalid(fmt::format("{}: holds something else than timings of tune; name another journal", path.string()));
  }
  journal.fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (journal.fd_ < 0) {
    return invalid(fmt::format("{}: cannot be opened for appending: {}", path.string(), std::strerror(errno)));
  }
  if (cut_short) {  // the next entry must not continue a broken line
    CUDABK_TRY(journal.append(""));
  }
  return journal;
}

Journal::Journal(Journal&& other) noexcept
    : entries_(std::move(other.entries_)), skipped_(other.skipped_), fd_(std::exchange(other.fd_, -1)) {}

Journal& Journal::operator=(Journal&& other) noexcept {
  std::swap(entries_, other.entries_);
  std::swap(skipped_, other.skipped_);
  std::swap(fd_, other.fd_);
  return *this;
}

Journal::~Journal() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

const JournalEntry* Journal::find(const std::string& identity) const {
  const auto it = entries_.find(identity);
  return it == entries_.end() ? nullptr : &it->second;
}

Status Journal::append(const std::string& line) {
  if (fd_ < 0) {
    return success();
  }
  const std::string text = line + "\n";
  ssize_t written = -1;
  do {
    written = ::write(fd_, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(text.size())) {
    return internal_error(fmt::format("the tuning journal cannot be written: {}", std::strerror(errno)));
  }
  return success();
}

Status Journal::add(JournalEntry entry) {
  CUDABK_TRY(append(journal_line(entry)));
  std::string identity = entry.identity();
  entries_[std::move(identity)] = std::move(entry);
  return success();
}

Status Journal::begin(const JournalEntry& entry) {
  Json json = {{"begin", identity_json(entry)}};
  return append(dump(json));
}

Result<JournalEntry> quarantine_last(const std::filesystem::path& path, const std::string& reason) {
  CUDABK_ASSIGN(std::string text, read_file(path));
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  const size_t start = text.rfind('\n');
  const std::string line = start == std::string::npos ? text : text.substr(start + 1);
  Error elsewhere{ErrorKind::kNothing, fmt::format("{}: no candidate was running", path.string())};
  if (!line.starts_with("{\"begin\"")) {
    return elsewhere;
  }
  try {
    Json json = Json::parse(line).at("begin");
    json["stage"] = stage_name(Stage::kQuarantine);
    json["reason"] = reason;
    CUDABK_ASSIGN(JournalEntry entry, parse_journal_line(json.dump()));
    CUDABK_ASSIGN(Journal journal, Journal::open(path, false));
    CUDABK_TRY(journal.add(entry));
    return entry;
  } catch (const Json::exception&) {
    return elsewhere;
  }
}

}  // namespace cudabk

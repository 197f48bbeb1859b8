#include "cli/parse_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace cudabk::cli {
namespace {

const CLI::App& deepest(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : deepest(*chosen.back());
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* a) { return !a->get_name().empty(); })) {
    names.push_back(sub->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional() && !option->get_group().empty()) {
      names.push_back(option->get_lnames().empty() ? "-" + option->get_snames().front()
                                                   : "--" + option->get_lnames().front());
    }
  }
  return names;
}

// Edits (insert, delete, replace) between two words.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string suggestion(const std::string& word, const std::vector<std::string>& names) {
  const auto best = std::min_element(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(word, a) < edit_distance(word, b);
  });
  return best != names.end() && edit_distance(word, *best) <= 2 ? fmt::format(" (did you mean {}?)", *best) : "";
}

std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : path_of(*parent) + " " + app.get_name();
}

std::string unexpected(const CLI::App& app, const std::string& word) {
  const CLI::App& at = deepest(app);
  if (word.size() > 1 && word[0] == '-') {
    const std::string flag = word.substr(0, word.find('='));
    const std::vector<std::string> options = option_names(at);
    constexpr size_t kShortList = 16;
    const std::string valid = options.size() > kShortList ? fmt::format("see {} --help", path_of(at))
                                                          : fmt::format("options: {}", fmt::join(options, ", "));
    return fmt::format("unknown option '{}' of '{}'{}; {}", flag, path_of(at), suggestion(flag, options), valid);
  }
  const std::vector<std::string> commands = command_names(at);
  if (commands.empty()) {
    return fmt::format("unexpected argument '{}' of '{}'; see {} --help", word, path_of(at), path_of(at));
  }
  return fmt::format("unknown command '{}'{}; commands: {}", word, suggestion(word, commands),
                     fmt::join(commands, ", "));
}

// "target (an op, its alias, or layer)", for all that are required and not there.
std::string missing_arguments(const CLI::App& app) {
  std::vector<std::string> missing;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_required() && option->count() == 0) {
      missing.push_back(fmt::format("{} ({})", option->get_name(), option->get_description()));
    }
  }
  return fmt::format("{}", fmt::join(missing, " and "));
}

}  // namespace

std::string describe_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining(true);
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) ||
      error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    if (!rest.empty()) {
      return unexpected(app, rest.front());
    }
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    const CLI::App& at = deepest(app);
    if (const std::vector<std::string> commands = command_names(at); !commands.empty()) {
      return fmt::format("'{}' needs a command; commands: {}", path_of(at), fmt::join(commands, ", "));
    }
    if (const std::string missing = missing_arguments(at); !missing.empty()) {
      return fmt::format("'{}' needs {}", path_of(at), missing);
    }
  }
  return error.what();
}

}  // namespace cudabk::cli

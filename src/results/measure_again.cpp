#include "results/measure_again.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <set>
#include <thread>

#include "core/file.h"
#include "core/units.h"
#include "results/case_match.h"
#include "results/gate.h"

namespace cudabk {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

constexpr size_t kMaxSuspects = 200;  // so many at once are no noise, and one filter has to name them

// The last line that says something.
std::string last_line(const fs::path& log) {
  const Result<std::string> text = read_file(log);
  if (!text.ok()) {
    return "";
  }
  const size_t end = text->find_last_not_of(" \r\n");
  if (end == std::string::npos) {
    return "";
  }
  const size_t begin = text->rfind('\n', end);
  return text->substr(begin == std::string::npos ? 0 : begin + 1,
                      end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

// In the child; only what is allowed between fork and exec. Reports errno through `failure` where exec fails.
[[noreturn]] void become_program(char* const* argv, const char* log, pid_t parent, int failure) {
  // Its own group: Ctrl-C reaches it once, from here, and not twice, which would end it without results.
  setpgid(0, 0);
  // Killed without a chance to say so, a gate must not leave a benchmark behind that disturbs the next one.
  prctl(PR_SET_PDEATHSIG, SIGINT);
  const int in = open("/dev/null", O_RDONLY), out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (getppid() == parent && in >= 0 && out >= 0) {
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execv(argv[0], argv);
  }
  const int error = errno;
  const ssize_t told = write(failure, &error, sizeof error);
  _exit(told == sizeof error ? 127 : 126);
}

Result<pid_t> start_program(const std::vector<std::string>& words, const fs::path& log) {
  std::vector<char*> argv;
  for (const std::string& word : words) {
    argv.push_back(const_cast<char*>(word.c_str()));  // NOLINT: exec does not write to it
  }
  argv.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return internal_error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    become_program(argv.data(), log.c_str(), parent, ends[1]);
  }
  int error = child < 0 ? errno : 0;
  close(ends[1]);
  if (child > 0 && read(ends[0], &error, sizeof error) == sizeof error) {  // else exec has closed its end
    waitpid(child, nullptr, 0);
  }
  close(ends[0]);
  return error == 0 ? Result<pid_t>(child)
                    : Result<pid_t>(invalid(fmt::format("cannot run {}: {}", words.front(), std::strerror(error))));
}

// Exit status; 128 + signal when one ended it. An interruption is handed on.
Result<int> run_program(const std::vector<std::string>& words, const fs::path& log,
                        const std::atomic<bool>* interrupted, const std::function<void()>& waiting) {
  constexpr std::chrono::milliseconds kPoll{10};
  constexpr std::chrono::seconds kTold{1};
  auto last_told = Clock::now();
  CUDABK_ASSIGN(const pid_t child, start_program(words, log));
  bool told = false;
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
    if (!told && interrupted != nullptr && *interrupted) {
      kill(child, SIGINT);
      told = true;
    }
    if (waiting && Clock::now() - last_told >= kTold) {
      last_told = Clock::now();
      waiting();
    }
    std::this_thread::sleep_for(kPoll);
  }
  if (ended < 0) {
    return internal_error(fmt::format("waiting for {}: {}", words.front(), std::strerror(errno)));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A status that `bench` cannot have had is that of another program, or of one that was not asked to measure.
ErrorKind kind_without_result(int status) {
  constexpr int kSignal = 128;
  return status > kSignal || status == kExitInternal || (status >= kExitUnusable && status <= kExitUnfit)
             ? kind_of_exit(status)
             : ErrorKind::kInvalid;
}

std::string why_no_result(const fs::path& binary, int status, const fs::path& log) {
  std::string line = last_line(log);
  if (line.rfind("error: ", 0) == 0) {
    line.erase(0, 7);
  }
  return fmt::format("{} bench ended with status {} and without a result: {}", binary.string(), status,
                     line.empty() ? "it said nothing" : line);
}

Error interrupted_while_measuring() { return {ErrorKind::kInterrupted, "interrupted while measuring"}; }

std::string regex_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += std::strchr("\\^$.|?*+()[]{}/", c) != nullptr ? std::string("\\") + c : std::string(1, c);
  }
  return out;
}

// Kernels with known code that differ between the rows of one case.
bool other_code(const MatchedCase& match) {
  if (match.baseline.empty() || match.candidate.empty()) {
    return false;
  }
  const auto& a = match.baseline.front()->breakdown;
  const auto& b = match.candidate.front()->breakdown;
  return !a.empty() && !b.empty() &&
         !std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const LaunchResult& x, const LaunchResult& y) {
           return x.code_hash == y.code_hash && x.kernel == y.kernel;
         });
}

bool has_case(const ResultFile& file, const std::set<std::string>& keys) {
  return std::any_of(file.run.cases.begin(), file.run.cases.end(),
                     [&](const CaseResult& row) { return keys.count(row.key) > 0; });
}

}  // namespace

Result<ResultFile> run_bench(const BenchProcess& process, const fs::path& json, const std::atomic<bool>* interrupted,
                             const std::function<void()>& waiting) {
  std::vector<std::string> words{process.binary.string(), "bench"};
  words.insert(words.end(), process.arguments.begin(), process.arguments.end());
  words.insert(words.end(), {"--no-progress", "--json", json.string()});
  std::error_code ec;
  fs::remove(json, ec);
  const fs::path log = json.string() + ".log";
  CUDABK_ASSIGN(const int status, run_program(words, log, interrupted, waiting));
  if (status == kExitInterrupted) {
    return interrupted_while_measuring();
  }
  if (!fs::exists(json, ec)) {
    return Error{kind_without_result(status), why_no_result(process.binary, status, log)};
  }
  return load_result(json);
}

Result<std::pair<ResultSet, ResultSet>> measure_ab(const AbPlan& plan, bool* cut_short) {
  std::pair<ResultSet, ResultSet> sets;
  const auto started = Clock::now();
  for (int round = 0; round < plan.rounds; ++round) {
    for (int turn = 0; turn < 2; ++turn) {
      const bool old_build = (round + turn) % 2 == 0;
      const BenchProcess& process = old_build ? plan.old_build : plan.present_build;
      const double s_per_run = seconds_since(started) / std::max(1, 2 * round + turn);
      const auto tell = [&plan, &process, s_per_run, round, turn, old_build, begun = Clock::now()] {
        if (plan.progress) {
          const double left_s = s_per_run * (2 * (plan.rounds - round) - turn) - seconds_since(begun);
          plan.progress(
              fmt::format("round {} of {}{}, {}: {}", round + 1, plan.rounds,
                          round + turn > 0 && left_s > 0 ? fmt::format(", {} left", format_left_s(left_s)) : "",
                          old_build ? "baseline" : "candidate", process.binary.string()));
        }
      };
      tell();
      const fs::path json = plan.folder / fmt::format("round{}-{}.json", round + 1, old_build ? "a" : "b");
      const bool stop = plan.interrupted != nullptr && *plan.interrupted;
      Result<ResultFile> file =
          stop ? Result<ResultFile>(interrupted_while_measuring()) : run_bench(process, json, plan.interrupted, tell);
      if (!file.ok()) {
        if (cut_short != nullptr && round > 0 && file.error().kind == ErrorKind::kInterrupted) {
          *cut_short = true;
          return sets;
        }
        return std::move(file).error();
      }
      (old_build ? sets.first : sets.second).files.push_back(std::move(file).value());
    }
  }
  return sets;
}

Result<std::vector<std::string>> narrowed(std::vector<std::string> arguments,
                                          const std::vector<const CaseComparison*>& cases) {
  if (cases.size() > kMaxSuspects) {
    return invalid(fmt::format("{} cases are too many (at most {})", cases.size(), kMaxSuspects));
  }
  std::string filter;
  for (const CaseComparison* row : cases) {
    filter += (filter.empty() ? "^(" : "|") + regex_escaped(row->key);
  }
  arguments.insert(arguments.end(), {"--filter", filter + ")$"});
  return arguments;
}

Remeasure remeasure_ab(const AbPlan& plan) {
  return [plan](const std::vector<const CaseComparison*>& cases, int round) -> Result<std::pair<ResultSet, ResultSet>> {
    AbPlan again = plan;
    again.rounds = 2;
    if (plan.progress) {
      again.progress = [&plan, count = cases.size()](const std::string& line) {
        plan.progress(fmt::format("measuring {} suspect{} again, {}", count, count == 1 ? "" : "s", line));
      };
    }
    CUDABK_ASSIGN(again.old_build.arguments, narrowed(plan.old_build.arguments, cases));
    CUDABK_ASSIGN(again.present_build.arguments, narrowed(plan.present_build.arguments, cases));
    again.folder = plan.folder / fmt::format("confirm{}", round + 1);
    std::error_code ec;
    fs::create_directories(again.folder, ec);  // a failure shows when the result is written
    return measure_ab(again);
  };
}

Remeasure remeasure_candidate(const ResultSet& baseline, const ResultSet& candidate, const AbPlan& plan,
                              const std::string& device) {
  return [&baseline, &candidate, plan, device](const std::vector<const CaseComparison*>& cases,
                                               int round) -> Result<std::pair<ResultSet, ResultSet>> {
    std::set<std::string> keys;
    for (const CaseComparison* row : cases) {
      keys.insert(row->key);
    }
    ResultSet fresh;
    for (size_t i = 0; i < candidate.files.size(); ++i) {
      const RunEnvironment& environment = candidate.files[i].run.environment;
      if (!has_case(candidate.files[i], keys)) {
        continue;
      }
      const auto tell = [&plan, count = cases.size(), round] {
        if (plan.progress) {
          plan.progress(fmt::format("measuring {} suspect{} again, round {}", count, count == 1 ? "" : "s", round + 1));
        }
      };
      tell();
      BenchProcess process = plan.present_build;
      CUDABK_ASSIGN(process.arguments, narrowed(repeatable_arguments(environment.arguments), cases));
      process.arguments.insert(process.arguments.end(),
                               {"--device", !device.empty()               ? device
                                            : environment.device.emulated ? "host@" + environment.device.arch
                                                                          : environment.device.id});
      CUDABK_ASSIGN(ResultFile file, run_bench(process, plan.folder / fmt::format("again{}-{}.json", round + 1, i),
                                               plan.interrupted, tell));
      fresh.files.push_back(std::move(file));
    }
    for (const MatchedCase& match : match_cases(candidate, fresh, false)) {
      if (match.obstacle == Reason::kOtherDevice) {
        return Error{ErrorKind::kUnfit, match.message};
      }
      if (match.obstacle == Reason::kNone && other_code(match)) {
        return unsupported("this program's kernels are not the candidate's; gate with the build that measured it");
      }
    }
    return std::pair{baseline, std::move(fresh)};
  };
}

std::vector<std::string> repeatable_arguments(const std::vector<std::string>& arguments) {
  static const std::set<std::string> kWithValue{"--json", "--jsonl", "--csv", "--md", "--junit", "--color", "--device"};
  static const std::set<std::string> kFlags{"--quiet", "-q", "--verbose", "-v", "--no-progress"};
  std::vector<std::string> kept;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (i == 0 && word == "bench") {
      continue;
    }
    if (kWithValue.count(word) > 0) {
      ++i;  // and its value
    } else if (kFlags.count(word) == 0 && kWithValue.count(word.substr(0, word.find('='))) == 0) {
      kept.push_back(word);
    }
  }
  return kept;
}

}  // namespace cudabk

// Messages for people. The library never prints: it hands lines to the sink that src/cli (or a plugin) set.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

namespace cudabk {

enum class LogLevel { kDebug, kInfo, kWarning };

using LogSink = std::function<void(LogLevel, std::string_view)>;

// Replaces the process-wide sink (default: discard). Not for use while other threads log.
void set_log_sink(LogSink sink);

// Thread-safe; one call is one line.
void log_line(LogLevel level, std::string_view line);

template <class... A>
void log_debug(fmt::format_string<A...> f, A&&... a) {
  log_line(LogLevel::kDebug, fmt::format(f, std::forward<A>(a)...));
}
template <class... A>
void log_info(fmt::format_string<A...> f, A&&... a) {
  log_line(LogLevel::kInfo, fmt::format(f, std::forward<A>(a)...));
}
template <class... A>
void log_warning(fmt::format_string<A...> f, A&&... a) {
  log_line(LogLevel::kWarning, fmt::format(f, std::forward<A>(a)...));
}

}  // namespace cudabk

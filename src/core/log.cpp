#include "core/log.h"

#include <mutex>

namespace cudabk {
namespace {
std::mutex& sink_mutex() {
  static std::mutex m;
  return m;
}
LogSink& sink() {
  static LogSink s;
  return s;
}
}  // namespace

void set_log_sink(LogSink s) {
  const std::lock_guard lock(sink_mutex());
  sink() = std::move(s);
}

void log_line(LogLevel level, std::string_view line) {
  const std::lock_guard lock(sink_mutex());
  if (sink()) {
    sink()(level, line);
  }
}

}  // namespace cudabk

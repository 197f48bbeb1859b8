// Programs of the system, as readers of what is written.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace cudabk::test {

struct ToolResult {
  int status = -1;
  std::string out;  // stdout and stderr
};

// The first of these programs on PATH; empty when there is none.
inline std::string find_tool(const std::vector<std::string>& names) {
  const char* path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "/usr/bin:/bin" : path;
  for (const std::string& name : names) {
    for (size_t at = 0; at <= folders.size();) {
      const size_t end = std::min(folders.find(':', at), folders.size());
      const std::string file = folders.substr(at, end - at) + "/" + name;
      if (::access(file.c_str(), X_OK) == 0) {
        return file;
      }
      at = end + 1;
    }
  }
  return "";
}

inline std::string shell_quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) {
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out + "'";
}

// `words` without a shell's interpretation; `input`, where given, is a file for stdin.
inline ToolResult run_tool(const std::vector<std::string>& words, const std::string& input = "", int limit_s = 120) {
  std::string line = "timeout " + std::to_string(limit_s);
  for (const std::string& word : words) {
    line += ' ';
    line += shell_quoted(word);
  }
  line += " 2>&1 <" + shell_quoted(input.empty() ? "/dev/null" : input);
  ToolResult result;
  FILE* pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) {
    return result;
  }
  char buffer[4096];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    result.out.append(buffer, n);
  }
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return result;
}

}  // namespace cudabk::test

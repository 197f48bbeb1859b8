// Optional shared libraries, opened at first use and never closed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace cudabk {

class DynamicLibrary {
 public:
  // The first of `names` (sonames, best first) found in: the executable's folder and ../lib, the toolkit folder (may be
  // empty), the loader's own path, /usr/local/cuda. Libraries of the same folder whose names begin with `companion` are
  // opened before it: what it needs and might not find by itself. kUnfit with the loader's words when there is none.
  static Result<DynamicLibrary> open(std::span<const std::string_view> names, std::string_view toolkit_dir,
                                     std::string_view companion = {});

  // Sets `function` to the symbol's address; kUnfit when the library is too old to have it.
  template <class Function>
  Status load(Function& function, const char* symbol) const {
    CUDABK_ASSIGN(void* address, find(symbol));
    function = reinterpret_cast<Function>(address);
    return success();
  }
  const std::string& path() const { return path_; }

 private:
  DynamicLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  Result<void*> find(const char* symbol) const;

  void* handle_ = nullptr;
  std::string path_;
};

}  // namespace cudabk

// The run-time compiler: C++ text in, machine code for one architecture out. Needs no GPU. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "device/cuda/dynamic_library.h"

namespace cudabk {

// NVRTC's interface, declared by hand: a build without the toolkit can compile kernels too, where libnvrtc is present.
struct NvrtcApi {
  using Program = struct OpaqueProgram*;
  static constexpr int kSuccess = 0;

  int (*version)(int* major, int* minor) = nullptr;
  const char* (*error_string)(int result) = nullptr;
  int (*create_program)(Program*, const char* source, const char* name, int headers, const char* const* contents,
                        const char* const* include_names) = nullptr;
  int (*destroy_program)(Program*) = nullptr;
  int (*add_name_expression)(Program, const char* name) = nullptr;
  int (*compile_program)(Program, int options, const char* const* texts) = nullptr;
  int (*get_lowered_name)(Program, const char* name, const char** lowered) = nullptr;
  int (*get_cubin_size)(Program, size_t* bytes) = nullptr;
  int (*get_cubin)(Program, char* cubin) = nullptr;
  int (*get_log_size)(Program, size_t* bytes) = nullptr;  // with the terminating zero
  int (*get_log)(Program, char* log) = nullptr;
};

class Nvrtc {
 public:
  // Opens libnvrtc; kUnfit with the reason where there is none.
  static Result<std::unique_ptr<Nvrtc>> open(std::string_view toolkit_dir);

  struct Header {
    std::string name;  // as written in #include
    std::string content;
  };
  struct Input {
    std::string source;
    std::vector<Header> headers;
    std::vector<std::string> options;
    std::string entry;  // the kernel's C++ name whose lowered (mangled) name is wanted
  };
  struct Output {
    std::string cubin;
    std::string lowered_name;
    std::string log;  // warnings, and the assembler's report when --ptxas-options=-v was given
  };
  // kInternal with the compiler's log when the source does not compile.
  Result<Output> compile(const Input& input) const;

  const std::string& version() const { return version_; }  // "13.0"

 private:
  explicit Nvrtc(DynamicLibrary library) : library_(std::move(library)) {}
  Status load_functions();
  std::string program_log(NvrtcApi::Program program) const;

  DynamicLibrary library_;
  NvrtcApi api_;
  std::string version_;
};

}  // namespace cudabk

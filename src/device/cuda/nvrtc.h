// The run-time compiler: C++ text in, machine code for one architecture out. Needs no GPU. Thread-safe.
#pragma once

#include <nvrtc.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "device/cuda/dynamic_library.h"

namespace cudabk {

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
  std::string program_log(nvrtcProgram program) const;

  DynamicLibrary library_;
  std::string version_;
  decltype(&nvrtcVersion) version_of_ = nullptr;
  decltype(&nvrtcGetErrorString) error_string_ = nullptr;
  decltype(&nvrtcCreateProgram) create_program_ = nullptr;
  decltype(&nvrtcDestroyProgram) destroy_program_ = nullptr;
  decltype(&nvrtcAddNameExpression) add_name_expression_ = nullptr;
  decltype(&nvrtcCompileProgram) compile_program_ = nullptr;
  decltype(&nvrtcGetLoweredName) get_lowered_name_ = nullptr;
  decltype(&nvrtcGetCUBINSize) get_cubin_size_ = nullptr;
  decltype(&nvrtcGetCUBIN) get_cubin_ = nullptr;
  decltype(&nvrtcGetProgramLogSize) get_log_size_ = nullptr;
  decltype(&nvrtcGetProgramLog) get_log_ = nullptr;
};

}  // namespace cudabk

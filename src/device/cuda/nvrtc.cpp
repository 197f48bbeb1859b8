#include "device/cuda/nvrtc.h"

#include <fmt/format.h>

namespace cudabk {

namespace {

constexpr std::string_view kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
constexpr std::string_view kCompanion = "libnvrtc-builtins.so.";

std::vector<const char*> c_strings(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) {
    pointers.push_back(text.c_str());
  }
  return pointers;
}

}  // namespace

Result<std::unique_ptr<Nvrtc>> Nvrtc::open(std::string_view toolkit_dir) {
  auto library = DynamicLibrary::open(kNames, toolkit_dir, kCompanion);
  if (!library.ok()) {
    return std::move(library).error().with_context("kernels are compiled at run time, which needs NVRTC");
  }
  std::unique_ptr<Nvrtc> nvrtc(new Nvrtc(std::move(library).value()));
  CUDABK_TRY(nvrtc->load_functions());
  int major = 0, minor = 0;
  if (nvrtc->api_.version(&major, &minor) != NvrtcApi::kSuccess) {
    return unfit(fmt::format("{}: does not say its version", nvrtc->library_.path()));
  }
  nvrtc->version_ = fmt::format("{}.{}", major, minor);
  return nvrtc;
}

Status Nvrtc::load_functions() {
  CUDABK_TRY(library_.load(api_.version, "nvrtcVersion"));
  CUDABK_TRY(library_.load(api_.error_string, "nvrtcGetErrorString"));
  CUDABK_TRY(library_.load(api_.create_program, "nvrtcCreateProgram"));
  CUDABK_TRY(library_.load(api_.destroy_program, "nvrtcDestroyProgram"));
  CUDABK_TRY(library_.load(api_.add_name_expression, "nvrtcAddNameExpression"));
  CUDABK_TRY(library_.load(api_.compile_program, "nvrtcCompileProgram"));
  CUDABK_TRY(library_.load(api_.get_lowered_name, "nvrtcGetLoweredName"));
  CUDABK_TRY(library_.load(api_.get_cubin_size, "nvrtcGetCUBINSize"));
  CUDABK_TRY(library_.load(api_.get_cubin, "nvrtcGetCUBIN"));
  CUDABK_TRY(library_.load(api_.get_log_size, "nvrtcGetProgramLogSize"));
  return library_.load(api_.get_log, "nvrtcGetProgramLog");
}

std::string Nvrtc::program_log(NvrtcApi::Program program) const {
  size_t size = 0;
  if (api_.get_log_size(program, &size) != NvrtcApi::kSuccess || size <= 1) {
    return "";
  }
  std::string log(size, '\0');
  if (api_.get_log(program, log.data()) != NvrtcApi::kSuccess) {
    return "";
  }
  log.resize(size - 1);  // without the terminating zero
  return log;
}

Result<Nvrtc::Output> Nvrtc::compile(const Input& input) const {
  std::vector<std::string> names, contents;
  for (const Header& header : input.headers) {
    names.push_back(header.name);
    contents.push_back(header.content);
  }
  const auto name_pointers = c_strings(names), content_pointers = c_strings(contents);
  const auto option_pointers = c_strings(input.options);

  NvrtcApi::Program program = nullptr;
  int result = api_.create_program(&program, input.source.c_str(), "kernel.cu", static_cast<int>(names.size()),
                                   content_pointers.data(), name_pointers.data());
  if (result != NvrtcApi::kSuccess) {
    return internal_error(fmt::format("nvrtcCreateProgram: {}", api_.error_string(result)));
  }
  struct Destroy {
    const Nvrtc& self;
    NvrtcApi::Program program;
    ~Destroy() { self.api_.destroy_program(&program); }
  } destroy{*this, program};

  result = api_.add_name_expression(program, input.entry.c_str());
  if (result == NvrtcApi::kSuccess) {
    result = api_.compile_program(program, static_cast<int>(option_pointers.size()), option_pointers.data());
  }
  Output output;
  output.log = program_log(program);
  if (result != NvrtcApi::kSuccess) {
    return internal_error(fmt::format("{}\n{}", api_.error_string(result), output.log));
  }
  const char* lowered = nullptr;
  size_t size = 0;
  result = api_.get_lowered_name(program, input.entry.c_str(), &lowered);
  if (result == NvrtcApi::kSuccess) {
    output.lowered_name = lowered;
    result = api_.get_cubin_size(program, &size);
  }
  if (result == NvrtcApi::kSuccess) {
    output.cubin.resize(size);
    result = api_.get_cubin(program, output.cubin.data());
  }
  if (result != NvrtcApi::kSuccess || output.cubin.empty()) {
    return internal_error(fmt::format("no machine code: {}\n{}", api_.error_string(result), output.log));
  }
  return output;
}

}  // namespace cudabk

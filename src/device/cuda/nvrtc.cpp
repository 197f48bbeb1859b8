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
  if (nvrtc->version_of_(&major, &minor) != NVRTC_SUCCESS) {
    return unfit(fmt::format("{}: does not say its version", nvrtc->library_.path()));
  }
  nvrtc->version_ = fmt::format("{}.{}", major, minor);
  return nvrtc;
}

Status Nvrtc::load_functions() {
  CUDABK_TRY(library_.load(version_of_, "nvrtcVersion"));
  CUDABK_TRY(library_.load(error_string_, "nvrtcGetErrorString"));
  CUDABK_TRY(library_.load(create_program_, "nvrtcCreateProgram"));
  CUDABK_TRY(library_.load(destroy_program_, "nvrtcDestroyProgram"));
  CUDABK_TRY(library_.load(add_name_expression_, "nvrtcAddNameExpression"));
  CUDABK_TRY(library_.load(compile_program_, "nvrtcCompileProgram"));
  CUDABK_TRY(library_.load(get_lowered_name_, "nvrtcGetLoweredName"));
  CUDABK_TRY(library_.load(get_cubin_size_, "nvrtcGetCUBINSize"));
  CUDABK_TRY(library_.load(get_cubin_, "nvrtcGetCUBIN"));
  CUDABK_TRY(library_.load(get_log_size_, "nvrtcGetProgramLogSize"));
  return library_.load(get_log_, "nvrtcGetProgramLog");
}

std::string Nvrtc::program_log(nvrtcProgram program) const {
  size_t size = 0;
  if (get_log_size_(program, &size) != NVRTC_SUCCESS || size <= 1) {
    return "";
  }
  std::string log(size, '\0');
  if (get_log_(program, log.data()) != NVRTC_SUCCESS) {
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

  nvrtcProgram program = nullptr;
  nvrtcResult result = create_program_(&program, input.source.c_str(), "kernel.cu", static_cast<int>(names.size()),
                                       content_pointers.data(), name_pointers.data());
  if (result != NVRTC_SUCCESS) {
    return internal_error(fmt::format("nvrtcCreateProgram: {}", error_string_(result)));
  }
  struct Destroy {
    const Nvrtc& self;
    nvrtcProgram program;
    ~Destroy() { self.destroy_program_(&program); }
  } destroy{*this, program};

  result = add_name_expression_(program, input.entry.c_str());
  if (result == NVRTC_SUCCESS) {
    result = compile_program_(program, static_cast<int>(option_pointers.size()), option_pointers.data());
  }
  Output output;
  output.log = program_log(program);
  if (result != NVRTC_SUCCESS) {
    return internal_error(fmt::format("{}\n{}", error_string_(result), output.log));
  }
  const char* lowered = nullptr;
  size_t size = 0;
  result = get_lowered_name_(program, input.entry.c_str(), &lowered);
  if (result == NVRTC_SUCCESS) {
    output.lowered_name = lowered;
    result = get_cubin_size_(program, &size);
  }
  if (result == NVRTC_SUCCESS) {
    output.cubin.resize(size);
    result = get_cubin_(program, output.cubin.data());
  }
  if (result != NVRTC_SUCCESS || output.cubin.empty()) {
    return internal_error(fmt::format("no machine code: {}\n{}", error_string_(result), output.log));
  }
  return output;
}

}  // namespace cudabk

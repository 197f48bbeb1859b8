#include "device/cuda/dynamic_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

namespace cudabk {

namespace {

// Folders in order of preference; "" stands for the loader's own search.
std::vector<std::string> search_folders(std::string_view toolkit_dir) {
  std::vector<std::string> folders;
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!self.empty()) {
    folders.push_back(self.parent_path().string());
    folders.push_back((self.parent_path() / "../lib").string());
  }
  if (!toolkit_dir.empty()) {
    const std::string root(toolkit_dir);
    folders.insert(folders.end(), {root + "/lib64", root + "/targets/x86_64-linux/lib", root + "/lib", root});
  }
  folders.insert(folders.end(), {"", "/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"});
  return folders;
}

// A failure here shows when the library itself is used.
void open_companions(const std::string& folder, std::string_view prefix) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(prefix)) {
      dlopen(it->path().c_str(), RTLD_NOW | RTLD_LOCAL);
    }
  }
}

}  // namespace

Result<DynamicLibrary> DynamicLibrary::open(std::span<const std::string_view> names, std::string_view toolkit_dir,
                                            std::string_view companion) {
  const std::vector<std::string> folders = search_folders(toolkit_dir);
  std::string reason;
  for (const std::string_view name : names) {
    for (const std::string& folder : folders) {
      const std::string path = folder.empty() ? std::string(name) : fmt::format("{}/{}", folder, name);
      std::error_code ignored;
      if (!folder.empty() && !std::filesystem::exists(path, ignored)) {
        continue;
      }
      if (!folder.empty() && !companion.empty()) {
        open_companions(folder, companion);
      }
      if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        return DynamicLibrary(handle, path);
      }
      if (const char* text = dlerror(); text != nullptr && reason.empty()) {
        reason = text;
      }
    }
  }
  return unfit(
      fmt::format("cannot open {}: {} (set CUDA_HOME, or put the library beside the program)", names.front(), reason));
}

Result<void*> DynamicLibrary::find(const char* symbol) const {
  dlerror();
  void* address = dlsym(handle_, symbol);
  if (address == nullptr) {
    return unfit(fmt::format("{} has no {}: it is too old for this program", path_, symbol));
  }
  return address;
}

}  // namespace cudabk

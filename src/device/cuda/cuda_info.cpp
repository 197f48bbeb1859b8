// Device properties, and the driver's version as text from NVML.
#include <fmt/format.h>

#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_internal.h"
#include "device/cuda/dynamic_library.h"

namespace cudabk {

namespace {

// The toolkit has no NVML header everywhere: the three functions used here are declared by hand.
struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*driver_version)(char* text, unsigned size) = nullptr;
};

// "580.159.04", or empty where NVML is missing: the number of the runtime's driver interface then has to do.
std::string driver_text() {
  constexpr std::string_view kNames[] = {"libnvidia-ml.so.1"};
  const Result<DynamicLibrary> library = DynamicLibrary::open(kNames, "");
  Nvml nvml;
  if (!library.ok() || !library->load(nvml.init, "nvmlInit_v2").ok() ||
      !library->load(nvml.shutdown, "nvmlShutdown").ok() ||
      !library->load(nvml.driver_version, "nvmlSystemGetDriverVersion").ok() || nvml.init() != 0) {
    return "";
  }
  char text[96] = {};
  const int result = nvml.driver_version(text, sizeof(text));
  nvml.shutdown();
  return result == 0 ? text : "";
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                        static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

}  // namespace

Result<int> count_cuda_devices() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorInsufficientDriver) {
    int version = 0;
    cudaGetLastError();
    if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) {
      cudaGetLastError();
      return unfit("no CUDA device: no NVIDIA driver is installed (libcuda.so.1 was not found)");
    }
    return unfit(fmt::format("no CUDA device: the driver offers CUDA {}.{}, this program needs {}.{}", version / 1000,
                             version % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10));
  }
  if (code != cudaSuccess) {
    const Error error = cuda_error(code, "no CUDA device");
    return unfit(error.message);
  }
  if (count == 0) {
    return unfit("no CUDA device: the driver lists none");
  }
  return count;
}

Result<DeviceInfo> read_cuda_device_info(int index) {
  CUDABK_TRY(cuda_check(cudaSetDevice(index), fmt::format("cuda:{}", index)));
  cudaDeviceProp properties;
  CUDABK_TRY(cuda_check(cudaGetDeviceProperties(&properties, index), fmt::format("properties of cuda:{}", index)));
  DeviceInfo info;
  info.id = fmt::format("cuda:{}", index);
  info.name = properties.name;
  info.cc = properties.major * 10 + properties.minor;
  info.arch = arch_of_compute_capability(info.cc);
  info.sm_count = properties.multiProcessorCount;
  info.l2_bytes = properties.l2CacheSize;
  info.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  info.max_shared_bytes = static_cast<int>(properties.sharedMemPerBlockOptin);
  info.max_threads_per_block = properties.maxThreadsPerBlock;
  CUDABK_TRY(cuda_check(cudaDriverGetVersion(&info.driver_version), "cudaDriverGetVersion"));
  info.driver_text = driver_text();
  info.uuid = uuid_text(properties.uuid);
  return info;
}

}  // namespace cudabk

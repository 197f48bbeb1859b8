#include "device/cuda/cuda_error.h"

#include <fmt/format.h>

namespace cudabk {

Error cuda_error(cudaError_t code, std::string_view what) {
  cudaGetLastError();
  const std::string message = fmt::format("{}: {} ({})", what, cudaGetErrorString(code), cudaGetErrorName(code));
  switch (code) {
    case cudaErrorMemoryAllocation:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorStubLibrary:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorDeviceUninitialized:
    case cudaErrorInitializationError:
      return unfit(message);
    default:
      return internal_error(message);
  }
}

Status cuda_check(cudaError_t code, std::string_view what) {
  if (code != cudaSuccess) {
    return cuda_error(code, what);
  }
  return success();
}

}  // namespace cudabk

// The SM clock, measured: cycles of a spinning SM over the device's global timer. The same kernel serves as a delay.
#pragma once

#include <functional>
#include <memory>

#include "core/result.h"
#include "device/device.h"

namespace cudabk {

class SpinKernel {
 public:
  // Compiles the kernel (blocks). `device` outlives the object.
  static Result<std::unique_ptr<SpinKernel>> create(Device& device);

  // Spins for `duration_ns` and blocks until it is done. MHz; > 0. On the emulated device the host's cycle counter.
  Result<double> clock_mhz(Stream& stream, double duration_ns = kReadingNs);
  // Work that keeps a stream (and one SM) busy for `duration_ns`; enqueue it and go on.
  Work delay(double duration_ns) const;

  static constexpr double kReadingNs = 200e3;  // long against a tick of the global timer (at most 1 us)

 private:
  SpinKernel(Device& device, const Kernel* kernel, Memory result)
      : device_(device), kernel_(kernel), result_(std::move(result)) {}

  Device& device_;
  const Kernel* kernel_;
  Memory result_;
};

// For SamplerOptions::read_clock_mhz. Empty on the emulated device, whose clock says nothing. Both arguments outlive
// it.
std::function<Result<double>()> clock_reader(const Device& device, SpinKernel& spin, Stream& stream);

}  // namespace cudabk

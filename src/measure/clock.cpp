#include "measure/clock.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

#include "measure/args.h"

namespace cudabk {
namespace {

constexpr uint32_t kThreads = 32;  // one warp; one thread of it spins

}  // namespace

Result<std::unique_ptr<SpinKernel>> SpinKernel::create(Device& device) {
  CUDABK_ASSIGN(const Kernel* kernel,
                device.kernel({"measure/spin.h", fmt::format("spin<{}>", kThreads), sizeof(SpinArgs)}));
  CUDABK_ASSIGN(Memory result, device.allocate(2 * sizeof(int64_t)));
  return std::unique_ptr<SpinKernel>(new SpinKernel(device, kernel, std::move(result)));
}

Work SpinKernel::delay(double duration_ns) const {
  KernelLaunch launch;
  launch.kernel = kernel_;
  launch.block = {kThreads, 1, 1};
  const SpinArgs args{std::llround(duration_ns), reinterpret_cast<int64_t*>(result_.ptr())};
  launch.args.resize(sizeof(args));
  std::memcpy(launch.args.data(), &args, sizeof(args));
  return launch;
}

Result<double> SpinKernel::clock_mhz(Stream& stream, double duration_ns) {
  CUDABK_TRY(stream.run(delay(duration_ns)));
  CUDABK_TRY(stream.synchronize());
  std::array<int64_t, 2> measured{};  // cycles, ns
  CUDABK_TRY(device_.download(measured.data(), result_.ptr(), sizeof(measured)));
  if (measured[0] <= 0 || measured[1] <= 0) {
    return internal_error(fmt::format("SM clock: {} cycles in {} ns", measured[0], measured[1]));
  }
  return static_cast<double>(measured[0]) * 1000 / static_cast<double>(measured[1]);
}

std::function<Result<double>()> clock_reader(const Device& device, SpinKernel& spin, Stream& stream) {
  if (device.info().emulated) {
    return {};
  }
  return [&spin, &stream] { return spin.clock_mhz(stream); };
}

}  // namespace cudabk

#include <fmt/format.h>

#include <cstring>

#include "backend/plan.h"

namespace cudabk {
namespace {

struct Binder {
  const Plan& plan;
  const Graph& graph;
  const Bindings& bindings;

  Result<DevicePtr> address(const BufferRef& ref) const {
    if (ref.kind == BufferRef::Kind::kScratch) {
      return bindings.scratch + plan.scratch_offsets[ref.index] + ref.addend;
    }
    const DevicePtr base =
        static_cast<size_t>(ref.index) < bindings.tensors.size() ? bindings.tensors[ref.index] : nullptr;
    if (base == nullptr) {
      return invalid(fmt::format("{} has no memory", graph.tensors()[ref.index]->name));
    }
    return base + ref.addend;
  }
};

Result<Work> bind_kernel(const KernelWork& work, const Binder& binder, Device& device) {
  CUDABK_ASSIGN(const Kernel* kernel, device.kernel(work.key));
  KernelLaunch launch;
  launch.kernel = kernel;
  launch.grid = work.grid;
  launch.block = work.block;
  launch.shared_bytes = work.shared_bytes;
  launch.programmatic = work.programmatic;
  launch.args = work.args;
  for (const Relocation& r : work.relocations) {
    CUDABK_ASSIGN(const DevicePtr address, binder.address(r.target));
    std::memcpy(launch.args.data() + r.offset, &address, sizeof(address));
  }
  return Work(std::move(launch));
}

Result<Work> bind_gemm(const GemmWork& work, const Binder& binder) {
  GemmCall call = work.call;
  CUDABK_ASSIGN(call.a, binder.address(work.a));
  CUDABK_ASSIGN(call.b, binder.address(work.b));
  CUDABK_ASSIGN(call.c, binder.address(work.c));
  return Work(call);
}

}  // namespace

Result<Work> bind_launch(const Launch& launch, const Plan& plan, const Graph& graph, const Bindings& bindings,
                         Device& device) {
  const Binder binder{plan, graph, bindings};
  if (const auto* kernel = std::get_if<KernelWork>(&launch.work)) {
    return bind_kernel(*kernel, binder, device);
  }
  if (const auto* gemm = std::get_if<GemmWork>(&launch.work)) {
    return bind_gemm(*gemm, binder);
  }
  const auto& fill = std::get<FillWork>(launch.work);
  CUDABK_ASSIGN(const DevicePtr dst, binder.address(fill.dst));
  return Work(FillCall{dst, fill.value, fill.bytes});
}

}  // namespace cudabk

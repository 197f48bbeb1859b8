#include "backend/repack.h"

#include <chrono>

#include "ops/frag_weights.h"

namespace cudabk {

Status Repacker::run(Launch launch) {
  if (stream_ == nullptr) {
    CUDABK_ASSIGN(stream_, device_->create_stream());
  }
  auto& work = std::get<KernelWork>(launch.work);
  KernelLaunch call;
  CUDABK_ASSIGN(call.kernel, device_->kernel(work.key));
  call.grid = work.grid;
  call.block = work.block;
  call.shared_bytes = work.shared_bytes;
  call.args = std::move(work.args);
  CUDABK_TRY(device_->synchronize());  // what writes the source belongs to other streams
  const auto start = std::chrono::steady_clock::now();
  CUDABK_TRY(stream_->run(Work(std::move(call))));
  CUDABK_TRY(stream_->synchronize());
  stats_.ns += std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  return success();
}

Status Repacker::pack(const Tensor& root, DevicePtr raw, DevicePtr packed) {
  auto call = pack_call(root);
  call.args.src = reinterpret_cast<const uint8_t*>(raw);
  call.args.dst = reinterpret_cast<uint8_t*>(packed);
  CUDABK_TRY(run(call.launch("pack")));
  auto factors = factors_call(root);
  factors.args.weights = reinterpret_cast<const uint8_t*>(packed);
  factors.args.factors = reinterpret_cast<float*>(packed + frag_factors_offset(root));
  CUDABK_TRY(run(factors.launch("row factors")));
  ++stats_.tensors;
  stats_.bytes += byte_size(root);
  return success();
}

Status Repacker::unpack(const Tensor& root, DevicePtr packed, DevicePtr raw) {
  auto call = unpack_call(root);
  call.args.src = reinterpret_cast<const uint8_t*>(packed);
  call.args.dst = reinterpret_cast<uint8_t*>(raw);
  return run(call.launch("unpack"));
}

Status Repacker::upload(const Tensor& root, DevicePtr packed, std::span<const std::byte> bytes, int64_t offset) {
  CUDABK_ASSIGN(const Memory raw, device_->allocate(byte_size(root)));
  const auto size = static_cast<int64_t>(bytes.size());
  if (size < byte_size(root)) {
    CUDABK_TRY(unpack(root, packed, raw.ptr()));
  }
  CUDABK_TRY(device_->upload(raw.ptr() + offset, bytes.data(), size));
  return pack(root, raw.ptr(), packed);
}

Status Repacker::download(const Tensor& root, DevicePtr packed, std::span<std::byte> bytes, int64_t offset) {
  CUDABK_ASSIGN(const Memory raw, device_->allocate(byte_size(root)));
  CUDABK_TRY(unpack(root, packed, raw.ptr()));
  return device_->download(bytes.data(), raw.ptr() + offset, static_cast<int64_t>(bytes.size()));
}

Status Repacker::copy(DevicePtr dst, DevicePtr src, int64_t bytes) {
  CUDABK_TRY(device_->synchronize());
  if (stream_ == nullptr) {
    CUDABK_ASSIGN(stream_, device_->create_stream());
  }
  CUDABK_TRY(stream_->copy(dst, src, bytes));
  return stream_->synchronize();
}

Status Repacker::pack_in_place(const Tensor& root, DevicePtr memory) {
  CUDABK_ASSIGN(const Memory raw, device_->allocate(byte_size(root)));
  CUDABK_TRY(copy(raw.ptr(), memory, byte_size(root)));
  CUDABK_TRY(device_->fill(memory, 0, frag_tensor_bytes(root)));
  return pack(root, raw.ptr(), memory);
}

Status Repacker::unpack_in_place(const Tensor& root, DevicePtr memory) {
  CUDABK_ASSIGN(const Memory raw, device_->allocate(byte_size(root)));
  CUDABK_TRY(unpack(root, memory, raw.ptr()));
  return copy(memory, raw.ptr(), byte_size(root));
}

}  // namespace cudabk

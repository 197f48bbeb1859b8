#include "ops/op_harness.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "graph/init.h"
#include "reference/reference.h"

namespace cudabk::test {
namespace {

constexpr int64_t kGuardBytes = 256;
constexpr std::byte kGuard{0xC7};

// Memory between elements, and results before they are written: signalling NaNs where the type has them. They change
// when anything computes with them, so that a stray write is seen even where its inputs are gaps too.
void fill_gap(std::byte* p, int64_t bytes, DType type) {
  const bool half = type == DType::f16 || type == DType::bf16;
  const uint32_t pattern = type == DType::f32 ? 0xFFA5A5A5u : type == DType::f16 ? 0xFDA5FDA5u : 0xFFA5FFA5u;
  for (int64_t i = 0; i < bytes; ++i) {
    p[i] = half || type == DType::f32 ? static_cast<std::byte>(pattern >> (i % 4 * 8)) : std::byte{0xA5};
  }
}

std::byte* element(std::byte* tensor, const Tensor& t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
  return tensor + t.view_offset + i0 * t.nb[0] + i1 * t.nb[1] + i2 * t.nb[2] + i3 * t.nb[3];
}

// Calls f(i0, i1, i2, i3) for every block of `t` (i0 counts blocks).
template <class F>
void for_each_block(const Tensor& t, F&& f) {
  for (int64_t i3 = 0; i3 < t.ne[3]; ++i3) {
    for (int64_t i2 = 0; i2 < t.ne[2]; ++i2) {
      for (int64_t i1 = 0; i1 < t.ne[1]; ++i1) {
        for (int64_t i0 = 0; i0 < t.ne[0] / block_elements(t.type); ++i0) {
          f(i0, i1, i2, i3);
        }
      }
    }
  }
}

bool is_plain_float(DType type) { return type == DType::f32 || type == DType::f16 || type == DType::bf16; }

// Indices, and blocks that decode to finite values: made for the whole root, of which `t` shows a part.
void fill_shown(std::byte* root, const Tensor& t, uint64_t seed) {
  const Tensor& owner = t.root();
  std::vector<std::byte> whole(static_cast<size_t>(byte_size(owner)));
  const Status filled = owner.index_limit > 0
                            ? fill_indices({owner.type, owner.index_limit, owner.ne[0], seed}, whole)
                            : cudabk::fill_random({.type = owner.type, .stddev = 1, .seed = seed}, whole);
  EXPECT_TRUE(filled.ok());
  for_each_block(t, [&](int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    std::memcpy(element(root, t, i0, i1, i2, i3), element(whole.data(), t, i0, i1, i2, i3), block_bytes(t.type));
  });
}

// Random values for floats; random bytes for other plain types, where only copies are tested.
void fill_random(std::byte* root, const Tensor& t, std::mt19937_64& random) {
  if (is_quantized(t.type) || t.root().index_limit > 0) {
    fill_shown(root, t, random());
    return;
  }
  std::uniform_real_distribution<float> value(-10.0f, 10.0f);
  for_each_block(t, [&](int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    std::byte* p = element(root, t, i0, i1, i2, i3);
    if (is_plain_float(t.type)) {
      const float v = value(random);
      const uint16_t half = t.type == DType::f16 ? f32_to_f16(v) : f32_to_bf16(v);
      std::memcpy(p, t.type == DType::f32 ? static_cast<const void*>(&v) : &half, block_bytes(t.type));
      return;
    }
    if (t.type == DType::i32) {
      const auto v = static_cast<int32_t>(random() % 2000001) - 1000000;
      std::memcpy(p, &v, sizeof(v));
      return;
    }
    for (int b = 0; b < block_bytes(t.type); ++b) {
      p[b] = static_cast<std::byte>(random());
    }
  });
}

class ImageValues final : public Values {
 public:
  explicit ImageValues(std::vector<std::span<const std::byte>> images) : images_(std::move(images)) {}
  std::span<const std::byte> bytes(const Tensor& root) const override { return images_[static_cast<size_t>(root.id)]; }

 private:
  std::vector<std::span<const std::byte>> images_;
};

Error wrong(std::string message) { return {ErrorKind::kWrongOutput, std::move(message)}; }

// Element for element in logical order, bytes equal: copies that keep the type.
Status compare_bytes(const Tensor& y, const std::byte* after, const Tensor& a, const std::byte* before) {
  const auto gather = [](const Tensor& t, const std::byte* root) {
    std::vector<std::byte> bytes;
    for_each_block(t, [&](int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
      const std::byte* p = element(const_cast<std::byte*>(root), t, i0, i1, i2, i3);
      bytes.insert(bytes.end(), p, p + block_bytes(t.type));
    });
    return bytes;
  };
  if (gather(y, after) != gather(a, before)) {
    return wrong(fmt::format("{}: bytes of {} differ from those of {}", y.name, describe(y), describe(a)));
  }
  return success();
}

Status compare_values(const Tensor& y, std::span<const std::byte> after, const Values& before, double tolerance) {
  CUDABK_ASSIGN(std::vector<double> expected, evaluate_reference(y, Region::whole(y), before));
  CUDABK_TRY(round_result(y.type, expected));
  // The result's own memory, as a leaf.
  Tensor leaf = y;
  leaf.op = kOpNone;
  leaf.src.clear();
  leaf.view_src = nullptr;
  leaf.id = 0;
  const ImageValues memory({after});
  std::vector<double> row(static_cast<size_t>(y.ne[0]));
  double error = 0, norm = 0, worst = 0;
  size_t worst_at = 0, at = 0;
  for (int64_t r = 0; r < row_count(y); ++r) {
    CUDABK_TRY(memory.read_row(leaf, r % y.ne[1], r / y.ne[1] % y.ne[2], r / y.ne[1] / y.ne[2], 0, row));
    for (const double got : row) {
      const double difference = std::abs(got - expected[at]);
      if (!std::isfinite(got) || !std::isfinite(expected[at])) {
        return wrong(
            fmt::format("{}: element {} of {} is {}, expected {}", y.name, at, describe(y), got, expected[at]));
      }
      if (difference > worst) {
        worst = difference;
        worst_at = at;
      }
      error += difference * difference;
      norm += expected[at] * expected[at];
      ++at;
    }
  }
  if (error > tolerance * norm) {
    return wrong(fmt::format("{}: NMSE {:.3g} > {:.3g}; worst is element {} of {}: expected {}, off by {}", y.name,
                             error / norm, tolerance, worst_at, describe(y), expected[worst_at], worst));
  }
  return success();
}

}  // namespace

Result<std::unique_ptr<OpHarness>> OpHarness::open(DeviceOptions::ThreadOrder order, uint64_t seed) {
  DeviceOptions options;
  options.thread_order = order;
  options.shuffle_threads_seed = order == DeviceOptions::ThreadOrder::kShuffled ? seed : 0;
  auto harness = std::make_unique<OpHarness>();
  harness->seed_ = seed;
  CUDABK_ASSIGN(harness->device_, open_device("host", options));
  harness->info_ = harness->device_->info();
  CUDABK_ASSIGN(harness->stream_, harness->device_->create_stream());
  return harness;
}

Status OpHarness::check_case(const OpDef& op, const CaseParams& params) {
  Graph graph;
  const std::string text = fmt::format("{} {} (seed {})", op.name(), params.text(), seed_);
  auto built = op.build(graph, params);
  if (!built.ok()) {
    return std::move(built).error().with_context(text);
  }
  if (Status s = check_graph(graph); !s.ok()) {
    return std::move(s).error().with_context(text);
  }
  return success();
}

Status OpHarness::check_graph(const Graph& graph) {
  CUDABK_TRY(allocate(graph));
  for (const Tensor* node : graph.nodes()) {
    if (!is_view_op(*node)) {
      CUDABK_TRY(run_node(graph, *node));
      CUDABK_TRY(check_node(graph, *node));
    }
  }
  return success();
}

Status OpHarness::check_fused(const Graph& graph, const Tensor& node,
                              const std::function<Result<Launch>(LowerContext&)>& lower) {
  CUDABK_TRY(allocate(graph));
  PlainLowerContext context(info_);
  CUDABK_ASSIGN(const Launch launch, lower(context));
  CUDABK_TRY(run_launch(graph, launch));
  CUDABK_TRY(stream_->synchronize());
  return check_node(graph, node);
}

Status OpHarness::allocate(const Graph& graph) {
  std::mt19937_64 random(seed_);
  allocations_.clear();
  allocations_.resize(graph.tensors().size());
  for (const auto& t : graph.tensors()) {
    if (t->view_src == nullptr) {
      auto& [memory, image, has_values] = allocations_[static_cast<size_t>(t->id)];
      has_values = t->op == kOpNone;
      image.assign(static_cast<size_t>(byte_size(*t) + 2 * kGuardBytes), kGuard);
      fill_gap(image.data() + kGuardBytes, byte_size(*t), t->type);
    }
  }
  // Only what some node reads has values; gaps between the elements of views stay NaN.
  for (const Tensor* node : graph.nodes()) {
    for (const Tensor* s : node->src) {
      if (!is_view_op(*node) && s->root().op == kOpNone && !is_empty(*s)) {
        fill_random(allocations_[static_cast<size_t>(s->root().id)].image.data() + kGuardBytes, *s, random);
      }
    }
  }
  for (Allocation& a : allocations_) {
    if (!a.image.empty()) {
      CUDABK_ASSIGN(a.memory, device_->allocate(static_cast<int64_t>(a.image.size())));
      CUDABK_TRY(device_->upload(a.memory.ptr(), a.image.data(), static_cast<int64_t>(a.image.size())));
    }
  }
  return success();
}

Status OpHarness::run_node(const Graph& graph, const Tensor& node) {
  const OpDef* op = op_of(node);
  if (op == nullptr) {
    return internal_error(fmt::format("{}: no op '{}'", node.name, node.op));
  }
  if (const Support s = op->supports(node, device_->info()); !s) {
    return unsupported(fmt::format("{}: {}", node.name, s.reason));
  }
  PlainLowerContext context(info_);
  CUDABK_ASSIGN(const std::vector<Launch> launches, op->lower(node, context));
  if (is_empty(node) && !launches.empty()) {
    return internal_error(fmt::format("{}: {} launches for an empty result", node.name, launches.size()));
  }
  for (const Launch& launch : launches) {
    CUDABK_TRY(run_launch(graph, launch));
  }
  return stream_->synchronize();
}

Status OpHarness::run_launch(const Graph& graph, const Launch& launch) {
  const auto* work = std::get_if<KernelWork>(&launch.work);
  if (work == nullptr) {
    return internal_error(launch.label + ": not a kernel");
  }
  KernelWork tampered = *work;
  if (tamper) {
    tamper(tampered);
    work = &tampered;
  }
  CUDABK_ASSIGN(const Kernel* kernel, device_->kernel(work->key));
  KernelLaunch call{kernel, work->grid, work->block, work->shared_bytes, work->programmatic, work->args};
  for (const Relocation& r : work->relocations) {
    const Tensor& t = *graph.tensors()[static_cast<size_t>(r.target.index)];
    const DevicePtr address =
        allocations_[static_cast<size_t>(t.root().id)].memory.ptr() + kGuardBytes + t.view_offset + r.target.addend;
    std::memcpy(call.args.data() + r.offset, &address, sizeof(address));
  }
  ++launches_;
  return stream_->run(call);
}

Status OpHarness::check_node(const Graph& graph, const Tensor& node) {
  // Memory before (host images) and after (device).
  std::vector<std::vector<std::byte>> after(allocations_.size());
  std::vector<std::span<const std::byte>> before(allocations_.size());
  for (size_t i = 0; i < allocations_.size(); ++i) {
    const auto& image = allocations_[i].image;
    after[i].resize(image.size());
    if (!image.empty()) {
      CUDABK_TRY(device_->download(after[i].data(), allocations_[i].memory.ptr(), static_cast<int64_t>(image.size())));
      if (allocations_[i].has_values) {
        before[i] = std::span(image).subspan(kGuardBytes, image.size() - 2 * kGuardBytes);
      }
    }
  }
  const auto root = static_cast<size_t>(node.root().id);
  // Outside the result nothing changed: put the old result back and compare everything.
  std::vector<std::byte> restored = after[root];
  for_each_block(node, [&](int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    const auto* old = element(allocations_[root].image.data() + kGuardBytes, node, i0, i1, i2, i3);
    std::memcpy(element(restored.data() + kGuardBytes, node, i0, i1, i2, i3), old, block_bytes(node.type));
  });
  for (size_t i = 0; i < allocations_.size(); ++i) {
    const auto& seen = i == root ? restored : after[i];
    const auto& image = allocations_[i].image;
    const auto [a, b] = std::mismatch(seen.begin(), seen.end(), image.begin());
    if (a != seen.end()) {
      return wrong(fmt::format("{}: byte {} of '{}' was overwritten", node.name, (b - image.begin()) - kGuardBytes,
                               graph.tensors()[i]->name));
    }
  }
  const OpDef* op = op_of(node);
  if (!is_empty(node)) {
    const std::span<const std::byte> result =
        std::span(after[root]).subspan(kGuardBytes, after[root].size() - 2 * kGuardBytes);
    const Tensor& a = *node.src[0];
    if ((node.op == "cpy" || node.op == "cont") && a.type == node.type) {
      CUDABK_TRY(compare_bytes(node, result.data(), a, before[static_cast<size_t>(a.root().id)].data()));
    } else {
      CUDABK_TRY(compare_values(node, result, ImageValues(before), op->tolerance(node)));
    }
  }
  for (size_t i = 0; i < allocations_.size(); ++i) {
    allocations_[i].image = std::move(after[i]);
  }
  allocations_[root].has_values = true;
  return success();
}

}  // namespace cudabk::test

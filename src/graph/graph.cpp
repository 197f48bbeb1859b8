#include "graph/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cudabk {
namespace {

// Bytes of a dense tensor, or nothing when it overflows.
bool dense_size_fits(DType type, const Shape& ne) {
  int64_t total = block_bytes(type);
  const Shape blocks{ne[0] / block_elements(type), ne[1], ne[2], ne[3]};
  for (const int64_t n : blocks) {
    if (__builtin_mul_overflow(total, n, &total)) {
      return false;
    }
  }
  return true;
}

Status check_shape(std::string_view what, DType type, const Shape& ne) {
  for (const int64_t n : ne) {
    if (n < 0) {
      return invalid(fmt::format("{}: shape [{}] has a negative extent", what, fmt::join(ne, ",")));
    }
  }
  if (ne[0] % block_elements(type) != 0) {
    return invalid(fmt::format("{}: row length {} is not a multiple of {}, the block length of {}", what, ne[0],
                               block_elements(type), dtype_name(type)));
  }
  if (!dense_size_fits(type, ne)) {
    return invalid(fmt::format("{}: {}[{}] is larger than 2^63 bytes", what, dtype_name(type), fmt::join(ne, ",")));
  }
  return success();
}

}  // namespace

Tensor* Graph::add(Tensor t, bool is_node) {
  t.id = static_cast<int>(tensors_.size());
  tensors_.push_back(std::make_unique<Tensor>(std::move(t)));
  if (is_node) {
    nodes_.push_back(tensors_.back().get());
  }
  return tensors_.back().get();
}

Result<Tensor*> Graph::leaf(std::string name, DType type, Shape ne, Usage usage) {
  CUDABK_TRY(check_shape(name, type, ne));
  Tensor t;
  t.name = std::move(name);
  t.type = type;
  t.ne = ne;
  t.nb = dense_strides(type, ne);
  t.usage = usage;
  return add(std::move(t), false);
}

Result<Tensor*> Graph::view(Tensor* a, Shape ne, Strides nb, int64_t offset) {
  CUDABK_TRY(check_shape("view of " + a->name, a->type, ne));
  Tensor t;
  t.name = a->name + " (view)";
  t.type = a->type;
  t.ne = ne;
  t.nb = nb;
  t.op = kOpView;
  t.src = {a};
  t.view_src = &a->root();
  t.view_offset = a->view_offset + offset;
  t.usage = a->usage;
  const int64_t end = t.view_offset + byte_size(t);
  if (offset < 0 || end > byte_size(a->root())) {
    return invalid(fmt::format("view: bytes {}..{} lie outside {} ({} bytes)", t.view_offset, end, describe(a->root()),
                               byte_size(a->root())));
  }
  return add(std::move(t), true);
}

Result<Tensor*> Graph::reshape(Tensor* a, Shape ne) {
  CUDABK_TRY(check_shape("reshape of " + a->name, a->type, ne));
  if (!is_contiguous(*a)) {
    return invalid(fmt::format("reshape: {} is not contiguous", describe(*a)));
  }
  if (ne[0] * ne[1] * ne[2] * ne[3] != element_count(*a)) {
    return invalid(fmt::format("reshape: {} has {} elements, {} has {}", describe(*a), element_count(*a),
                               shape_text(ne), ne[0] * ne[1] * ne[2] * ne[3]));
  }
  CUDABK_ASSIGN(Tensor * t, view(a, ne, dense_strides(a->type, ne), 0));
  t->op = kOpReshape;
  t->name = a->name + " (reshaped)";
  return t;
}

Result<Tensor*> Graph::permute(Tensor* a, std::array<int, 4> axes) {
  std::array<bool, 4> seen{};
  Tensor t;
  for (int i = 0; i < 4; ++i) {
    if (axes[i] < 0 || axes[i] > 3 || seen[axes[i]]) {
      return invalid(fmt::format("permute: [{}] is not a permutation of 0..3", fmt::join(axes, ",")));
    }
    seen[axes[i]] = true;
    t.ne[axes[i]] = a->ne[i];
    t.nb[axes[i]] = a->nb[i];
  }
  t.name = a->name + " (permuted)";
  t.type = a->type;
  t.op = kOpPermute;
  t.params = OpParams::of(axes);
  t.src = {a};
  t.view_src = &a->root();
  t.view_offset = a->view_offset;
  t.usage = a->usage;
  return add(std::move(t), true);
}

Result<Tensor*> Graph::transpose(Tensor* a) {
  CUDABK_ASSIGN(Tensor * t, permute(a, {1, 0, 2, 3}));
  t->op = kOpTranspose;
  t->params = {};
  t->name = a->name + " (transposed)";
  return t;
}

Result<Tensor*> Graph::node(std::string_view op, OpParams params, DType type, Shape ne, std::vector<Tensor*> src) {
  CUDABK_TRY(check_shape(op, type, ne));
  Tensor t;
  t.name = fmt::format("{}#{}", op, tensors_.size());
  t.type = type;
  t.ne = ne;
  t.nb = dense_strides(type, ne);
  t.op = op;
  t.params = params;
  t.src = std::move(src);
  return add(std::move(t), true);
}

Result<Tensor*> Graph::node_into(std::string_view op, OpParams params, Tensor* target, std::vector<Tensor*> src) {
  Tensor t;
  t.name = fmt::format("{}#{}", op, tensors_.size());
  t.type = target->type;
  t.ne = target->ne;
  t.nb = target->nb;
  t.op = op;
  t.params = params;
  t.src = std::move(src);
  t.view_src = &target->root();
  t.view_offset = target->view_offset;
  t.usage = target->usage;
  return add(std::move(t), true);
}

}  // namespace cudabk

#include "translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ops/binary.h"
#include "ops/copy.h"
#include "ops/get_rows.h"
#include "ops/glu.h"
#include "ops/mul_mat.h"
#include "ops/rms_norm.h"
#include "ops/set_rows.h"

namespace cudabk::plugin {
namespace {

Shape shape_of(const ggml_tensor& t) { return {t.ne[0], t.ne[1], t.ne[2], t.ne[3]}; }

Strides strides_of(const ggml_tensor& t) {
  return {static_cast<int64_t>(t.nb[0]), static_cast<int64_t>(t.nb[1]), static_cast<int64_t>(t.nb[2]),
          static_cast<int64_t>(t.nb[3])};
}

template <class T>
T param(const ggml_tensor& t, int index) {
  static_assert(sizeof(T) == sizeof(int32_t));
  T value;
  std::memcpy(&value, &t.op_params[index], sizeof(T));
  return value;
}

class Translator {
 public:
  explicit Translator(const GraphScan& scan) : scan_(scan), known_(scan.tensor_count(), nullptr) {}

  Result<KeyedGraph> run(std::span<ggml_tensor* const> nodes) {
    note_written(nodes);
    for (const ggml_tensor* node : nodes) {
      if (has_work(*node)) {
        CUDABK_TRY(add(*node));
      }
    }
    return std::move(keyed_);
  }

  Result<KeyedGraph> run_alone(const ggml_tensor& node) {
    auto* only = const_cast<ggml_tensor*>(&node);  // only read
    note_written(std::span(&only, 1));
    CUDABK_TRY(add(node));
    return std::move(keyed_);
  }

 private:
  Status add(const ggml_tensor& node) {
    auto made = make(node);
    if (!made.ok()) {
      return std::move(made).error().with_context(node.name);
    }
    return take(node, **made);
  }

  // Roots that nodes write into are no constants, whatever buffer they are in.
  void note_written(std::span<ggml_tensor* const> nodes) {
    written_.assign(scan_.roots().size(), false);
    for (const ggml_tensor* node : nodes) {
      if (!is_view_node(*node) && node->view_src != nullptr) {
        written_[scan_.root_index(*node->view_src)] = true;
      }
    }
  }

  // The result of `node`, now that it exists; later nodes read it.
  Status take(const ggml_tensor& node, Tensor& made) {
    const Tensor& root = made.root();
    CUDABK_ASSIGN(const DType type, dtype_of(node.type));
    const bool in_place = node.view_src != nullptr;
    const bool same_memory = in_place ? &root == known_[scan_.id_of(*node.view_src)] &&
                                            made.view_offset == static_cast<int64_t>(node.view_offs)
                                      : made.view_src == nullptr;
    if (made.type != type || made.ne != shape_of(node) || made.nb != strides_of(node) || !same_memory) {
      return unsupported(fmt::format("{}: the result of {} would be {}, here it is {} {}", node.name, made.op,
                                     describe(made), dtype_name(type), shape_text(shape_of(node))));
    }
    made.name = node.name;
    made.is_output = scan_.must_exist(node);
    if (!in_place) {
      keyed_.roots.emplace_back(made.id, scan_.root_index(node));
    }
    known_[scan_.id_of(node)] = &made;
    return success();
  }

  Result<Tensor*> tensor(const ggml_tensor* t) {
    if (t == nullptr) {
      return unsupported("an operand is missing");
    }
    Tensor*& known = known_[scan_.id_of(*t)];
    if (known == nullptr) {
      CUDABK_ASSIGN(known, t->view_src != nullptr ? view(*t) : root(*t));
    }
    return known;
  }

  Result<Tensor*> root(const ggml_tensor& t) {
    const int index = scan_.root_index(t);
    const RootTraits traits = scan_.root_traits()[index];
    const Usage usage = traits.weights && !written_[index] ? Usage::kWeights : Usage::kCompute;
    CUDABK_ASSIGN(const Tensor checked, leaf_of(t, usage));
    CUDABK_ASSIGN(Tensor * leaf, keyed_.graph.leaf(t.name, checked.type, checked.ne, usage));
    keyed_.roots.emplace_back(leaf->id, index);
    return leaf;
  }

  // Of the root at once: ggml's views know it.
  Result<Tensor*> view(const ggml_tensor& t) {
    CUDABK_ASSIGN(Tensor * source, tensor(t.view_src));
    if (t.type != t.view_src->type) {
      return unsupported(fmt::format("{}: a view of another type than its source", t.name));
    }
    return keyed_.graph.view(source, shape_of(t), strides_of(t), static_cast<int64_t>(t.view_offs));
  }

  Result<Tensor*> make(const ggml_tensor& t);
  Result<Tensor*> make_binary(const ggml_tensor& t, Tensor* a, Tensor* b);
  Result<Tensor*> make_glu(const ggml_tensor& t, Tensor* a);

  const GraphScan& scan_;
  KeyedGraph keyed_;
  std::vector<Tensor*> known_;  // by id of the scan
  std::vector<bool> written_;   // by root index
};

Result<Tensor*> Translator::make_binary(const ggml_tensor& t, Tensor* a, Tensor* b) {
  const bool is_add = t.op == GGML_OP_ADD;
  if (t.view_src != nullptr) {  // take() checks that it is written over a
    return is_add ? add_inplace(keyed_.graph, a, b) : mul_inplace(keyed_.graph, a, b);
  }
  if (!is_add) {
    return mul(keyed_.graph, a, b);
  }
  CUDABK_ASSIGN(const DType type, dtype_of(t.type));
  return add_cast(keyed_.graph, a, b, type);
}

Result<Tensor*> Translator::make_glu(const ggml_tensor& t, Tensor* a) {
  if (param<int32_t>(t, 0) != GGML_GLU_OP_SWIGLU) {
    return unsupported("of the gated units only swiglu is done");
  }
  if (t.src[1] == nullptr) {
    return swiglu(keyed_.graph, a, param<int32_t>(t, 1) != 0);
  }
  CUDABK_ASSIGN(Tensor * gate, tensor(t.src[1]));
  return swiglu_split(keyed_.graph, a, gate);
}

Result<Tensor*> Translator::make(const ggml_tensor& t) {
  CUDABK_ASSIGN(Tensor * a, tensor(t.src[0]));
  Graph& graph = keyed_.graph;
  switch (t.op) {
    case GGML_OP_MUL_MAT: {
      CUDABK_ASSIGN(Tensor * x, tensor(t.src[1]));
      const bool exact = param<int32_t>(t, 0) == static_cast<int32_t>(Precision::kF32);
      return mul_mat(graph, a, x, {exact ? Precision::kF32 : Precision::kDefault});
    }
    case GGML_OP_ADD:
    case GGML_OP_MUL: {
      CUDABK_ASSIGN(Tensor * b, tensor(t.src[1]));
      return make_binary(t, a, b);
    }
    case GGML_OP_RMS_NORM: {
      const auto eps = param<float>(t, 0);
      return t.view_src != nullptr ? rms_norm_inplace(graph, a, eps) : rms_norm(graph, a, eps);
    }
    case GGML_OP_GLU:
      return make_glu(t, a);
    case GGML_OP_CPY:
    case GGML_OP_DUP:
    case GGML_OP_CONT: {
      if (t.view_src != nullptr) {
        CUDABK_ASSIGN(Tensor * target, view(t));
        return cpy(graph, a, target);
      }
      CUDABK_ASSIGN(const DType type, dtype_of(t.type));
      return type == a->type ? cont(graph, a, shape_of(t)) : cast(graph, a, type);
    }
    case GGML_OP_GET_ROWS: {
      CUDABK_ASSIGN(Tensor * index, tensor(t.src[1]));
      return get_rows(graph, a, index);
    }
    case GGML_OP_SET_ROWS: {
      CUDABK_ASSIGN(Tensor * index, tensor(t.src[1]));
      if (t.view_src == nullptr) {
        return unsupported("set_rows whose result is no view of the table");
      }
      CUDABK_ASSIGN(Tensor * table, view(t));
      return set_rows(graph, table, a, index);
    }
    default:
      return unsupported(fmt::format("there is no op of ggml's number {}", static_cast<int>(t.op)));
  }
}

}  // namespace

Result<DType> dtype_of(ggml_type type) {
  const auto wanted = static_cast<DType>(type);
  const bool known =
      std::any_of(std::begin(kDTypes), std::end(kDTypes), [&](const DTypeTraits& t) { return t.type == wanted; });
  return known ? Result<DType>(wanted) : unsupported(fmt::format("type {} is not known", static_cast<int>(type)));
}

Result<Tensor> leaf_of(const ggml_tensor& t, Usage usage) {
  Tensor leaf;
  CUDABK_ASSIGN(leaf.type, dtype_of(t.type));
  leaf.ne = shape_of(t);
  leaf.nb = dense_strides(leaf.type, leaf.ne);
  leaf.usage = usage;
  if (!has_no_elements(t) && leaf.nb != strides_of(t)) {
    return unsupported(fmt::format("{} owns memory that is not dense", t.name));
  }
  return leaf;
}

Result<KeyedGraph> translate(std::span<ggml_tensor* const> nodes, const GraphScan& scan) {
  return Translator(scan).run(nodes);
}

Result<KeyedGraph> translate_alone(const ggml_tensor& node, const GraphScan& scan) {
  return Translator(scan).run_alone(node);
}

}  // namespace cudabk::plugin

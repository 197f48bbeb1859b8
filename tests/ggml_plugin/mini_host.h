// What a ggml host does with the plugin, by hand: tensors and graphs are ggml's structs, everything else goes through
// the vtables. No function of ggml is linked.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "formats/dtypes.h"
#include "ggml_headers.h"

namespace cudabk::plugin_test {

constexpr uint64_t kSeed = 20261130;

// The plugin, loaded as a host loads it.
class Library {
 public:
  Library() {
    setenv("CUDABK_DEVICE", "host", 0);
    handle_ = dlopen(path().c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle_, nullptr) << dlerror();
    const auto init = reinterpret_cast<ggml_backend_init_t>(dlsym(handle_, "ggml_backend_init"));
    const auto score = reinterpret_cast<ggml_backend_score_t>(dlsym(handle_, "ggml_backend_score"));
    EXPECT_GT(score(), 0);
    registry = init();
    EXPECT_EQ(registry, init());
  }
  Library(const Library&) = delete;
  ~Library() { dlclose(handle_); }
  static std::string path() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libggml-cudabk.so";
  }
  // Is it in the process now?
  static bool is_loaded() {
    void* handle = dlopen(path().c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle != nullptr) {
      dlclose(handle);
    }
    return handle != nullptr;
  }
  ggml_backend_dev_t device() const { return registry->iface.get_device(registry, 0); }

  ggml_backend_reg_t registry = nullptr;

 private:
  void* handle_ = nullptr;
};

struct FreeBuffer {
  void operator()(ggml_backend_buffer* buffer) const {
    buffer->iface.free_buffer(buffer);
    delete buffer;  // as the host does
  }
};
using BufferPtr = std::unique_ptr<ggml_backend_buffer, FreeBuffer>;

struct FreeBackend {
  void operator()(ggml_backend* backend) const { backend->iface.free(backend); }
};
using BackendPtr = std::unique_ptr<ggml_backend, FreeBackend>;

inline BackendPtr make_backend(ggml_backend_dev_t device) {
  return BackendPtr(device->iface.init_backend(device, nullptr));
}

inline void set_dense_strides(ggml_tensor& t) {
  const auto type = static_cast<DType>(t.type);
  t.nb[0] = static_cast<size_t>(block_bytes(type));
  t.nb[1] = t.nb[0] * static_cast<size_t>(t.ne[0] / block_elements(type));
  t.nb[2] = t.nb[1] * static_cast<size_t>(t.ne[1]);
  t.nb[3] = t.nb[2] * static_cast<size_t>(t.ne[2]);
}

using Extents = std::array<int64_t, 4>;

// Tensors, and the nodes among them in execution order.
class Tensors {
 public:
  ggml_tensor* leaf(ggml_type type, Extents ne) {
    ggml_tensor& t = tensors_.emplace_back();
    t.type = type;
    std::copy(ne.begin(), ne.end(), t.ne);
    set_dense_strides(t);
    t.op = GGML_OP_NONE;
    std::snprintf(t.name, sizeof(t.name), "t%zu", tensors_.size());
    return &t;
  }
  ggml_tensor* node(ggml_op op, ggml_type type, Extents ne, std::initializer_list<ggml_tensor*> src) {
    ggml_tensor* t = leaf(type, ne);
    t->op = op;
    std::copy(src.begin(), src.end(), t->src);
    t->flags = wanted();
    nodes.push_back(t);
    return t;
  }
  // A view of the same shape that `op` writes into.
  ggml_tensor* node_into(ggml_op op, ggml_tensor* target, std::initializer_list<ggml_tensor*> src) {
    ggml_tensor* t = node(op, target->type, {target->ne[0], target->ne[1], target->ne[2], target->ne[3]}, src);
    std::copy(target->nb, target->nb + 4, t->nb);
    t->view_src = target->view_src != nullptr ? target->view_src : target;
    t->view_offs = target->view_offs;
    return t;
  }
  ggml_tensor* view(ggml_tensor* source, Extents ne, size_t offset) {
    ggml_tensor* t = node(GGML_OP_VIEW, source->type, ne, {source});
    std::copy(source->nb, source->nb + 4, t->nb);
    t->view_src = source->view_src != nullptr ? source->view_src : source;
    t->view_offs = source->view_offs + offset;
    return t;
  }
  ggml_tensor* mul_mat(ggml_tensor* w, ggml_tensor* x) {
    return node(GGML_OP_MUL_MAT, GGML_TYPE_F32, {w->ne[1], x->ne[1], x->ne[2], x->ne[3]}, {w, x});
  }
  ggml_tensor* rms_norm(ggml_tensor* x, float eps) {
    ggml_tensor* t = node(GGML_OP_RMS_NORM, GGML_TYPE_F32, {x->ne[0], x->ne[1], x->ne[2], x->ne[3]}, {x});
    std::memcpy(t->op_params, &eps, sizeof(eps));
    return t;
  }
  ggml_tensor* binary(ggml_op op, ggml_tensor* a, ggml_tensor* b) {
    return node(op, a->type, {a->ne[0], a->ne[1], a->ne[2], a->ne[3]}, {a, b});
  }
  static int wanted() {
#ifdef CUDABK_GGML_HAS_COMPUTE_FLAG
    return GGML_TENSOR_FLAG_COMPUTE;
#else
    return 0;
#endif
  }
  std::deque<ggml_tensor>& all() { return tensors_; }

  std::vector<ggml_tensor*> nodes;

 private:
  std::deque<ggml_tensor> tensors_;  // addresses last
};

// The graph of nodes [begin, end) with the counts of readers in all of them, as a host's scheduler cuts it.
class HostGraph {
 public:
  explicit HostGraph(Tensors& tensors, size_t begin = 0, size_t end = SIZE_MAX) : tensors_(tensors) {
    end = std::min(end, tensors.nodes.size());
    const size_t size = 4 * tensors.all().size() + 1;
    keys_.resize(size);
    used_.resize(size / 32 + 1);
    counts_.resize(size);
    graph.visited_hash_set = {size, used_.data(), keys_.data()};
    graph.use_counts = counts_.data();
    for (ggml_tensor* node : tensors.nodes) {
      place(node);
      for (ggml_tensor* s : node->src) {
        if (s != nullptr) {
          ++counts_[place(s)];
        }
      }
    }
    graph.nodes = tensors.nodes.data() + begin;
    graph.n_nodes = static_cast<int>(end - begin);
  }
  ggml_cgraph graph{};

 private:
  size_t place(ggml_tensor* t) {
    const size_t at = ggml_hash_find(&graph.visited_hash_set, t);
    keys_[at] = t;
    ggml_bitset_set(used_.data(), at);
    return at;
  }
  Tensors& tensors_;
  std::vector<ggml_tensor*> keys_;
  std::vector<ggml_bitset_t> used_;
  std::vector<int32_t> counts_;
};

// Places tensors that own memory one after the other in one buffer; views too get their addresses.
inline BufferPtr place(std::span<ggml_tensor* const> tensors, ggml_backend_buffer_type_t type,
                       ggml_backend_buffer_usage usage = GGML_BACKEND_BUFFER_USAGE_ANY) {
  const size_t alignment = type->iface.get_alignment(type);
  const auto bytes_of = [&](const ggml_tensor& t) {
    const size_t bytes = type->iface.get_alloc_size != nullptr ? type->iface.get_alloc_size(type, &t)
                                                               : t.nb[3] * static_cast<size_t>(t.ne[3]);
    return (bytes + alignment - 1) / alignment * alignment;
  };
  size_t total = 0;
  for (const ggml_tensor* t : tensors) {
    total += t->view_src == nullptr ? bytes_of(*t) : 0;
  }
  BufferPtr buffer(type->iface.alloc_buffer(type, total));
  EXPECT_NE(buffer, nullptr);
  auto* at = static_cast<char*>(buffer->iface.get_base(buffer.get()));
  for (ggml_tensor* t : tensors) {
    t->buffer = buffer.get();
    t->data = t->view_src == nullptr ? at : static_cast<char*>(t->view_src->data) + t->view_offs;
    if (buffer->iface.init_tensor != nullptr) {
      EXPECT_EQ(buffer->iface.init_tensor(buffer.get(), t), GGML_STATUS_SUCCESS);
    }
    at += t->view_src == nullptr ? bytes_of(*t) : 0;
  }
  buffer->usage = usage;  // hosts say it after allocating
  return buffer;
}

inline BufferPtr place_all(Tensors& tensors, ggml_backend_buffer_type_t type) {
  std::vector<ggml_tensor*> all;
  for (ggml_tensor& t : tensors.all()) {
    if (t.buffer == nullptr) {
      all.push_back(&t);
    }
  }
  return place(all, type);
}

template <class T>
void set(ggml_tensor* t, const std::vector<T>& values, size_t offset = 0) {
  ggml_backend_buffer_t buffer = t->buffer;
  buffer->iface.set_tensor(buffer, t, values.data(), offset, values.size() * sizeof(T));
}

template <class T>
std::vector<T> get(const ggml_tensor* t, size_t count, size_t offset = 0) {
  std::vector<T> values(count);
  ggml_backend_buffer_t buffer = t->buffer;
  buffer->iface.get_tensor(buffer, t, values.data(), offset, count * sizeof(T));
  return values;
}

inline std::vector<float> random_floats(int64_t count, uint64_t seed = kSeed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) {
    v = distribution(random);
  }
  return values;
}

inline void expect_near(const std::vector<float>& got, const std::vector<double>& want, double nmse) {
  ASSERT_EQ(got.size(), want.size());
  double error = 0, power = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    power += want[i] * want[i];
  }
  EXPECT_LE(error / power, nmse) << "seed " << kSeed;  // false for NaN
}

}  // namespace cudabk::plugin_test

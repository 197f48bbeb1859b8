#include "backend/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "backend/fusion.h"
#include "ops/frag_weights.h"
#include "ops/op_def.h"

namespace cudabk {
namespace {

constexpr int64_t kScratchAlignment = 256;

// FNV-1a, 64 bits: offset basis and prime of the published algorithm.
class Fingerprint {
 public:
  void add(const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) {
      hash_ = (hash_ ^ bytes[i]) * 0x100000001b3ULL;
    }
  }
  template <class T>
  void add_value(const T& value) {
    add(&value, sizeof(value));
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325ULL;
};

// Lifetime of a scratch block, in launches.
struct ScratchBlock {
  int64_t bytes = 0;
  size_t first = 0;  // launch that writes it
  size_t last = 0;   // last launch that reads it
};

class Planner final : public LowerContext {
 public:
  Planner(const Graph& graph, const DeviceInfo& device, const PlanOptions& options)
      : graph_(graph), device_(device), options_(options), readers_(graph.tensors().size()) {
    for (const Tensor* node : graph.nodes()) {
      for (const Tensor* src : node->src) {
        ++readers_[static_cast<size_t>(src->id)];
      }
    }
  }

  Result<Plan> run();

  const DeviceInfo& device() const override { return device_; }
  BufferRef data(const Tensor& t) override;
  BufferRef stored(const Tensor& root) override { return {BufferRef::Kind::kTensor, root.id, 0}; }
  BufferRef scratch(int64_t bytes) override;
  Shared shared_scratch(const Tensor& t, std::string_view tag, int64_t bytes) override;
  int readers(const Tensor& t) const override { return readers_[static_cast<size_t>(t.id)]; }
  Result<Choice> choose(const OpDef& op, const Problem& problem) override;

 private:
  Result<size_t> lower_at(size_t i, const FusionInput& in);  // nodes consumed
  Result<size_t> try_fusion(size_t i, const FusionInput& in);
  void append(std::vector<Launch> launches, int node);
  void forget_shared(const Tensor& written);
  void assign_scratch();

  struct SharedEntry {
    int tensor;
    std::string tag;
    BufferRef ref;
  };

  const Graph& graph_;
  const DeviceInfo& device_;
  const PlanOptions& options_;
  Plan plan_;
  int current_node_ = -1;
  std::vector<ScratchBlock> blocks_;
  std::vector<SharedEntry> shared_;
  std::vector<int> readers_;       // by tensor id
  std::vector<Launch> unpacking_;  // to be run before the launches that are being made
};

BufferRef Planner::data(const Tensor& t) {
  const Tensor& root = t.root();
  if (root.layout == WeightLayout::kRaw) {
    return {BufferRef::Kind::kTensor, root.id, t.view_offset};
  }
  const Shared raw = shared_scratch(root, "raw layout", byte_size(root));
  if (raw.fresh) {
    auto call = unpack_call(root);
    call.bind(call.args.src, stored(root));
    call.bind(call.args.dst, raw.ref);
    unpacking_.push_back(call.launch(fmt::format("unpack {}", dtype_name(root.type))));
  }
  return raw.ref + t.view_offset;
}

BufferRef Planner::scratch(int64_t bytes) {
  blocks_.push_back({std::max<int64_t>(bytes, 1), plan_.launches.size(), plan_.launches.size()});
  return {BufferRef::Kind::kScratch, static_cast<int>(blocks_.size()) - 1, 0};
}

LowerContext::Shared Planner::shared_scratch(const Tensor& t, std::string_view tag, int64_t bytes) {
  for (const SharedEntry& e : shared_) {
    if (e.tensor == t.id && e.tag == tag && blocks_[e.ref.index].bytes == std::max<int64_t>(bytes, 1)) {
      return {e.ref, false};
    }
  }
  const BufferRef ref = scratch(bytes);
  shared_.push_back({t.id, std::string(tag), ref});
  return {ref, true};
}

// What was derived from memory that a node now overwrites is void.
void Planner::forget_shared(const Tensor& written) {
  std::erase_if(shared_, [&](const SharedEntry& e) { return &graph_.tensors()[e.tensor]->root() == &written.root(); });
}

Result<Choice> Planner::choose(const OpDef& op, const Problem& problem) {
  Choice choice;
  if (const Family* forced = find_family(op.families(), options_.forced_family); forced != nullptr) {
    choice.config = complete_config(*forced, options_.forced_config);
    if (const Support s = forced->applicable(problem, choice.config, device_); !s) {
      return unsupported(fmt::format("{}: {} cannot run: {}", problem.text(), forced->name, s.reason));
    }
    choice.family = forced->name;
  } else {
    CUDABK_ASSIGN(choice, cudabk::choose(problem, device_, options_.profile->table(problem), op.families()));
  }
  plan_.choices.push_back({current_node_, problem, choice});
  return choice;
}

void Planner::append(std::vector<Launch> launches, int node) {
  const auto touch = [&](const BufferRef& ref) {
    if (ref.kind == BufferRef::Kind::kScratch) {
      blocks_[ref.index].last = std::max(blocks_[ref.index].last, plan_.launches.size());
    }
  };
  launches.insert(launches.begin(), std::make_move_iterator(unpacking_.begin()),
                  std::make_move_iterator(unpacking_.end()));
  unpacking_.clear();
  for (Launch& launch : launches) {
    if (const auto* kernel = std::get_if<KernelWork>(&launch.work)) {
      for (const Relocation& r : kernel->relocations) {
        touch(r.target);
      }
    } else if (const auto* gemm = std::get_if<GemmWork>(&launch.work)) {
      touch(gemm->a);
      touch(gemm->b);
      touch(gemm->c);
    } else {
      touch(std::get<FillWork>(launch.work).dst);
    }
    plan_.launches.push_back({std::move(launch), node});
  }
}

Result<size_t> Planner::try_fusion(size_t i, const FusionInput& in) {
  for (const FusionRule* rule : fusion_rules()) {
    FusionMatch match = rule->match(in, i);
    if (match.count == 0) {
      if (!match.near_miss.empty()) {
        plan_.fusions.push_back({std::string(rule->name()), static_cast<int>(i), 0, std::move(match.near_miss)});
      }
      continue;
    }
    if (options_.disabled_rules.contains(std::string(rule->name()))) {
      plan_.fusions.push_back({std::string(rule->name()), static_cast<int>(i), 0, "switched off"});
      continue;
    }
    const size_t choices_before = plan_.choices.size();
    const auto shared_before = shared_;  // what a refused lowering announced, nobody fills
    auto launches = rule->lower(in, i, *this);
    if (!launches.ok()) {
      if (launches.error().kind != ErrorKind::kUnsupported) {
        return std::move(launches).error();
      }
      plan_.choices.resize(choices_before);
      shared_ = shared_before;
      unpacking_.clear();
      plan_.fusions.push_back({std::string(rule->name()), static_cast<int>(i), 0, launches.error().message});
      continue;
    }
    const int last = static_cast<int>(i) + match.count - 1;
    append(std::move(launches).value(), last);
    forget_shared(*graph_.nodes()[last]);
    plan_.fusions.push_back({std::string(rule->name()), static_cast<int>(i), match.count, ""});
    return static_cast<size_t>(match.count);
  }
  return size_t{0};
}

Result<size_t> Planner::lower_at(size_t i, const FusionInput& in) {
  const Tensor& t = *graph_.nodes()[i];
  if (is_view_op(t) || is_empty(t)) {
    return size_t{1};
  }
  current_node_ = static_cast<int>(i);
  const OpDef* op = op_of(t);
  if (op == nullptr) {
    return unsupported(fmt::format("{}: there is no op '{}'", t.name, t.op));
  }
  if (const Support s = op->supports(t, device_); !s) {
    return unsupported(fmt::format("{} {}: {}", t.op, describe(t), s.reason));
  }
  if (options_.fusion) {
    CUDABK_ASSIGN(const size_t consumed, try_fusion(i, in));
    if (consumed > 0) {
      return consumed;
    }
  }
  auto launches = op->lower(t, *this);
  if (!launches.ok()) {
    return std::move(launches).error().with_context(fmt::format("{} {}", t.op, describe(t)));
  }
  append(std::move(launches).value(), static_cast<int>(i));
  forget_shared(t);
  return size_t{1};
}

// Offsets in one arena: each block takes the lowest place that is free during its lifetime.
void Planner::assign_scratch() {
  plan_.scratch_offsets.assign(blocks_.size(), 0);
  std::vector<size_t> placed;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const ScratchBlock& block = blocks_[b];
    int64_t offset = 0;
    for (const size_t other : placed) {  // sorted by offset
      const ScratchBlock& o = blocks_[other];
      const bool alive_together = o.first <= block.last && block.first <= o.last;
      const int64_t begin = plan_.scratch_offsets[other];
      if (alive_together && begin < offset + block.bytes && offset < begin + o.bytes) {
        offset = (begin + o.bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
      }
    }
    plan_.scratch_offsets[b] = offset;
    plan_.scratch_bytes = std::max(plan_.scratch_bytes, offset + block.bytes);
    const auto position = std::upper_bound(placed.begin(), placed.end(), b, [&](size_t x, size_t y) {
      return plan_.scratch_offsets[x] < plan_.scratch_offsets[y];
    });
    placed.insert(position, b);
  }
}

Result<Plan> Planner::run() {
  std::vector<int> uses(graph_.tensors().size(), 0);
  for (const auto& t : graph_.tensors()) {
    for (const Tensor* s : t->src) {
      ++uses[s->id];
    }
  }
  const FusionInput in{graph_, uses};
  for (size_t i = 0; i < graph_.nodes().size();) {
    CUDABK_ASSIGN(const size_t consumed, lower_at(i, in));
    i += consumed;
  }
  assign_scratch();
  plan_.fingerprint = fingerprint(graph_);
  return std::move(plan_);
}

}  // namespace

uint64_t fingerprint(const Graph& graph) {
  Fingerprint f;
  for (const Tensor* t : graph.nodes()) {
    f.add(t->op.data(), t->op.size());
    f.add_value(t->type);
    f.add_value(t->ne);
    f.add_value(t->nb);
    f.add(t->params.bytes().data(), t->params.bytes().size());
    f.add_value(t->view_offset);
    f.add_value(t->root().id);
    f.add_value(t->is_output);
    for (const Tensor* s : t->src) {
      f.add_value(s->id);
      f.add_value(s->type);
      f.add_value(s->usage);
      f.add_value(s->ne);
      f.add_value(s->nb);
      f.add_value(s->view_offset);
      f.add_value(s->root().layout);
    }
  }
  return f.value();
}

Result<Plan> make_plan(const Graph& graph, const DeviceInfo& device, const PlanOptions& options) {
  return Planner(graph, device, options).run();
}

std::vector<KernelKey> Plan::kernels() const {
  std::set<KernelKey> keys;
  for (const PlannedLaunch& l : launches) {
    if (const auto* kernel = std::get_if<KernelWork>(&l.launch.work)) {
      keys.insert(kernel->key);
    }
  }
  return {keys.begin(), keys.end()};
}

}  // namespace cudabk

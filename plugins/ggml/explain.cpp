#include "explain.h"

#include <fmt/format.h>

namespace cudabk::plugin {
namespace {

// Lines that repeat are written once, with their number: models repeat layers, and measuring hosts repeat nodes.
class Lines {
 public:
  Lines() = default;
  Lines(const Lines&) = delete;
  ~Lines() { flush(); }
  void add(std::string line) {
    if (line != last_) {
      flush();
      last_ = std::move(line);
    }
    ++count_;
  }

 private:
  void flush() {
    if (count_ > 0) {
      log_line(count_ == 1 ? last_ : fmt::format("{} ({} times)", last_, count_));
    }
    count_ = 0;
  }
  std::string last_;
  int count_ = 0;
};

std::string where_text(const Graph& graph, int node) { return node < 0 ? std::string() : graph.nodes()[node]->name; }

std::string launch_text(const Launch& launch) {
  if (const auto* kernel = std::get_if<KernelWork>(&launch.work)) {
    return fmt::format("{}: {} grid {}x{}x{} block {}", launch.label, kernel->key.entry, kernel->grid.x, kernel->grid.y,
                       kernel->grid.z, kernel->block.x);
  }
  if (const auto* gemm = std::get_if<GemmWork>(&launch.work)) {
    return fmt::format("{}: library product {} x {} x {}, batch {}", launch.label, gemm->call.m, gemm->call.n,
                       gemm->call.k, gemm->call.batch);
  }
  return fmt::format("{}: fill of {} bytes", launch.label, std::get<FillWork>(launch.work).bytes);
}

}  // namespace

void explain_plan(const PluginDevice& device, const Plan& plan, const Graph& graph) {
  log_line(fmt::format("graph of {} nodes on {} ({}, profile {}): {} launches, {} bytes of scratch",
                       graph.nodes().size(), device.name(), device.info().name, device.profile().source,
                       plan.launches.size(), plan.scratch_bytes));
  Lines lines;
  for (const auto& t : graph.tensors()) {
    if (t->layout == WeightLayout::kFrag) {
      lines.add(fmt::format("  layout {} {}: frag", t->name, describe(*t)));
    }
  }
  for (const ChoiceRecord& c : plan.choices) {
    const std::string rule = c.choice.rule < 0 ? "last resort" : fmt::format("rule {}", c.choice.rule);
    lines.add(fmt::format("  choice {} ({}): {} {} ({})", where_text(graph, c.node), c.problem.text(), c.choice.family,
                          config_text(c.choice.config), rule));
  }
  for (const FusionRecord& f : plan.fusions) {
    lines.add(fmt::format("  fusion {} at {}: {}", f.rule, where_text(graph, f.node),
                          f.count > 0 ? fmt::format("{} nodes", f.count) : "no: " + f.near_miss));
  }
  for (const PlannedLaunch& l : plan.launches) {
    lines.add(fmt::format("  launch {}", launch_text(l.launch)));
  }
}

void explain_times(const PluginDevice& device, const HostTimes& times, const GraphCacheCounters& counters) {
  const auto per = [](double total, int64_t count) { return count == 0 ? 0.0 : total / static_cast<double>(count); };
  log_line(
      fmt::format("{}: {} graphs computed, {} nodes; {} planned, {} bound to other addresses, {} seen before there, {} "
                  "evicted, {} fusions given up for overlapping memory",
                  device.name(), times.graphs, times.nodes, counters.added, counters.moved, counters.hits,
                  counters.evicted, counters.unfused));
  log_line(
      fmt::format("{}: host time per node: {:.0f} ns to recognise a graph; {:.0f} ns for all of a graph seen "
                  "before, its launch included",
                  device.name(), per(times.scan_ns, times.nodes), per(times.known_ns, times.known_nodes)));
}

}  // namespace cudabk::plugin

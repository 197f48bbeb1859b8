#include "platform/host_instances.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "host_instance_table.h"  // generated: host_instance_chunks()
#include "kernel_text.h"

namespace cudabk {

namespace {

auto order_of(const HostInstance& instance) { return std::tie(instance.header, instance.entry); }

std::vector<HostInstance> collect() {
  std::vector<HostInstance> all;
  for (std::span<const HostInstance> chunk : host_instance_chunks()) {
    all.insert(all.end(), chunk.begin(), chunk.end());
  }
  std::sort(all.begin(), all.end(),
            [](const HostInstance& a, const HostInstance& b) { return order_of(a) < order_of(b); });
  return all;
}

}  // namespace

std::span<const HostInstance> host_instances() {
  static const std::vector<HostInstance> all = collect();
  return all;
}

const HostInstance* find_host_instance(std::string_view header, std::string_view entry) {
  const std::string text = normalized_entry(entry);
  const std::string_view wanted = text;
  const std::span<const HostInstance> all = host_instances();
  const auto found = std::lower_bound(all.begin(), all.end(), std::tie(header, wanted),
                                      [](const HostInstance& a, const auto& key) { return order_of(a) < key; });
  return found != all.end() && found->header == header && found->entry == wanted ? &*found : nullptr;
}

}  // namespace cudabk

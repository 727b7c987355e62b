#include "topology/formats/graph_file.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "lib/base/counted.hpp"
#include "topology/formats/told_wiring_file.hpp"
#include "topology/graph_wiring.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

constexpr auto kCableKeys = std::to_array<std::string_view>(
    {"server", "nic", "switch", "to", "to-nic", "switches", "rate", "latency", "state", "cables"});
constexpr auto kGraphSwitchesKeys = std::to_array<std::string_view>({"count", "names", "assumed"});

/// The most servers and switches of a file.
constexpr std::int64_t kMostNodes = std::int64_t{1} << 20;

class GraphReader {
 public:
  GraphReader(const FileValues& values, const YamlNode& root,
              const std::unordered_map<std::string, std::int64_t>& by_name, TopologyFile& file)
      : values_(values), root_(root), by_name_(by_name), file_(file) {}

  Result<void> read() {
    const std::int64_t servers = file_.topology.num_servers();
    for (std::int64_t server = 0; server < servers; ++server)
      graph_.nodes.push_back({.is_switch = false, .id = server, .name = fmt::format("<{}>", server)});
    usual_.bandwidth_bytes_per_s = kDefaultBandwidthBytesPerS;
    usual_.latency_ns = kDefaultLatencyNs;
    if (auto read = read_rates(root_, usual_); !read) return read;
    if (auto read = read_switches(); !read) return read;
    const YamlNode* cables = FileValues::find(root_, "cables");
    if (cables == nullptr)
      return values_.bad(root_,
                         "the key cables is missing; list such as {server: 0, nic: 0, switch: leaf 0}");
    if (auto list = values_.sequence(*cables); !list) return list;
    for (const YamlNode& node : cables->items) {
      if (auto done = read_cable(node); !done) return done;
    }
    auto made = make_graph_topology(std::move(graph_));
    if (!made) return values_.bad(*cables, made.error().message);
    file_.topology = std::move(*made);
    return {};
  }

 private:
  Result<void> read_rates(const YamlNode& node, GraphLink& link) {
    if (const YamlNode* rate = FileValues::find(node, "rate")) {
      const auto value = values_.rate(*rate);
      if (!value) return fail(value.error());
      link.bandwidth_bytes_per_s = *value;
    }
    if (const YamlNode* latency = FileValues::find(node, "latency")) {
      const auto value = values_.latency_ns(*latency);
      if (!value) return fail(value.error());
      link.latency_ns = *value;
    }
    return {};
  }

  Result<void> read_switches() {
    const YamlNode* switches = FileValues::find(root_, "switches");
    if (switches == nullptr) return {};
    if (auto known = values_.keys(*switches, "switches", kGraphSwitchesKeys); !known) return known;
    const auto names = read_switch_names(values_, *switches);
    if (!names) return fail(names.error());
    for (const std::string& name : *names) {
      const auto number = static_cast<std::int64_t>(graph_.nodes.size());
      switch_of_.emplace(name, number);
      graph_.nodes.push_back({.is_switch = true, .id = number - file_.topology.num_servers(), .name = name});
    }
    if (auto read = read_assumed_switches(values_, *switches, *names, file_.told); !read) return read;
    const YamlNode* count = FileValues::find(*switches, "count");
    if (count == nullptr) return {};
    const auto number = values_.number(*count, 0, kMostNodes);
    if (!number) return fail(number.error());
    if (*number == static_cast<std::int64_t>(switch_of_.size())) return {};
    return values_.bad(
        *count, fmt::format("count is {}, but names has {}", *number, counted(switch_of_.size(), "switch")));
  }

  Result<std::int64_t> read_switch(const YamlNode& node) {
    const auto text = values_.text(node);
    if (!text) return fail(text.error());
    const auto found = switch_of_.find(*text);
    if (found != switch_of_.end()) return found->second;
    return values_.bad(node,
                       fmt::format("unknown switch {}; list it under switches: names", in_quotes(*text)));
  }

  Result<void> read_server_end(const YamlNode& cable, const char* key, const char* nic_key,
                               std::int64_t& server, Rail& nic) {
    const YamlNode* node = FileValues::find(cable, key);
    const YamlNode* nic_node = FileValues::find(cable, nic_key);
    if (node == nullptr || nic_node == nullptr)
      return values_.bad(cable, fmt::format("{} and {} belong together; write both", key, nic_key));
    const auto found = values_.server(*node, file_, by_name_);
    if (!found) return fail(found.error());
    const auto number = values_.number(*nic_node, 0, kMaxRails - 1);
    if (!number) return fail(number.error());
    server = *found;
    nic = static_cast<Rail>(*number);
    return {};
  }

  Result<void> read_ends(const YamlNode& node, GraphLink& link) {
    if (const YamlNode* switches = FileValues::find(node, "switches")) {
      for (const char* key : {"server", "nic", "switch", "to", "to-nic"}) {
        if (const YamlNode* extra = FileValues::find(node, key))
          return values_.bad(*extra, fmt::format("{} is for cables of servers; leave it out", key));
      }
      if (auto list = values_.sequence(*switches); !list) return list;
      if (switches->items.size() != 2)
        return values_.bad(*switches, fmt::format("switches has {}; a cable joins two",
                                                  counted(switches->items.size(), "name")));
      const auto a = read_switch(switches->items[0]), b = read_switch(switches->items[1]);
      if (!a) return fail(a.error());
      if (!b) return fail(b.error());
      link.a = *a;
      link.b = *b;
      return {};
    }
    if (auto read = read_server_end(node, "server", "nic", link.a, link.a_port); !read) return read;
    if (const YamlNode* name = FileValues::find(node, "switch")) {
      const auto found = read_switch(*name);
      if (!found) return fail(found.error());
      link.b = *found;
      return {};
    }
    return read_server_end(node, "to", "to-nic", link.b, link.b_port);
  }

  Result<void> read_cable(const YamlNode& node) {
    if (auto known = values_.keys(node, "a cable", kCableKeys); !known) return known;
    GraphLink link = usual_;
    if (auto read = read_ends(node, link); !read) return read;
    if (link.a == link.b)
      return values_.bad(node, "the cable leads back to where it begins; it joins two devices");
    for (const auto& [server, nic] : {std::pair(link.a, link.a_port), std::pair(link.b, link.b_port)}) {
      if (graph_.nodes[static_cast<std::size_t>(server)].is_switch) continue;
      const auto [known, is_new] = line_of_.try_emplace({server, nic}, node.line);
      if (!is_new)
        return values_.bad(
            node, fmt::format("NIC {} of server {} has a cable already, that of line {}; a NIC has one", nic,
                              file_.server_names.empty() ? std::to_string(server)
                                                         : in_quotes(file_.server_name(server)),
                              known->second));
    }
    if (auto read = read_rates(node, link); !read) return read;
    auto state = read_link_state(values_, node, link.bandwidth_bytes_per_s);
    if (!state) return fail(state.error());
    link.bandwidth_bytes_per_s = state->bandwidth_bytes_per_s;
    link.up = state->up;
    if (state->cables) {
      const bool is_between_switches = graph_.nodes[static_cast<std::size_t>(link.a)].is_switch;
      if (!is_between_switches || state->cables->empty())
        return values_.bad(node, is_between_switches
                                     ? "a graph lists the cables that are there; leave the cable out"
                                     : "cables is for two switches; list each cable of a server");
      if (!file_.told.cables.emplace(key_of(graph_, link), *std::move(state->cables)).second)
        return values_.bad(node, "the two switches occur twice; list their cables once");
    }
    graph_.links.push_back(link);
    return {};
  }

  const FileValues& values_;
  const YamlNode& root_;
  const std::unordered_map<std::string, std::int64_t>& by_name_;
  TopologyFile& file_;
  Graph graph_;
  GraphLink usual_;
  std::unordered_map<std::string, std::int64_t> switch_of_;
  std::map<std::pair<std::int64_t, Rail>, std::size_t> line_of_;  ///< of the cables of servers, by their NICs
};

}  // namespace

Result<void> begin_graph(const FileValues& values, const YamlNode& root, TopologyFile& file) {
  for (const char* key : {"levels", "links", "relay"}) {
    if (const YamlNode* extra = FileValues::find(root, key))
      return values.bad(*extra,
                        fmt::format("{} is not for shape: graph, whose cables tell all; leave it out", key));
  }
  const YamlNode* servers = FileValues::find(root, "servers");
  for (const char* key : {"devices", "other-devices"}) {
    const YamlNode* extra = servers == nullptr ? nullptr : FileValues::find(*servers, key);
    if (extra != nullptr)
      return values.bad(
          *extra, fmt::format("{} is not for shape: graph, where NICs have numbers; leave it out", key));
  }
  const YamlNode* count = servers == nullptr ? nullptr : FileValues::find(*servers, "count");
  if (count == nullptr)
    return values.bad(root, "servers: count is missing; a graph needs it, such as servers: {count: 8}");
  const auto number = values.number(*count, 1, kMostNodes);
  if (!number) return fail(number.error());
  Topology& topology = file.topology;
  topology.family = Family::kGraph;
  topology.spec = std::string(kGraphShape);
  topology.name = "Graph";
  if (*number > 1) topology.levels.push_back({.name = "network", .radix = *number, .rails = {}});
  return {};
}

Result<void> read_graph(const FileValues& values, const YamlNode& root,
                        const std::unordered_map<std::string, std::int64_t>& by_name, TopologyFile& file) {
  return GraphReader(values, root, by_name, file).read();
}

}  // namespace hips::topology

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/families/family.hpp"
#include "topology/formats/graph_file.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/part.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/formats/yaml_tree.hpp"
#include "topology/graph_wiring.hpp"
#include "topology/names.hpp"
#include "topology/rates.hpp"

namespace hips::topology {
namespace {

/// A cable takes six of the kMostYamlNodes values.
constexpr std::int64_t kMostListedCables = 60'000;
/// Of graphs, which need a line for each cable.
constexpr std::int64_t kMostGraphCables = 120'000;

std::string flow_list(const std::vector<std::string>& values) {
  std::vector<std::string> scalars;
  for (const std::string& value : values) scalars.push_back(yaml_scalar(value));
  return fmt::format("[{}]", fmt::join(scalars, ", "));
}

class FileWriter {
 public:
  explicit FileWriter(const TopologyFile& file) : file_(file), topology_(file.topology) {}

  std::string write(bool all_cables, std::string_view spec = "") {
    text_ = fmt::format("hips-topology: {}\n", kTopologyFileVersion);
    if (!spec.empty()) text_ += fmt::format("spec: {}\n", yaml_scalar(spec));
    text_ += fmt::format("shape: {}\nranks-per-server: {}\n", yaml_scalar(topology_shape(topology_)),
                         topology_.ranks_per_server);
    const bool graph = topology_.family == Family::kGraph;
    if (!graph) {
      text_ += fmt::format("relay: {}\n",
                           topology_.servers_relay && !topology_.relay_off && topology_.part.empty());
    }
    const auto levels = graph ? std::span<const Level>() : network_levels(topology_);
    if (!levels.empty()) text_ += "levels:\n";
    for (const Level& level : levels) {
      text_ += fmt::format("  - {{name: {}, radix: {}, kind: {}, nics: [{}], rate: {}, latency: {}}}\n",
                           yaml_scalar(level.name), level.radix, to_string(level.kind),
                           fmt::join(level.rails, ", "), rate_text(level.bandwidth_bytes_per_s),
                           latency_text(level.latency_ns));
    }
    text_ += fmt::format("servers:\n  count: {}\n", topology_.num_servers());
    if (!file_.server_names.empty()) text_ += "  names:\n";
    for (const std::string& name : file_.server_names) text_ += fmt::format("    - {}\n", yaml_scalar(name));
    if (!file_.devices.empty()) text_ += fmt::format("  devices: {}\n", flow_list(file_.devices));
    if (!file_.other_devices.empty()) text_ += "  other-devices:\n";
    for (const auto& [server, devices] : file_.other_devices)
      text_ += fmt::format("    - {{server: {}, devices: {}}}\n", server_key(server), flow_list(devices));
    text_ += fmt::format("switches:\n  count: {}\n", topology_.num_switches);
    if (graph) {
      list_switches();
      list_cables();
    } else if (all_cables) {
      list_cables();
    } else {
      list_overrides();
    }
    return std::move(text_);
  }

 private:
  [[nodiscard]] std::string server_key(std::int64_t server) const {
    return file_.server_names.empty() ? fmt::format("{}", server)
                                      : yaml_scalar(file_.server_names[static_cast<std::size_t>(server)]);
  }

  void line_of(const std::string& ends, double bandwidth, bool up, const std::string& latency = "") {
    text_ += fmt::format("  - {{{}, rate: {}{}{}}}\n", ends, rate_text(bandwidth), latency,
                         up ? "" : ", state: down");
  }

  void list_overrides() {
    if (!topology_.overrides.empty()) text_ += "links:\n";
    for (const LinkOverride& link : topology_.overrides) {
      line_of(link.server >= 0
                  ? fmt::format("server: {}, nic: {}", server_key(link.server), link.rail)
                  : fmt::format("switches: [{}, {}]", yaml_scalar(link.lower), yaml_scalar(link.upper)),
              link.bandwidth_bytes_per_s, link.up);
    }
  }

  void list_switches() {
    const std::vector<GraphNode>& nodes = topology_.wiring.value->graph.nodes;
    if (topology_.num_switches > 0) text_ += "  names:\n";
    for (const GraphNode& node : nodes)
      if (node.is_switch) text_ += fmt::format("    - {}\n", yaml_scalar(node.name));
  }

  void list_cables() {
    const Graph graph = topology_.graph();
    const bool whole = topology_.family == Family::kGraph;
    if (!graph.links.empty() || whole) text_ += whole ? "cables:\n" : "links:\n";
    const auto name = [&](std::int64_t node) {
      return yaml_scalar(graph.nodes[static_cast<std::size_t>(node)].name);
    };
    const std::int64_t servers = topology_.num_servers();
    for (const GraphLink& link : graph.links) {
      std::string ends;
      if (link.a >= servers) {
        ends = fmt::format("switches: [{}, {}]", name(link.a), name(link.b));
      } else if (link.b >= servers) {
        ends = fmt::format("server: {}, nic: {}, switch: {}", server_key(link.a), link.a_port, name(link.b));
      } else {
        ends = fmt::format("server: {}, nic: {}, to: {}, to-nic: {}", server_key(link.a), link.a_port,
                           server_key(link.b), link.b_port);
      }
      line_of(ends, link.bandwidth_bytes_per_s, link.up,
              whole ? fmt::format(", latency: {}", latency_text(link.latency_ns)) : "");
    }
  }

  const TopologyFile& file_;
  const Topology& topology_;
  std::string text_;
};

}  // namespace

std::string topology_shape(const Topology& topology) {
  if (topology.family == Family::kGraph) return std::string(kGraphShape);
  // The name "BCube(2x4x3), 2 ranks per server" gives bcube:2x4x3 even if the spec names a file.
  const std::string_view name = topology.name;
  const std::size_t open = name.find('('), close = name.find(')');
  const std::string in_use =
      topology.part.empty() ? std::string() : fmt::format("[{}]", part_text(topology.part));
  return value_or_throw(parse(fmt::format("{}:{}{}", to_string(topology.family),
                                          name.substr(open + 1, close - open - 1), in_use)))
      .spec;
}

bool has_plain_spec(const Topology& topology) {
  const auto levels = network_levels(topology);
  return topology.family != Family::kGraph && !topology.relay_off && topology.overrides.empty() &&
         std::ranges::all_of(levels, [&](const Level& level) {
           return level.bandwidth_bytes_per_s == levels.front().bandwidth_bytes_per_s &&
                  level.latency_ns == kDefaultLatencyNs;
         });
}

Result<std::string> spec_with_rates(std::string_view name, const TopologyFile& file) {
  const Topology& topology = file.topology;
  const std::string ranks =
      topology.ranks_per_server > 1 ? fmt::format("/{}", topology.ranks_per_server) : "";
  if (!has_plain_spec(topology)) {
    const auto text = topology_file_text(file, false);
    if (!text) return fail(text.error());
    return fmt::format("file:{}#{:016x}{}", name, text_digest(*text), ranks);
  }
  std::string spec = topology.spec;
  if (spec.ends_with(ranks)) spec.resize(spec.size() - ranks.size());
  if (const auto levels = network_levels(topology);
      !levels.empty() && levels.front().bandwidth_bytes_per_s != kDefaultBandwidthBytesPerS)
    spec += "@" + rate_text(levels.front().bandwidth_bytes_per_s);
  return spec + ranks;
}

Result<std::string> topology_file_text(const TopologyFile& file, bool all_cables) {
  const bool is_graph = file.topology.family == Family::kGraph;
  if (is_graph && file.topology.num_links > kMostGraphCables)
    return fail(Code::kUnsupported,
                fmt::format("a graph of {} cables (valid: up to {}); choose a part by --hosts or --switches",
                            file.topology.num_links, kMostGraphCables));
  if (!is_graph && all_cables && file.topology.num_links > kMostListedCables) {
    return fail(
        Code::kUnsupported,
        fmt::format("topology \"{}\" has {} cables (valid: up to {}); without --verbose only those that "
                    "differ from their level are listed",
                    file.topology.spec, file.topology.num_links, kMostListedCables));
  }
  return FileWriter(file).write(all_cables);
}

std::string nameless_topology_text(const TopologyFile& file) {
  TopologyFile nameless;
  nameless.topology = file.topology;
  return FileWriter(nameless).write(false, has_plain_spec(file.topology) ? "" : file.topology.spec);
}

std::string TopologyFile::server_name(std::int64_t server) const {
  if (!server_names.empty()) return server_names[static_cast<std::size_t>(server)];
  return server_address(topology, server);
}

std::string TopologyFile::device(std::int64_t server, Rail rail) const {
  const auto other = other_devices.find(server);
  const auto& names = other == other_devices.end() ? devices : other->second;
  return names.empty() ? "" : names[static_cast<std::size_t>(rail)];
}

}  // namespace hips::topology

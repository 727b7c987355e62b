#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/families/family.hpp"
#include "topology/formats/graph_file.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/part.hpp"
#include "topology/formats/told_wiring.hpp"
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
    if (file_.notes && !file_.notes->empty()) text_ += "notes:\n";
    for (const std::string& note : file_.notes.value_or(std::vector<std::string>()))
      text_ += fmt::format("  - {}\n", yaml_scalar(note));
    if (!graph) list_levels();
    text_ += fmt::format("servers:\n  count: {}\n", topology_.num_servers());
    if (!file_.server_names.empty()) text_ += "  names:\n";
    for (const std::string& name : file_.server_names) text_ += fmt::format("    - {}\n", yaml_scalar(name));
    if (!file_.devices.empty()) text_ += fmt::format("  devices: {}\n", flow_list(file_.devices));
    if (!file_.other_devices.empty()) text_ += "  other-devices:\n";
    for (const auto& [server, devices] : file_.other_devices)
      text_ += fmt::format("    - {{server: {}, devices: {}}}\n", server_key(server), flow_list(devices));
    list_switches();
    if (graph || all_cables || !file_.told.switch_names.empty() || !file_.told.cables.empty()) {
      list_cables(graph || all_cables);
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

  void list_levels() {
    const auto levels = network_levels(topology_);
    if (!levels.empty()) text_ += "levels:\n";
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const Level& level = levels[i];
      const std::string rate =
          file_.told.assumed_rates.contains(i) ? "" : ", rate: " + rate_text(level.bandwidth_bytes_per_s);
      const std::int64_t cables = file_.told.level_cables.empty() ? 1 : file_.told.level_cables[i];
      text_ += fmt::format("  - {{name: {}, radix: {}, kind: {}, nics: [{}]{}, latency: {}{}}}\n",
                           yaml_scalar(level.name), level.radix, to_string(level.kind),
                           fmt::join(level.rails, ", "), rate, latency_text(level.latency_ns),
                           cables > 1 ? fmt::format(", cables: {}", cables) : "");
    }
  }

  void line_of(const std::string& ends, const std::string& rate, bool up, const std::string& latency = "") {
    text_ += fmt::format("  - {{{}{}{}{}}}\n", ends, rate, latency, up ? "" : ", state: down");
  }

  /// Of a link that consists of other cables than those of its level.
  void line_of_cables(const std::string& ends, const GraphLink& link, const std::vector<double>& cables,
                      const std::string& latency) {
    const bool are_alike = std::ranges::all_of(cables, [&](double rate) { return rate == cables.front(); });
    if (cables.empty()) {
      text_ += fmt::format("  - {{{}{}, state: missing}}\n", ends, latency);
    } else if (are_alike) {
      text_ +=
          fmt::format("  - {{{}, rate: {}{}, cables: {}{}}}\n", ends, rate_text(link.bandwidth_bytes_per_s),
                      latency, cables.size(), link.up ? "" : ", state: down");
    } else {
      std::vector<std::string> rates;
      for (const double rate : cables) rates.push_back(rate > 0 ? rate_text(rate) : "down");
      text_ += fmt::format("  - {{{}{}, cables: [{}]}}\n", ends, latency, fmt::join(rates, ", "));
    }
  }

  void list_overrides() {
    if (!topology_.overrides.empty()) text_ += "links:\n";
    for (const LinkOverride& link : topology_.overrides) {
      line_of(link.server >= 0
                  ? fmt::format("server: {}, nic: {}", server_key(link.server), link.rail)
                  : fmt::format("switches: [{}, {}]", yaml_scalar(link.lower), yaml_scalar(link.upper)),
              rate_of(link.bandwidth_bytes_per_s), link.up);
    }
  }

  static std::string rate_of(double bandwidth) { return fmt::format(", rate: {}", rate_text(bandwidth)); }

  void list_switches() {
    text_ += fmt::format("switches:\n  count: {}\n", topology_.num_switches);
    std::vector<std::string> names = file_.told.switch_names;
    if (topology_.family == Family::kGraph) {
      for (const GraphNode& node : topology_.wiring.value->graph.nodes)
        if (node.is_switch) names.push_back(node.name);
    }
    if (!names.empty()) text_ += "  names:\n";
    for (const std::string& name : names) text_ += fmt::format("    - {}\n", yaml_scalar(name));
    if (!file_.told.assumed_switches.empty()) text_ += "  assumed:\n";
    for (const std::int64_t number : file_.told.assumed_switches)
      text_ += fmt::format("    - {}\n", yaml_scalar(names[static_cast<std::size_t>(number)]));
  }

  /// All of them, or those that are not as their level says.
  void list_cables(bool all) {
    const Graph graph = topology_.graph();
    Topology plain = topology_;
    plain.overrides.clear();
    const Graph usual = plain.graph();
    const auto levels = levels_of_links(topology_);
    const bool whole = topology_.family == Family::kGraph;
    const char* head = whole ? "cables:\n" : "links:\n";
    if (whole) text_ += std::exchange(head, "");
    const auto name = [&](std::int64_t node) {
      return yaml_scalar(name_in_links(file_.told, graph.nodes[static_cast<std::size_t>(node)]));
    };
    const std::int64_t servers = topology_.num_servers();
    for (std::size_t i = 0; i < graph.links.size(); ++i) {
      const GraphLink& link = graph.links[i];
      const auto own = file_.told.cables.find(key_of(graph, link));
      const bool has_own_cables = own != file_.told.cables.end();
      const bool has_usual_rate = link.bandwidth_bytes_per_s == usual.links[i].bandwidth_bytes_per_s;
      if (!all && !has_own_cables && link.up && has_usual_rate) continue;
      text_ += std::exchange(head, "");
      std::string ends;
      if (link.a >= servers) {
        ends = fmt::format("switches: [{}, {}]", name(link.a), name(link.b));
      } else if (link.b >= servers) {
        ends = fmt::format("server: {}, nic: {}, switch: {}", server_key(link.a), link.a_port, name(link.b));
      } else {
        ends = fmt::format("server: {}, nic: {}, to: {}, to-nic: {}", server_key(link.a), link.a_port,
                           server_key(link.b), link.b_port);
      }
      const std::string latency = whole ? fmt::format(", latency: {}", latency_text(link.latency_ns)) : "";
      if (has_own_cables) {
        line_of_cables(ends, link, own->second, latency);
      } else {
        const bool is_assumed = has_usual_rate && file_.told.assumed_rates.contains(levels[i]);
        line_of(ends, is_assumed ? "" : rate_of(link.bandwidth_bytes_per_s), link.up, latency);
      }
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

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <hips/topology.hpp>

#include "lib/base/counted.hpp"
#include "lib/base/result.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/common/job_option.hpp"
#include "tools/hips/common/place_names.hpp"
#include "tools/hips/common/reading_options.hpp"
#include "tools/hips/common/topology_option.hpp"
#include "tools/hips/health/counts.hpp"
#include "tools/hips/health/report.hpp"
#include "tools/hips/picture/dot.hpp"
#include "tools/hips/picture/svg.hpp"
#include "topology/cables.hpp"
#include "topology/families/family.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/names.hpp"
#include "topology/parts/components.hpp"
#include "topology/spec.hpp"
#include "topology/walk.hpp"

// Text and JSON are printed piece by piece, so that a million servers take no memory. Lists of servers are
// printed with --verbose only.

namespace hips::cli {

namespace {

struct TopoOptions {
  std::string spec;
  std::string slurm;  ///< a topology.conf or topology.yaml instead of `spec`
  std::shared_ptr<ReadingArguments> reading;
  JobArguments job;
  std::string format = "text";
  bool verbose = false;
  bool json = false;
  bool only_spec = false;
};

constexpr const char* kTopoFooter = R"(Topologies:
  bcube:n,k  bcube:AxBxC   server-centric: k+1 levels of n-port switches, or one radix for each level
  torus:AxBxC              two NICs and a wrapped ring of cables for each dimension
  mesh:AxBxC               torus without wrap-around: lines of cables; NICs at the edges are unconnected
  fattree:k                k-port switches, k^3/4 servers
  leafspine:l,s[,spines]   l leaf switches of s servers, each with a cable to every spine (s spines: no oversubscription)
  rail:servers,rails       one switch for each rail
  switch:servers           one switch, one NIC per server
  Append @RATE for the rate of every NIC (25Gb, 2.5Gb, 100Mb) and /RANKS for the ranks of each server: bcube:3,1@25Gb/2
  FILE                     a topology file; Slurm's topology.conf or topology.yaml, or what scontrol show topology prints; or a list
                           of cables: what ibnetdiscover or lldpctl prints (of one host a file, in a folder), a table as NetBox,
                           SONiC, UFM or Arista AVD have it, DOT, containerlab, an edge list of ns-3, a platform of SimGrid.
                           Several files are those of lldpctl, one of each host.
                           --format yaml writes a topology file, with -v with every cable. docs/topologies.md has the
                           format, examples/topologies/ has examples

Of Slurm's files, trees and blocks become switch:, leafspine: or fattree:, with places empty where switches have fewer
children than others, and without oversubscription, because the file does not tell the uplinks. Rings and tori become
torus:, with NIC 0 as x+; if there are several, --slurm-topology NAME:RING selects one. All commands take such a file with
-t. With one rank per server, start rank r on the r-th node of --json.

hips topo discover shows the NICs of this server; between the ranks of a job it drafts a topology file.

After the summary come lines that say what an administrator should know, if there is any: tiers and oversubscription, uneven
switches, cables unlike others of their kind, single points of failure, servers with fewer NICs, and the predicted time of an
allreduce of 16 MiB. hips topo diff OLD NEW compares two topologies.

--hostfile and --nodelist select the servers of a job, such as --nodelist "$SLURM_JOB_NODELIST". Servers keep their order.
Where servers relay and the job is not connected without others, a note names those that have to relay for it.

JSON keys:
  spec name family servers ranks ranks_per_server nics_per_server switches cables servers_relay
  switches_assumed cables_assumed: that plans use, beside those that the file tells; switches_replaced[]: names of switches of
                  the file whose place the assumed ones take
  diameter_hops   null: the servers are not connected
  levels[]:       name radix kind ("switch", "ring", "line", "tree", "node") nics[] bandwidth_bytes_per_s bandwidth_assumed latency_ns
                  (a node level is shared memory: no NICs, and rates of 0)
  with --verbose, server_list[]:
                  server address first_rank nics[]: nic switch (null: a cable to a server) and
                  neighbours[]: level (index in levels[]) server nic
  with names in a file, nodes[]: names in the order of the servers
  of descriptions of clusters, and topology files made of them, notes[]: what was ignored or assumed; of all, which servers relay
                  for the job
  health (null above 100000 cables): switches[] uneven_leaves[] uneven_uplinks[] missing_cables[] unlike_cables[]
                  single_points[] servers_with_one_cable servers_with_fewer_nics[], and of an allreduce of `bytes`: seconds
                  leaf leaf_seconds slow_cables[]
)";

/// Longer lists of addresses are shortened.
constexpr std::int64_t kMaxListed = 16;

/// For a NIC whose neighbours the job does not use.
constexpr const char* kNoServerInUse = "leads to no server in use";

std::string rate(double bytes_per_s) {
  return fmt::format("{:g} Gb/s", bytes_per_s * 8 / 1e9);
}

/// "NIC 0", "NICs 0-3"
std::string nics(const std::vector<Rail>& rails) {
  if (rails.empty()) return "no NIC";
  if (rails.size() == 1) return fmt::format("NIC {}", rails.front());
  return fmt::format("NICs {}-{}", rails.front(), rails.back());
}

/// The switches or cables of a level: "3 switches, one for each group".
std::string made_of(const Topology& topology, const Level& level) {
  const std::int64_t groups = topology.num_whole_servers() / level.radix;
  const auto rails = static_cast<std::int64_t>(level.rails.size());
  switch (level.kind) {
    case LevelKind::kSwitch:
      return counted(groups * rails, "switch") + (rails > 1    ? ", one for each NIC"
                                                  : groups > 1 ? ", one for each group"
                                                               : "");
    case LevelKind::kRing:
      return counted(groups, "ring") + " of cables, + and -";
    case LevelKind::kLine:
      return counted(groups, "line") + " of cables, + and -";
    case LevelKind::kTree:
      return "switch tree";
    case LevelKind::kNode:
      return "shared memory";
  }
  return "";
}

/// How servers without a common switch or cable reach each other.
std::string relaying(const Topology& topology) {
  if (topology.num_servers() == 1) return "no: there is one server";
  if (const std::size_t components = topology::num_components(topology); components > 1)
    return fmt::format("no: the servers are not connected; they are {} components", components);
  if (!topology.part.empty() && topology.servers_relay)
    return "no: servers of a part reach only their neighbours in it";
  if (topology.relay_off) return "off: servers reach only their neighbours";
  if (!topology.servers_relay) return "no: switches connect any two servers in one hop";
  return fmt::format("servers forward messages; any two are at most {} apart",
                     counted(topology::diameter_hops(topology), "hop"));
}

/// ", and 14 assumed" of the cables, and of the switches, that plans use and the file does not tell.
std::string and_assumed(std::int64_t assumed) {
  return assumed == 0 ? "" : fmt::format(", and {} assumed", assumed);
}

/// "8; 14 assumed ones take the place of core"
std::string switches_text(const health::WiringCounts& counts, const std::vector<std::string>& replaced) {
  if (replaced.empty()) return fmt::format("{}{}", counts.switches, and_assumed(counts.assumed_switches));
  constexpr std::size_t kMostReplaced = 3;
  const std::string names = replaced.size() > kMostReplaced
                                ? fmt::format("the {} above the leaves", replaced.size())
                                : fmt::format("{}", fmt::join(replaced, ", "));
  return fmt::format("{}; {} assumed {} the place of {}", counts.switches, counts.assumed_switches,
                     counts.assumed_switches == 1 ? "one takes" : "ones take", names);
}

void print_summary(const topology::TopologyFile& file) {
  const Topology& topology = file.topology;
  fmt::print("{}  ({})\n", topology.name, topology.spec);
  fmt::print("  servers   {}, {} each\n", topology.num_servers(), counted(topology.num_rails, "NIC"));
  if (topology.ranks_per_server > 1) {
    fmt::print("  ranks     {}, {} on each server\n", topology.num_ranks(), topology.ranks_per_server);
  }
  const health::WiringCounts counts = health::count_wiring(file);
  fmt::print("  switches  {}\n", switches_text(counts, file.told.replaced_switches));
  fmt::print("  cables    {}{}\n", counts.cables, and_assumed(counts.assumed_cables));
  fmt::print("  relaying  {}\n", relaying(topology));
  if (topology.levels.empty()) return;
  fmt::print("  levels\n");
  std::size_t name_width = 0;
  std::size_t nics_width = 0;
  std::size_t radix_width = 0;
  for (const Level& level : topology.levels) {
    name_width = std::max(name_width, level.name.size());
    nics_width = std::max(nics_width, nics(level.rails).size());
    radix_width = std::max(radix_width, std::to_string(level.radix).size());
  }
  std::size_t network_level = 0;
  for (const Level& level : topology.levels) {
    fmt::print("    {:<{}}  radix {:>{}}  {:<{}}  ", level.name, name_width, level.radix, radix_width,
               nics(level.rails), nics_width);
    if (level.kind != LevelKind::kNode) {
      const bool is_assumed = counts.assumed_rates.contains(network_level++);
      fmt::print("{}{}, {:g} us  ", rate(level.bandwidth_bytes_per_s), is_assumed ? " assumed" : "",
                 level.latency_ns / 1000);
    }
    fmt::print("{}\n", made_of(topology, level));
  }
}

/// The servers in use that differ from a server in one digit, by that digit.
struct GroupPeers {
  std::vector<std::int64_t> digits;  ///< all, or the first two and the last of many
  std::int64_t count = 0;
};

GroupPeers peers_of(const Topology& topology, Rank rank, std::int32_t level_idx) {
  const std::int64_t radix = topology.levels[static_cast<std::size_t>(level_idx)].radix;
  const std::int64_t own = topology.digit(rank, level_idx);
  // If all are in use, a million of them need not be visited.
  if (topology.part.empty() && radix - 1 > kMaxListed)
    return {{own == 0 ? 1 : 0, own <= 1 ? 2 : 1, own == radix - 1 ? radix - 2 : radix - 1}, radix - 1};
  GroupPeers peers;
  for (std::int64_t digit = 0; digit < radix; ++digit) {
    if (digit != own && topology.with_digit(rank, level_idx, digit) >= 0) peers.digits.push_back(digit);
  }
  peers.count = std::ssize(peers.digits);
  if (peers.count > kMaxListed) peers.digits = {peers.digits[0], peers.digits[1], peers.digits.back()};
  return peers;
}

/// "<00> <02>", or "<0> <1> ... <999> (999 servers)" for a large group; "" if no other server is in use.
std::string group_members(const Topology& topology, std::int64_t server, std::int32_t level_idx) {
  const auto rank = static_cast<Rank>(server * topology.ranks_per_server);
  const GroupPeers peers = peers_of(topology, rank, level_idx);
  std::vector<std::string> words;
  for (const std::int64_t digit : peers.digits) {
    const Rank peer = topology.with_digit(rank, level_idx, digit);
    words.push_back(topology::server_address(topology, peer / topology.ranks_per_server));
  }
  if (peers.count > kMaxListed) {
    words.insert(words.end() - 1, "...");
    words.push_back(fmt::format("({} servers)", peers.count));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

/// The other end of a cable of a ring or line: "to (1,0) NIC 1".
std::string cable_text(const Topology& topology, std::int64_t server, Rail rail) {
  const auto end = topology::other_end(topology, server, rail);
  if (!end) return "leads nowhere";
  if (end->first < 0) return kNoServerInUse;
  return fmt::format("to {} NIC {}", topology::server_address(topology, end->first), end->second);
}

/// Prints the neighbours of each NIC of a server, one line per NIC.
void print_server(const Topology& topology, const PlaceNames& names, std::int64_t server,
                  const std::string& node) {
  const std::int32_t first_level = topology::first_network_level(topology);
  const auto num_levels = static_cast<std::int32_t>(topology.levels.size());
  const auto rank = static_cast<Rank>(server * topology.ranks_per_server);
  fmt::print("server {} {}", server, topology::server_address(topology, server));
  if (!node.empty()) fmt::print("  node {}", node);
  if (topology.ranks_per_server > 1) fmt::print("  ranks {}-{}", rank, rank + topology.ranks_per_server - 1);
  fmt::print("\n");
  for (Rail rail = 0; rail < topology.num_rails; ++rail) {
    std::string line = fmt::format("  NIC {}", rail);
    if (const std::string name = names.switch_at(topology, server, rail); !name.empty())
      line += fmt::format("  {}", name);
    for (std::int32_t l = first_level; l < num_levels; ++l) {
      const Level& level = topology.levels[static_cast<std::size_t>(l)];
      const auto served = std::find(level.rails.begin(), level.rails.end(), rail);
      if (served == level.rails.end()) continue;
      if (topology::is_of_cables(level)) {
        line += fmt::format("  {}{}  {}", level.name, served == level.rails.begin() ? '+' : '-',
                            names(cable_text(topology, server, rail)));
        continue;
      }
      const std::string others = names(group_members(topology, server, l));
      if (level.kind == LevelKind::kTree) {
        // One NIC serves all tiers: name the tier through which each group is reached.
        line += fmt::format("  {}: {}", level.name, others.empty() ? "no server in use" : others);
      } else {
        line += others.empty() ? fmt::format("  {}", kNoServerInUse) : fmt::format("  to {}", others);
      }
    }
    fmt::print("{}\n", line);
  }
}

nlohmann::ordered_json summary_json(const topology::TopologyFile& file) {
  const Topology& topology = file.topology;
  nlohmann::ordered_json json;
  json["spec"] = topology.spec;
  json["name"] = topology.name;
  json["family"] = to_string(topology.family);
  json["servers"] = topology.num_servers();
  json["ranks"] = topology.num_ranks();
  json["ranks_per_server"] = topology.ranks_per_server;
  json["nics_per_server"] = topology.num_rails;
  const health::WiringCounts counts = health::count_wiring(file);
  json["switches"] = counts.switches;
  json["switches_assumed"] = counts.assumed_switches;
  json["switches_replaced"] = file.told.replaced_switches;
  json["cables"] = counts.cables;
  json["cables_assumed"] = counts.assumed_cables;
  json["servers_relay"] = topology.servers_relay && !topology.relay_off;
  const bool connected = topology::num_components(topology) == 1;
  json["diameter_hops"] =
      connected ? nlohmann::ordered_json(topology::diameter_hops(topology)) : nlohmann::ordered_json(nullptr);
  json["levels"] = nlohmann::ordered_json::array();
  std::size_t network_level = 0;
  for (const Level& level : topology.levels) {
    const bool is_assumed = level.kind != LevelKind::kNode && counts.assumed_rates.contains(network_level++);
    json["levels"].push_back({{"name", level.name},
                              {"radix", level.radix},
                              {"kind", to_string(level.kind)},
                              {"nics", level.rails},
                              {"bandwidth_bytes_per_s", level.bandwidth_bytes_per_s},
                              {"bandwidth_assumed", is_assumed},
                              {"latency_ns", level.latency_ns}});
  }
  return json;
}

/// Prints one line of JSON, piece by piece, because each server of a rack has all the others as neighbours.
void print_server_json(const Topology& topology, std::int64_t server) {
  const auto& entry = topology::entry_of(topology.family);
  const auto rank = static_cast<Rank>(server * topology.ranks_per_server);
  const auto text = [](const std::string& value) {
    return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  fmt::print(R"({{"server":{},"address":{},"first_rank":{},"nics":[)", server,
             text(topology::server_address(topology, server)), rank);
  for (Rail rail = 0; rail < topology.num_rails; ++rail) {
    const std::string name = entry.switch_name(topology, topology.whole_server(server), rail);
    fmt::print(R"({}{{"nic":{},"switch":{},"neighbours":[)", rail == 0 ? "" : ",", rail,
               name.empty() ? "null" : text(name));
    const char* separator = "";
    topology::visit_neighbours(topology, rank, [&](const Hop& hop) {
      if (hop.out != rail) return;
      fmt::print(R"({}{{"level":{},"server":{},"nic":{}}})", separator, hop.level,
                 hop.to / topology.ranks_per_server, hop.in);
      separator = ",";
    });
    fmt::print("]}}");
  }
  fmt::print("]}}");
}

void print_json(const topology::TopologyFile& file, bool verbose) {
  const Topology& topology = file.topology;
  nlohmann::ordered_json json = summary_json(file);
  if (!file.server_names.empty()) json["nodes"] = file.server_names;
  if (file.notes) json["notes"] = *file.notes;
  json["health"] = health::report_json(file);
  std::string text = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  if (verbose) {
    text.resize(text.rfind('\n'));
    fmt::print("{},\n  \"server_list\": [\n    ", text);
    for (std::int64_t server = 0; server < topology.num_servers(); ++server) {
      if (server > 0) fmt::print(",\n    ");
      print_server_json(topology, server);
    }
    text = "\n  ]\n}";
  }
  fmt::print("{}\n", text);
}

/// Prints to stderr; a file may repeat the same ignored key for every switch.
void print_notes(const std::vector<std::string>& notes) {
  constexpr std::size_t kMostShown = 5;
  for (std::size_t i = 0; i < std::min(notes.size(), kMostShown); ++i)
    fmt::print(stderr, "hips: {}\n", notes[i]);
  if (notes.size() > kMostShown)
    fmt::print(stderr, "hips: and {} more; --json lists all\n", notes.size() - kMostShown);
}

void print_nodes(const std::vector<std::string>& nodes) {
  std::vector<std::string> shown = nodes;
  if (nodes.size() > kMaxListed) shown = {nodes[0], nodes[1], "...", nodes.back()};
  if (nodes.size() == 1) return fmt::print("  node      {}, as server 0\n", nodes.front());
  fmt::print("  nodes     {}, as servers 0 to {}\n", fmt::join(shown, " "), nodes.size() - 1);
}

/// A topology from a spec or a file, of which the job uses a part.
topology::TopologyFile read_source(const TopoOptions& options) {
  return load_for_job(required_topology("topo", options.spec), options.job);
}

/// Prints the cables whose rate or state differs from their level's, one line each.
void print_overrides(const topology::TopologyFile& file, const PlaceNames& names) {
  for (const LinkOverride& link : file.topology.overrides) {
    const std::string ends =
        link.server >= 0
            ? fmt::format("server {} NIC {}", file.server_name(link.server), link.rail)
            : fmt::format("{} to {}", names.switch_named(link.lower), names.switch_named(link.upper));
    fmt::print("  link      {}: {}\n", ends, link.up ? rate(link.bandwidth_bytes_per_s) : "down");
  }
}

void run(const TopoOptions& options) {
  const topology::TopologyFile file = read_source(options);
  const Topology& topology = file.topology;
  const auto& names = file.server_names;
  if (options.only_spec && !options.reading->rates.empty() && !topology::has_plain_spec(topology))
    throw Error(Status::error(Code::kInvalidArgument,
                              "--spec: no spec tells these rates; write a topology file with --format yaml"));
  if (options.only_spec) {
    fmt::print("{}\n", topology.spec);
  } else if (options.json || options.format == "json") {
    print_json(file, options.verbose);
  } else if (options.format == "dot") {
    fmt::print("{}", value_or_throw(picture::topology_dot(file)));
  } else if (options.format == "svg") {
    fmt::print("{}", value_or_throw(picture::topology_svg(file)));
  } else if (options.format == "yaml") {
    fmt::print("{}", value_or_throw(topology::topology_file_text(file, options.verbose)));
  } else {
    if (file.notes) print_notes(*file.notes);
    print_summary(file);
    const PlaceNames places(file);
    print_overrides(file, places);
    fmt::print("{}", health::report_text(file));
    if (!names.empty()) print_nodes(names);
    if (options.verbose) {
      fmt::print("\n");
      for (std::int64_t server = 0; server < topology.num_servers(); ++server)
        print_server(topology, places, server, names.empty() ? "" : names[static_cast<std::size_t>(server)]);
    }
  }
}

}  // namespace

void add_topo(CLI::App& app) {
  auto options = std::make_shared<TopoOptions>();
  CLI::App* command =
      app.add_subcommand("topo", "Print a topology: servers, NICs, switches, cables and levels");
  options->reading = add_topology_option(
      *command, options->spec, "Topology: a spec such as bcube:3,1, or files; default HIPS_TOPO",
      "-t,--topology,TOPOLOGY", {.topologies = [options = options.get()](ReadingArguments& reading) {
        if (options->slurm.empty()) return reading.files;
        reading.format = "slurm";
        reading.format_option = "--slurm";
        return std::vector{options->spec = "file:" + options->slurm};
      }});
  command->add_option("--slurm", options->slurm, "The same as -t FILE --from slurm")
      ->type_name("FILE")
      ->excludes(command->get_option("--topology"))
      ->excludes(command->get_option("--from"));
  add_job_options(*command, options->job);
  CLI::Option* const only_spec =
      command->add_flag("--spec", options->only_spec, "Print only the spec, for -t of other commands");
  command->add_flag("-v,--verbose", options->verbose, "Also print every server: address, NICs, neighbours");
  command
      ->add_option("--format", options->format,
                   "text, json, yaml (topology file for -t), dot (Graphviz) or svg")
      ->check(CLI::IsMember({"text", "json", "yaml", "dot", "svg"}))
      ->capture_default_str()
      ->excludes(only_spec);
  command->add_flag("--json", options->json, "--format json")
      ->excludes(only_spec)
      ->excludes(command->get_option("--format"));
  command->footer(kTopoFooter);
  command->require_subcommand(0, 1);
  add_topo_discover(*command);
  add_topo_diff(*command);
  command->callback([options, command] {
    if (command->get_subcommands().empty()) run(*options);
  });
}

}  // namespace hips::cli

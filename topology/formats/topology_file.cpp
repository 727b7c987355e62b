#include "topology/formats/topology_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <span>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/base/counted.hpp"
#include "topology/formats/file_links.hpp"
#include "topology/formats/file_values.hpp"
#include "topology/formats/graph_file.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/server_names.hpp"
#include "topology/formats/told_wiring_file.hpp"
#include "topology/names.hpp"
#include "topology/rates.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

constexpr auto kTopKeys =
    std::to_array<std::string_view>({"hips-topology", "spec", "shape", "ranks-per-server", "relay", "rate",
                                     "latency", "notes", "levels", "servers", "switches", "links", "cables"});
/// Keys that are not for the other files; and "spec", which hips topo writes into a file that was made from another.
constexpr auto kOfGraphs = std::to_array<std::string_view>({"spec", "cables"});
constexpr auto kNotOfGraphs = std::to_array<std::string_view>({"spec", "relay", "levels", "links"});
constexpr auto kLevelKeys =
    std::to_array<std::string_view>({"name", "radix", "kind", "nics", "rate", "latency", "cables"});
constexpr auto kServersKeys = std::to_array<std::string_view>({"count", "names", "devices", "other-devices"});

constexpr auto kOtherKeys = std::to_array<std::string_view>({"server", "devices"});
constexpr auto kSwitchesKeys = std::to_array<std::string_view>({"count", "names", "assumed"});

class TopologyFileReader {
 public:
  TopologyFileReader(std::string_view name, std::string_view text)
      : values_(name), name_(name), text_(text) {}

  Result<TopologyFile> read() {
    auto root = read_yaml(name_, text_);
    if (!root) return fail(root.error());
    for (const auto part : {&TopologyFileReader::read_shape, &TopologyFileReader::read_notes,
                            &TopologyFileReader::read_levels, &TopologyFileReader::read_servers,
                            &TopologyFileReader::read_switches, &TopologyFileReader::read_links}) {
      if (auto done = (this->*part)(*root); !done) return fail(done.error());
    }
    if (auto named = name_topology(); !named) return fail(named.error());
    return std::move(file_);
  }

 private:
  Topology& topology() { return file_.topology; }

  Result<void> read_shape(const YamlNode& root) {
    const YamlNode* shape = FileValues::find(root, "shape");
    const bool is_graph = shape != nullptr && shape->scalar == kGraphShape;
    using Keys = std::span<const std::string_view>;
    const Keys elsewhere = is_graph ? Keys(kNotOfGraphs) : Keys(kOfGraphs);
    if (auto known = values_.keys(root, "the file", kTopKeys, elsewhere); !known) return known;
    const YamlNode* version = FileValues::find(root, "hips-topology");
    if (version == nullptr)
      return values_.bad(root, "the key hips-topology is missing; begin with hips-topology: 1");
    if (auto read = values_.number(*version, 1, kTopologyFileVersion); !read) return fail(read.error());
    const YamlNode* spec = FileValues::find(root, "spec");
    if (shape == nullptr && spec != nullptr)
      return values_.bad(*spec, "spec is not the key of a topology; write such as shape: bcube:3,1");
    if (shape == nullptr)
      return values_.bad(root, "the key shape is missing; write such as shape: bcube:3,1");
    const auto text = values_.text(*shape);
    if (!text) return fail(text.error());
    if (text->find_first_of("@/") != std::string::npos || file_spec(*text)) {
      return values_.bad(*shape, fmt::format("shape is {}; write the family and its numbers only, such as "
                                             "bcube:3,1: rates belong to rate or levels, ranks to "
                                             "ranks-per-server",
                                             in_quotes(*text)));
    }
    if (*text == kGraphShape) {
      if (auto begun = begin_graph(values_, root, file_); !begun) return begun;
    } else {
      if (const YamlNode* cables = FileValues::find(root, "cables"))
        return values_.bad(*cables,
                           "cables are for shape: graph; cables that differ from their level are links");
      auto made = parse(*text);
      if (!made) return values_.bad(*shape, made.error().message);
      topology() = std::move(*made);
    }
    for (Level& level : topology().levels) {
      if (auto read = read_rates(root, level); !read) return read;
    }
    if (const YamlNode* relay = FileValues::find(root, "relay")) {
      const auto value = values_.boolean(*relay);
      if (!value) return fail(value.error());
      if (*value && !topology().servers_relay) {
        return values_.bad(*relay, fmt::format("relay is true, but switches join all servers of {}; write "
                                               "relay: false",
                                               topology().spec));
      }
      if (*value && !topology().part.empty()) {
        return values_.bad(*relay, fmt::format("relay is true, but servers of a part such as {} do not "
                                               "relay; write relay: false",
                                               topology().spec));
      }
      topology().relay_off = topology().servers_relay && topology().part.empty() && !*value;
    }
    if (const YamlNode* ranks = FileValues::find(root, "ranks-per-server")) {
      const auto number = values_.number(*ranks, 1, kMaxRanks / topology().num_servers());
      if (!number) return fail(number.error());
      ranks_per_server_ = *number;
    }
    return spec == nullptr ? Result<void>() : read_spec(*spec);
  }

  /// Reads the spec of the file that this one was made from.
  Result<void> read_spec(const YamlNode& node) {
    const auto text = values_.text(node);
    if (!text) return fail(text.error());
    const auto named = file_spec(*text);
    const bool known = named && named->digest && text->starts_with("file:") &&
                       named->ranks_per_server.value_or(std::to_string(ranks_per_server_)) ==
                           std::to_string(ranks_per_server_);
    if (!known) {
      return values_.bad(node, fmt::format("spec is {}; it must be file:PATH#DIGEST, the topology file that "
                                           "this one was made from, or file:PATH#DIGEST/{}",
                                           in_quotes(*text), ranks_per_server_));
    }
    original_spec_ = *text;
    return {};
  }

  /// Reads the optional `rate` and `latency` of a mapping.
  Result<void> read_rates(const YamlNode& node, Level& level) {
    if (const YamlNode* rate = FileValues::find(node, "rate")) {
      const auto value = values_.rate(*rate);
      if (!value) return fail(value.error());
      level.bandwidth_bytes_per_s = *value;
    }
    if (const YamlNode* latency = FileValues::find(node, "latency")) {
      const auto value = values_.latency_ns(*latency);
      if (!value) return fail(value.error());
      level.latency_ns = *value;
    }
    return {};
  }

  Result<void> read_notes(const YamlNode& root) {
    const YamlNode* notes = FileValues::find(root, "notes");
    if (notes == nullptr) return {};
    if (auto list = values_.sequence(*notes); !list) return list;
    for (const YamlNode& note : notes->items) {
      auto text = values_.text(note);
      if (!text) return fail(text.error());
      if (!file_.notes) file_.notes.emplace();
      file_.notes->push_back(*std::move(text));
    }
    return {};
  }

  Result<void> read_levels(const YamlNode& root) {
    const YamlNode* levels = FileValues::find(root, "levels");
    if (levels == nullptr) return {};
    if (auto list = values_.sequence(*levels); !list) return list;
    if (levels->items.size() != topology().levels.size()) {
      return values_.bad(*levels,
                         fmt::format("the list has {}, but {} has {}", counted(levels->items.size(), "level"),
                                     topology().spec, topology().levels.size()));
    }
    for (std::size_t l = 0; l < levels->items.size(); ++l) {
      if (auto read = read_level(levels->items[l], topology().levels[l]); !read) return read;
      if (auto read = read_told_level(root, levels->items[l], l); !read) return read;
    }
    return {};
  }

  Result<void> read_level(const YamlNode& node, Level& level) {
    if (auto known = values_.keys(node, "a level", kLevelKeys); !known) return known;
    const auto same = [&](const char* key, const std::string& right) -> Result<void> {
      const YamlNode* value = FileValues::find(node, key);
      if (value == nullptr) return {};
      const auto text = values_.text(*value);
      if (!text) return fail(text.error());
      if (*text == right) return {};
      return values_.bad(*value, fmt::format("{} is {}, but in {} this level has {}", key, in_quotes(*text),
                                             topology().spec, in_quotes(right)));
    };
    if (auto is = same("name", level.name); !is) return is;
    if (auto is = same("radix", std::to_string(level.radix)); !is) return is;
    if (auto is = same("kind", to_string(level.kind)); !is) return is;
    if (const YamlNode* nics = FileValues::find(node, "nics")) {
      if (auto list = values_.sequence(*nics); !list) return list;
      std::vector<Rail> rails;
      for (const YamlNode& nic : nics->items) {
        const auto number = values_.number(nic, 0, kMaxRails - 1);
        if (!number) return fail(number.error());
        rails.push_back(static_cast<Rail>(*number));
      }
      if (rails != level.rails) {
        return values_.bad(*nics,
                           fmt::format("nics is [{}], but in {} NICs [{}] serve {}", fmt::join(rails, ", "),
                                       topology().spec, fmt::join(level.rails, ", "), level.name));
      }
    }
    return read_rates(node, level);
  }

  Result<void> read_told_level(const YamlNode& root, const YamlNode& node, std::size_t level) {
    if (FileValues::find(root, "rate") == nullptr && FileValues::find(node, "rate") == nullptr)
      file_.told.assumed_rates.insert(level);
    const YamlNode* cables = FileValues::find(node, "cables");
    if (cables == nullptr) return {};
    if (topology().levels[level].kind != LevelKind::kTree)
      return values_.bad(*cables, "cables is for levels with cables between switches; leave it out");
    const auto count = values_.number(*cables, 1, kMostParallelCables);
    if (!count) return fail(count.error());
    file_.told.level_cables.resize(topology().levels.size(), 1);
    file_.told.level_cables[level] = *count;
    return {};
  }

  Result<void> read_servers(const YamlNode& root) {
    const YamlNode* servers = FileValues::find(root, "servers");
    if (servers == nullptr) return {};
    if (auto known = values_.keys(*servers, "servers", kServersKeys); !known) return known;
    if (auto counted = read_count(*servers, topology().num_servers()); !counted) return counted;
    if (const YamlNode* names = FileValues::find(*servers, "names")) {
      if (auto read = read_names(*names); !read) return read;
    }
    if (const YamlNode* devices = FileValues::find(*servers, "devices")) {
      auto read = read_devices(*devices);
      if (!read) return fail(read.error());
      file_.devices = std::move(*read);
    }
    const YamlNode* others = FileValues::find(*servers, "other-devices");
    if (others == nullptr) return {};
    if (auto list = values_.sequence(*others); !list) return list;
    for (const YamlNode& other : others->items) {
      if (auto known = values_.keys(other, "an entry of other-devices", kOtherKeys); !known) return known;
      const YamlNode* key = FileValues::find(other, "server");
      const YamlNode* devices = FileValues::find(other, "devices");
      if (key == nullptr || devices == nullptr)
        return values_.bad(other, "an entry needs server and devices; write {server: n3, devices: [mlx5_2]}");
      const auto server = values_.server(*key, file_, by_name_);
      if (!server) return fail(server.error());
      auto read = read_devices(*devices);
      if (!read) return fail(read.error());
      if (!file_.other_devices.emplace(*server, std::move(*read)).second)
        return values_.bad(*key,
                           fmt::format("server {} is listed twice; list it once", in_quotes(key->scalar)));
    }
    return {};
  }

  Result<void> read_count(const YamlNode& node, std::int64_t right) {
    const YamlNode* count = FileValues::find(node, "count");
    if (count == nullptr) return {};
    const auto number = values_.number(*count, 0, INT64_MAX);
    if (!number) return fail(number.error());
    if (*number == right) return {};
    return values_.bad(
        *count, fmt::format("count is {} {}, but {} has {}", *number, node.key, topology().spec, right));
  }

  /// Reads a hostlist, or a list of them.
  Result<void> read_names(const YamlNode& node) {
    const auto servers = static_cast<std::uint64_t>(topology().num_servers());
    if (servers > kMaxServerNames)
      return values_.bad(
          node, fmt::format("names: {} has {} servers; servers can have names if there are at most {}",
                            topology().spec, servers, kMaxServerNames));
    const auto add = [&](const YamlNode& entry) -> Result<void> {
      const auto text = values_.text(entry);
      if (!text) return fail(text.error());
      const auto count = count_names(*text);
      // Names in a list may have characters that no hostlist has.
      const bool is_one_name = &entry != &node && !text->empty() && text->find_first_of("[],") == text->npos;
      if (!count && !is_one_name) return values_.bad(entry, "names: " + count.error().message);
      if (count.value_or(1) > servers - file_.server_names.size()) {
        return values_.bad(entry,
                           fmt::format("names: {} and the entries before it are {} names, but {} has {}",
                                       in_quotes(*text), count.value_or(1) + file_.server_names.size(),
                                       topology().spec, counted(servers, "server")));
      }
      std::vector<std::string> names{*text};
      if (count) names = *expand_names(*text, servers);
      for (std::string& name : names) {
        const auto number = static_cast<std::int64_t>(file_.server_names.size());
        if (!by_name_.emplace(name, number).second)
          return values_.bad(entry,
                             fmt::format("names: {} occurs twice; names must be unique", in_quotes(name)));
        file_.server_names.push_back(std::move(name));
      }
      return {};
    };
    if (node.kind == YamlNode::Kind::kSequence) {
      for (const YamlNode& entry : node.items) {
        if (auto added = add(entry); !added) return added;
      }
    } else if (auto added = add(node); !added) {
      return added;
    }
    if (file_.server_names.size() == servers) return {};
    return values_.bad(
        node, fmt::format("names: the list has {}, but {} has {}", counted(file_.server_names.size(), "name"),
                          topology().spec, counted(servers, "server")));
  }

  Result<std::vector<std::string>> read_devices(const YamlNode& node) {
    if (auto list = values_.sequence(node); !list) return fail(list.error());
    const auto rails = static_cast<std::size_t>(topology().num_rails);
    if (node.items.size() != rails) {
      return values_.bad(
          node, fmt::format("the list has {}, but a server of {} has {}; list a "
                            "device for each NIC, in the order of their numbers",
                            counted(node.items.size(), "device"), topology().spec, counted(rails, "NIC")));
    }
    std::vector<std::string> devices;
    for (const YamlNode& item : node.items) {
      const auto text = values_.text(item);
      if (!text) return fail(text.error());
      if (!text->empty() && std::ranges::find(devices, *text) != devices.end())
        return values_.bad(
            item, fmt::format("device {} is listed twice; devices must be unique", in_quotes(*text)));
      devices.push_back(*text);
    }
    return devices;
  }

  Result<void> read_switches(const YamlNode& root) {
    const YamlNode* switches = FileValues::find(root, "switches");
    if (switches == nullptr || topology().family == Family::kGraph) return {};
    if (auto known = values_.keys(*switches, "switches", kSwitchesKeys); !known) return known;
    if (auto counted = read_count(*switches, topology().num_switches); !counted) return counted;
    const auto names = read_switch_names(values_, *switches);
    if (!names) return fail(names.error());
    if (!names->empty() && std::ssize(*names) != topology().num_switches) {
      return values_.bad(*switches,
                         fmt::format("names: the list has {}, but {} has {}", counted(names->size(), "name"),
                                     topology().spec, counted(topology().num_switches, "switch")));
    }
    file_.told.switch_names = *names;
    return read_assumed_switches(values_, *switches, *names, file_.told);
  }

  Result<void> read_links(const YamlNode& root) {
    if (topology().family == Family::kGraph) return read_graph(values_, root, by_name_, file_);
    const YamlNode* links = FileValues::find(root, "links");
    if (links == nullptr) return {};
    return read_file_links(values_, *links, by_name_, file_);
  }

  /// Adds the ranks, and sets the spec: that of the family if it can describe all, otherwise one that names
  /// this file.
  Result<void> name_topology() {
    Topology& made = topology();
    const bool rated =
        !made.levels.empty() && made.levels.front().bandwidth_bytes_per_s != kDefaultBandwidthBytesPerS;
    if (!has_plain_spec(made)) {
      made.spec =
          original_spec_.empty() ? fmt::format("file:{}#{:016x}", name_, text_digest(text_)) : original_spec_;
    } else if (rated) {
      made.spec += "@" + rate_text(made.levels.front().bandwidth_bytes_per_s);
    }
    // A spec that names this file has no "/RANKS", as the file itself has the ranks: they would count twice.
    const std::string spec = made.spec;
    if (auto added = add_node_level(spec, std::to_string(ranks_per_server_), made); !added) return added;
    if (spec.starts_with("file:")) made.spec = spec;
    return {};
  }

  FileValues values_;
  std::string_view name_, text_;
  TopologyFile file_;
  std::unordered_map<std::string, std::int64_t> by_name_;
  std::int64_t ranks_per_server_ = 1;
  std::string original_spec_;  ///< "" if this file was not made from another one
};

/// Is a value of `names` more than one plain name?
bool is_list(const YamlNode& names) {
  if (names.kind == YamlNode::Kind::kSequence)
    return std::ranges::any_of(names.items, [](const YamlNode& entry) { return is_list(entry); });
  return names.kind == YamlNode::Kind::kScalar && !is_plain_name(names.scalar);
}

}  // namespace

Result<TopologyFile> parse_topology_file(std::string_view name, std::string_view text) {
  return TopologyFileReader(name, text).read();
}

// FNV-1a.
std::uint64_t text_digest(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

bool has_name_lists(std::string_view text) {
  const auto root = read_yaml("", text);
  if (!root) return false;
  const YamlNode* servers = FileValues::find(*root, "servers");
  const YamlNode* names = servers == nullptr ? nullptr : FileValues::find(*servers, "names");
  return names != nullptr && is_list(*names);
}

}  // namespace hips::topology

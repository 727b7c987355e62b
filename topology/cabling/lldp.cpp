#include "topology/cabling/lldp.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "topology/cabling/cabling_builder.hpp"
#include "topology/cabling/host_texts.hpp"
#include "topology/cabling/lldp_neighbours.hpp"
#include "topology/cabling/switch_ports.hpp"
#include "topology/cabling/text_lines.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

/// The most bytes of hosts that wrote the same, each counted.
constexpr std::size_t kMostSharedBytes = 16 * kMostLldpBytes;

bool begins_lldp(std::string_view line) {
  return line.starts_with('{') || (line.starts_with("lldp.") && line.find('=') != std::string_view::npos);
}

/// What a host wrote, from where it is output of lldpctl; empty if nothing is.
std::string_view lldp_part(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (begins_lldp(without_blanks(text.substr(0, end)))) return text;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return text;
}

/// The first line with text.
std::string_view first_line(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return without_blanks(text.substr(0, text.find('\n')));
}

/// "hosts/n7.json" without its folders.
std::string_view without_folders(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

/// "hosts/n7.example.com.json" is of the host "n7.example.com".
std::string host_of_file(std::string_view name) {
  name = without_folders(name);
  for (const std::string_view ending :
       {".json", ".json0", ".txt", ".out", ".kv", ".keyvalue", ".lldp", ".log"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return std::string(name);
}

/// The rate in "100GBaseCR4 - ...", "10GigBaseX" or "1000BaseTFD", bytes/s; 0 if it is not there.
double rate_of_mau(std::string_view mau) {
  std::string text = in_lower_case(mau);
  // The MIB writes 2p5GigT.
  const std::size_t point = text.find_first_not_of("0123456789");
  if (point != std::string::npos && point + 1 < text.size() && text[point] == 'p' &&
      is_digit(text[point + 1]))
    text[point] = '.';
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number > 0) || number > 1e6) return 0;
  const std::string_view unit = std::string_view(text).substr(static_cast<std::size_t>(end - text.data()));
  if (unit.starts_with("gbase") || unit.starts_with("gigbase") || unit.starts_with("gigt"))
    return number * 1e9 / 8;
  return unit.starts_with("base") ? number * 1e6 / 8 : 0;
}

bool is_management(std::string_view port) {
  const std::string known = in_lower_case(port);
  for (const std::string_view part : {"mgmt", "management", "oob", "ipmi", "bmc", "idrac", "fxp"}) {
    if (known.starts_with(part)) return true;
  }
  return false;
}

/// Of a VLAN of Linux such as eth0.100 the interface that it is of; else empty.
std::string_view nic_of_vlan(std::string_view interface) {
  const std::size_t dot = interface.rfind('.');
  const bool is_vlan = dot != std::string_view::npos && dot + 1 < interface.size() &&
                       interface.find_first_not_of("0123456789", dot + 1) == std::string_view::npos;
  return is_vlan ? interface.substr(0, dot) : "";
}

/// Is an interface of Linux no NIC but what is made of others: a bond, a bridge, a tunnel?
bool is_made_of_others(std::string_view interface) {
  const std::string known = in_lower_case(interface);
  for (const std::string_view part : {"bond", "team", "vlan", "br-", "docker", "veth", "virbr", "tap", "tun"})
    if (known.starts_with(part)) return true;
  return false;
}

class LldpReader {
 public:
  explicit LldpReader(std::string_view name) : builder_(name) {}

  Result<void> add(const LldpText& file) {
    const std::string_view text = without_mark(file.text);
    if (begins_lldp(first_line(text))) {
      const auto [known, is_new] = files_.emplace(without_folders(file.name), file.name);
      if (!is_new)
        return bad_line(
            file.name, 1,
            fmt::format("the host is {}, as that of {}; hosts have the names of their files: name each "
                        "file for its host",
                        in_quotes(host_of_file(file.name)), known->second));
      return add_text(file.name, 1, {host_of_file(file.name)}, text);
    }
    const auto texts = split_by_host(file.name, text);
    if (!texts) return fail(texts.error());
    if (std::ranges::all_of(*texts, [](const HostText& one) { return lldp_part(one.text).empty(); }))
      return bad_line(file.name, 1,
                      "the text is no output of lldpctl; give that of lldpctl -f json or -f keyvalue");
    for (const HostText& one : *texts) {
      if (auto added = add(file.name, one); !added) return added;
    }
    return {};
  }

  Result<void> add_neighbours(const std::string& file, std::int64_t line, const std::string& host,
                              std::vector<LldpNeighbour> neighbours) {
    hosts_.insert(host);
    if (neighbours.empty()) builder_.note("hosts have heard no neighbour", 0, 1, in_quotes(host));
    for (LldpNeighbour& neighbour : neighbours) {
      if (heard_.size() > 2 * kMostCables)
        return bad_line(file, line, "more neighbours than a cluster can have");
      heard_.push_back({host, std::move(neighbour)});
    }
    return {};
  }

  Result<Cabling> finish() {
    for (const Heard& heard : heard_) {
      if (!heard.neighbour.chassis.empty() && !heard.neighbour.chassis_id.empty())
        name_of_.emplace(heard.neighbour.chassis_id, heard.neighbour.chassis);
      on_nics_.insert({heard.host, heard.neighbour.interface});
      if (!is_made_of_others(heard.neighbour.interface))
        on_nics_.insert({heard.host, "to " + heard.neighbour.chassis});
      if (heard.neighbour.is_bridge) bridges_.insert(short_name(heard.neighbour.chassis));
      if (is_switch_port(heard.neighbour.interface)) switches_.insert(heard.host);
    }
    for (const std::string& host : hosts_) {
      // A switch may be among those that tell their neighbours.
      const auto kind = switches_.contains(host)  ? CabledNode::Kind::kSwitch
                        : bridges_.contains(host) ? CabledNode::Kind::kUnknown
                                                  : CabledNode::Kind::kServer;
      builder_.node(host, kind, 0);
    }
    for (const Heard& heard : heard_) add_cable(heard);
    if (silent_ > 0)
      builder_.note("hosts that wrote no output of lldpctl are ignored" + first_silent_, 0, silent_);
    return builder_.finish("run lldpctl where lldpd has run for a minute, with LLDP on at the switches");
  }

  /// Was none of those who told their neighbours a switch? After finish().
  [[nodiscard]] bool was_told_by_servers() const {
    return switches_.empty() &&
           std::ranges::none_of(hosts_, [&](const std::string& host) { return bridges_.contains(host); });
  }

 private:
  struct Heard {
    std::string host;
    LldpNeighbour neighbour;
  };

  /// Of a file with several hosts.
  Result<void> add(const std::string& file, const HostText& from) {
    const std::string_view part = lldp_part(from.text);
    if (part.empty()) {
      silent_ += from.hosts.size();
      if (first_silent_.empty() && !first_line(from.text).empty())
        first_silent_ = fmt::format(", such as {}: {}", from.hosts.front(), first_line(from.text));
      return {};
    }
    if (from.hosts.size() > 1 && (shared_bytes_ += from.hosts.size() * part.size()) > kMostSharedBytes)
      return bad_line(
          file, std::max<std::int64_t>(1, from.line),
          fmt::format("hosts share texts of {} bytes together (valid: up to {}); run clush without -b",
                      shared_bytes_, kMostSharedBytes));
    if (from.line == 0)
      return add_text(fmt::format("{} ({})", file, from.hosts.front()), 0, from.hosts, part);
    const auto before = std::string_view(from.text).substr(0, from.text.size() - part.size());
    return add_text(file, from.line + std::ranges::count(before, '\n'), from.hosts, part);
  }

  /// Of hosts that wrote the same. `first_line` is where it begins in the file; 0: its lines are spread over it.
  Result<void> add_text(const std::string& file, std::int64_t first_line,
                        const std::vector<std::string>& hosts, std::string_view text) {
    if (text.size() > kMostLldpBytes) {
      return bad_line(
          file, std::max<std::int64_t>(1, first_line),
          fmt::format("the text of one host has {} bytes (valid: up to {})", text.size(), kMostLldpBytes));
    }
    std::vector<LldpNeighbour> neighbours;
    if (text.find_first_not_of(" \t\r\n") == text.find('{')) {
      auto read = read_lldp_json(file, std::max<std::int64_t>(1, first_line), text);
      if (!read) return fail(read.error());
      neighbours = *std::move(read);
    } else {
      neighbours = read_lldp_keyvalue(text);
      for (LldpNeighbour& neighbour : neighbours)
        neighbour.line = first_line == 0 ? 0 : neighbour.line + first_line - 1;
    }
    for (const std::string& host : hosts) {
      if (auto added = add_neighbours(file, first_line, host, neighbours); !added) return added;
    }
    return {};
  }

  /// A host that is known by its short name, if the full one is given; otherwise the name itself.
  [[nodiscard]] std::string short_name(const std::string& name) const {
    if (hosts_.contains(name)) return name;
    const std::string first = name.substr(0, name.find('.'));
    return hosts_.contains(first) ? first : name;
  }

  /// Is the interface made of others that have heard the neighbour, too?
  [[nodiscard]] bool is_heard_on_a_nic(const std::string& host, const std::string& interface,
                                       const std::string& chassis) const {
    if (const std::string_view nic = nic_of_vlan(interface); !nic.empty())
      return on_nics_.contains({host, std::string(nic)});
    return is_made_of_others(interface) && on_nics_.contains({host, "to " + chassis});
  }

  void add_cable(const Heard& heard) {
    const LldpNeighbour& neighbour = heard.neighbour;
    const std::string via = in_lower_case(neighbour.via);
    if (!via.empty() && via != "lldp")
      return builder_.note("neighbours of other protocols are ignored", neighbour.line);
    const bool has_name = neighbour.port_id_type != "mac" || neighbour.port_descr.empty();
    const std::string& port = has_name ? neighbour.port_id : neighbour.port_descr;
    // The ports of such a switch have other names.
    const bool is_own_eth = switches_.contains(heard.host) && neighbour.interface.starts_with("eth");
    if (is_own_eth || is_management(port) || is_management(neighbour.interface))
      return builder_.note("neighbours on management ports are ignored", neighbour.line);
    std::string chassis = neighbour.chassis;
    if (chassis.empty()) {
      // Others may have heard its name.
      const auto known = name_of_.find(neighbour.chassis_id);
      chassis = known == name_of_.end() ? neighbour.chassis_id : known->second;
    }
    chassis = short_name(chassis);
    if (is_heard_on_a_nic(heard.host, neighbour.interface, chassis))
      return builder_.note(
          "neighbours on bonds, VLANs and bridges are ignored where their NICs have heard them",
          neighbour.line);
    if (chassis.empty())
      return builder_.note("neighbours without a name and an identifier are ignored", neighbour.line);
    const std::size_t a = builder_.node(heard.host, CabledNode::Kind::kUnknown, 0);
    const bool is_switch = neighbour.is_bridge && !hosts_.contains(chassis);
    const std::size_t b =
        builder_.node(chassis, is_switch ? CabledNode::Kind::kSwitch : CabledNode::Kind::kUnknown, 0);
    builder_.add({.a = {a, neighbour.interface},
                  .b = {b, port},
                  .bandwidth_bytes_per_s = rate_of_mau(neighbour.mau),
                  .line = neighbour.line});
  }

  CablingBuilder builder_;
  std::size_t silent_ = 0;        ///< hosts of a file that wrote something else
  std::string first_silent_;      ///< what the first of them wrote
  std::size_t shared_bytes_ = 0;  ///< of texts that several hosts share, counted for each
  std::set<std::string> hosts_;
  std::unordered_map<std::string, std::string> files_;  ///< of one host each, by their names without folders
  std::vector<Heard> heard_;
  std::unordered_map<std::string, std::string> name_of_;  ///< of chassis, by their identifiers
  std::set<std::pair<std::string, std::string>>
      on_nics_;  ///< hosts with their interfaces, and "to CHASSIS" that NICs have heard
  std::unordered_set<std::string> switches_;  ///< hosts with ports of switches
  std::unordered_set<std::string> bridges_;   ///< hosts that others have heard to bridge or route
};

}  // namespace

bool is_lldp(std::string_view text) {
  HostLines lines(text);
  while (const auto line = lines.next()) {
    const std::string_view first = without_blanks(line->text);
    if (begins_lldp(first)) return !first.starts_with('{') || text.find("\"lldp\"") != std::string_view::npos;
    if (line->hosts.empty() && !first.empty()) return false;
  }
  return false;
}

Result<Cabling> read_lldp(std::span<const LldpText> texts) {
  if (texts.empty()) return fail(Code::kInvalidArgument, "no files of neighbours; give one for each host");
  LldpReader reader(texts.size() == 1 ? texts.front().name
                                      : fmt::format("{} and {} more", texts.front().name, texts.size() - 1));
  for (const LldpText& text : texts) {
    if (auto added = reader.add(text); !added) return fail(added.error());
  }
  auto cabling = reader.finish();
  if (cabling) cabling->heard_by_servers = reader.was_told_by_servers();
  return cabling;
}

Result<Cabling> cables_of(std::string_view name, std::vector<LldpHost> hosts) {
  LldpReader reader(name);
  for (LldpHost& host : hosts) {
    if (auto added = reader.add_neighbours(std::string(name), 1, host.name, std::move(host.neighbours));
        !added)
      return fail(added.error());
  }
  return reader.finish();
}

}  // namespace hips::topology

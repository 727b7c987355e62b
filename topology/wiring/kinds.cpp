#include "topology/wiring/kinds.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "topology/cabling/switch_ports.hpp"
#include "topology/formats/server_names.hpp"

namespace hips::topology {
namespace {

using Kind = CabledNode::Kind;

/// "gpu17-eth" as "gpu#-eth".
std::string without_numbers(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit || !result.ends_with('#')) result += is_digit ? '#' : c;
  }
  return result;
}

/// The kind that a word of the name tells, as "rail0-leaf3" and "gpu17" do; unknown if none or both.
Kind kind_of_name(std::string_view name) {
  static constexpr std::string_view kSwitchWords[] = {"leaf", "spine", "superspine", "tor", "switch", "sw"};
  static constexpr std::string_view kServerWords[] = {"server", "host", "node",   "gpu",
                                                      "dgx",    "hgx",  "compute"};
  bool is_switch = false, is_server = false;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  std::string word;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    const char c = i < name.size() ? name[i] : ' ';
    if (is_letter(c)) {
      word += static_cast<char>(c | 0x20);
      continue;
    }
    is_switch = is_switch || std::ranges::find(kSwitchWords, word) != std::end(kSwitchWords);
    is_server = is_server || std::ranges::find(kServerWords, word) != std::end(kServerWords);
    word.clear();
  }
  if (is_switch == is_server) return Kind::kUnknown;
  return is_switch ? Kind::kSwitch : Kind::kServer;
}

class KindDecision {
 public:
  explicit KindDecision(Cabling& cabling)
      : nodes_(cabling.nodes), near_(cabling.nodes.size()), has_other_ports_(cabling.nodes.size()) {
    for (const Cable& cable : cabling.cables) {
      for (const CableEnd& end : {cable.a, cable.b})
        if (!is_switch_port(end.port)) has_other_ports_[end.node] = true;
      if (cable.a.node == cable.b.node) continue;
      near_[cable.a.node].push_back(cable.b.node);
      near_[cable.b.node].push_back(cable.a.node);
    }
  }

  void run() {
    take_words();
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (is(node, Kind::kUnknown) && near_[node].size() == 1 && !is(near_[node].front(), Kind::kServer))
        ends_.push_back(node);
    }
    // Servers of several NICs of which a few have lost all cables but one.
    if (4 * ends_.size() < nodes_.size() && !knows(Kind::kServer)) {
      if (decide_by_sides()) return;
      if (!knows(Kind::kSwitch)) return take_others_for_servers();
    }
    take_namesakes();
    for (const std::size_t node : ends_) nodes_[node].kind = Kind::kServer;
    if (!knows(Kind::kServer) && !decide_by_sides()) take_others_for_servers();
    decide_by_neighbours();
  }

 private:
  [[nodiscard]] bool is(std::size_t node, Kind kind) const { return nodes_[node].kind == kind; }
  [[nodiscard]] bool knows(Kind kind) const {
    return std::ranges::find(nodes_, kind, &CabledNode::kind) != nodes_.end();
  }
  void take_others_for_servers() {
    for (CabledNode& node : nodes_)
      if (node.kind == Kind::kUnknown) node.kind = Kind::kServer;
  }

  /// Names of switches tell those of servers, too: of the nodes that have cables to switches only, those with the fewest, and
  /// their namesakes.
  void take_words() {
    bool has_switches = false;
    // Where all ports are called so they tell nothing.
    bool ports_tell = false;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      ports_tell = ports_tell || (has_other_ports_[i] && !near_[i].empty());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      CabledNode& node = nodes_[i];
      if (node.kind == Kind::kUnknown) node.kind = kind_of_name(node.name);
      if (node.kind == Kind::kUnknown && ports_tell && !near_[i].empty() && !has_other_ports_[i])
        node.kind = Kind::kSwitch;
      has_switches = has_switches || node.kind == Kind::kSwitch;
    }
    if (!has_switches || knows(Kind::kServer)) return;
    std::map<std::string, std::size_t> most_of;  // cables, by name without numbers
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!is(node, Kind::kUnknown) || near_[node].empty()) continue;
      std::size_t& most = most_of[without_numbers(nodes_[node].name)];
      const bool below =
          std::ranges::all_of(near_[node], [&](std::size_t other) { return is(other, Kind::kSwitch); });
      most = below ? std::max(most, near_[node].size()) : SIZE_MAX;
    }
    std::size_t least = SIZE_MAX;
    for (const auto& [name, most] : most_of) least = std::min(least, most);
    if (least == SIZE_MAX) return;
    for (CabledNode& node : nodes_)
      if (node.kind == Kind::kUnknown && most_of[without_numbers(node.name)] == least)
        node.kind = Kind::kServer;
  }

  /// Hosts with a second NIC among hosts with one: "gpu7" is as "gpu1" to "gpu6", unless some of these are switches.
  void take_namesakes() {
    struct Namesakes {
      std::size_t nodes = 0, ends = 0;
      bool has_switch = false;
    };
    std::unordered_map<std::string, Namesakes> all;
    for (const std::size_t end : ends_) ++all[without_numbers(nodes_[end].name)].ends;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      Namesakes& alike = all[without_numbers(nodes_[node].name)];
      ++alike.nodes;
      const auto is_server = [&](std::size_t other) {
        return is(other, Kind::kServer) || (is(other, Kind::kUnknown) && near_[other].size() == 1);
      };
      alike.has_switch |= is(node, Kind::kSwitch) || std::ranges::any_of(near_[node], is_server);
    }
    for (CabledNode& node : nodes_) {
      const Namesakes& alike = all[without_numbers(node.name)];
      if (node.kind == Kind::kUnknown && 2 * alike.ends >= alike.nodes && !alike.has_switch)
        node.kind = Kind::kServer;
    }
  }

  void decide_by_neighbours() {
    std::size_t most = 0;  ///< cables of a server
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!is(node, Kind::kServer)) continue;
      most = std::max(most, near_[node].size());
      for (const std::size_t other : near_[node])
        if (is(other, Kind::kUnknown)) nodes_[other].kind = Kind::kSwitch;
    }
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!is(node, Kind::kUnknown)) continue;
      const bool below_switches =
          std::ranges::all_of(near_[node], [&](std::size_t other) { return is(other, Kind::kSwitch); });
      nodes_[node].kind = below_switches && near_[node].size() <= most ? Kind::kServer : Kind::kSwitch;
    }
  }

  /// No server is known; switches may be. Decides all nodes, if they have two sides that differ, or none.
  bool decide_by_sides() {
    const auto sides = sides_of();
    std::size_t most[2] = {0, 0};
    bool known_switch[2] = {false, false};
    for (std::size_t node = 0; sides && node < nodes_.size(); ++node) {
      std::size_t& its = most[(*sides)[node]];
      its = std::max(its, near_[node].size());
      if (is(node, Kind::kSwitch)) known_switch[(*sides)[node]] = true;
    }
    if (!sides || (known_switch[0] == known_switch[1] && most[0] == most[1])) return false;
    int server_side = most[0] <= most[1] ? 0 : 1;
    if (known_switch[0] != known_switch[1]) server_side = known_switch[0] ? 1 : 0;
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      if (is(node, Kind::kUnknown))
        nodes_[node].kind = (*sides)[node] == server_side ? Kind::kServer : Kind::kSwitch;
    return true;
  }

  /// 0 or 1 by node, such that all cables lead across; none if there are no such sides.
  std::optional<std::vector<int>> sides_of() const {
    std::vector<int> sides(nodes_.size(), -1);
    for (std::size_t first = 0; first < nodes_.size(); ++first) {
      if (sides[first] >= 0) continue;
      sides[first] = 0;
      std::vector<std::size_t> next{first};
      while (!next.empty()) {
        const std::size_t node = next.back();
        next.pop_back();
        for (const std::size_t other : near_[node]) {
          if (sides[other] == sides[node]) return std::nullopt;
          if (sides[other] >= 0) continue;
          sides[other] = 1 - sides[node];
          next.push_back(other);
        }
      }
    }
    return sides;
  }

  std::vector<CabledNode>& nodes_;
  std::vector<std::vector<std::size_t>> near_;
  std::vector<bool> has_other_ports_;  ///< than those of switches, or none
  std::vector<std::size_t> ends_;
};

void note_all_are_servers(std::string_view name, Cabling& cabling) {
  cabling.notes.push_back(fmt::format(
      "{}: does not tell servers from switches; all {} nodes are taken for servers, unless --hosts REGEX or --switches REGEX "
      "tells which are",
      name, cabling.nodes.size()));
}

/// A plain name as part of an expression, with any numbers in place of "#".
std::string expression_of(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '#') {
      text += "[0-9]+";
      continue;
    }
    if (c == '.' || c == '+') text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

bool tells_kinds(const Cabling& cabling) {
  return std::ranges::any_of(cabling.nodes, [](const CabledNode& node) {
    return node.kind != Kind::kUnknown || kind_of_name(node.name) != Kind::kUnknown;
  });
}

void take_all_for_servers(std::string_view name, Cabling& cabling) {
  for (CabledNode& node : cabling.nodes) node.kind = Kind::kServer;
  note_all_are_servers(name, cabling);
}

std::string example_of_hosts(const Cabling& cabling) {
  constexpr std::size_t kMostNamed = 3, kMostShown = 64;
  std::vector<std::size_t> cables(cabling.nodes.size(), 0);
  for (const Cable& cable : cabling.cables) ++cables[cable.a.node], ++cables[cable.b.node];
  struct Form {
    std::size_t nodes = 0, cables = 0;
  };
  std::map<std::string, Form> forms;
  std::vector<std::size_t> order;
  for (std::size_t node = 0; node < cables.size(); ++node) {
    const std::string& name = cabling.nodes[node].name;
    if (!is_plain_name(name) || name.size() > kMostShown) continue;
    Form& form = forms[without_numbers(name)];
    ++form.nodes;
    form.cables += cables[node];
    order.push_back(node);
  }
  if (order.empty()) return "--hosts '^gpu[0-9]+$'";
  if (forms.size() > 1) {
    const auto fewest = std::ranges::min_element(forms, [](const auto& a, const auto& b) {
      return a.second.cables * b.second.nodes < b.second.cables * a.second.nodes;
    });
    return fmt::format("--hosts '^{}$'", expression_of(fewest->first));
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t node) { return cables[node]; });
  order.resize(std::min(order.size(), kMostNamed));
  std::string names;
  for (const std::size_t node : order)
    names += (names.empty() ? "" : "|") + expression_of(cabling.nodes[node].name);
  return fmt::format("--hosts '^({})$'", names);
}

void decide_kinds(std::string_view name, Cabling& cabling) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::size_t> unknown;
  for (std::size_t node = 0; node < cabling.nodes.size(); ++node)
    if (cabling.nodes[node].kind == Kind::kUnknown) unknown.push_back(node);
  if (unknown.empty()) return;
  KindDecision(cabling).run();
  std::string names;
  std::size_t count = 0;
  for (const std::size_t node : unknown) {
    if (cabling.nodes[node].kind != Kind::kSwitch || ++count > kMostNamed) continue;
    names += (names.empty() ? "" : ", ") + cabling.nodes[node].name;
  }
  if (count == 0) {
    const bool has_switch =
        std::ranges::any_of(cabling.nodes, [](const CabledNode& node) { return node.kind == Kind::kSwitch; });
    if (!has_switch) note_all_are_servers(name, cabling);
    return;
  }
  cabling.notes.push_back(fmt::format(
      "{}: does not tell servers from switches; by their cables and names, {}{} {}, unless --hosts REGEX or --switches REGEX "
      "tells otherwise",
      name, names, count > kMostNamed ? fmt::format(" and {} more", count - kMostNamed) : "",
      count == 1 ? "is a switch" : "are switches"));
}

}  // namespace hips::topology

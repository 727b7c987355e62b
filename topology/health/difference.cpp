#include "topology/health/difference.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "topology/health/cable_tiers.hpp"
#include "topology/health/cabling_of.hpp"

namespace hips::topology {
namespace {

using Kind = CabledNode::Kind;

/// A cable by the names of its ends, the smaller first.
struct NamedCable {
  std::string a, a_port, b, b_port;
  double rate = 0;  ///< 0: down
  std::string text;

  [[nodiscard]] auto nodes() const { return std::tie(a, b); }
  [[nodiscard]] auto ports() const { return std::tie(a, b, a_port, b_port); }
};

std::set<std::string> names_of(const Cabling& cabling, Kind kind) {
  std::set<std::string> names;
  for (const CabledNode& node : cabling.nodes)
    if (node.kind == kind) names.insert(node.name);
  return names;
}

std::vector<std::string> without(const std::set<std::string>& all, const std::set<std::string>& those) {
  std::vector<std::string> rest;
  std::ranges::set_difference(all, those, std::back_inserter(rest));
  return rest;
}

std::vector<NamedCable> named(const Cabling& cabling) {
  const CableTiers tiers = cable_tiers(cabling);
  std::vector<NamedCable> result;
  for (std::size_t i = 0; i < cabling.cables.size(); ++i) {
    const Cable& cable = cabling.cables[i];
    NamedCable one{.a = cabling.nodes[cable.a.node].name,
                   .a_port = cable.a.port,
                   .b = cabling.nodes[cable.b.node].name,
                   .b_port = cable.b.port,
                   .rate = cable.up ? cable.bandwidth_bytes_per_s : 0,
                   .text = cable_text(cabling, tiers, i)};
    if (one.b < one.a) {
      std::swap(one.a, one.b);
      std::swap(one.a_port, one.b_port);
    }
    result.push_back(std::move(one));
  }
  return result;
}

class CableMatch {
 public:
  CableMatch(const Cabling& before, const Cabling& now) : before_(named(before)), now_(named(now)) {
    for (const Kind kind : {Kind::kServer, Kind::kSwitch}) {
      const auto old_names = names_of(before, kind), new_names = names_of(now, kind);
      std::ranges::set_intersection(old_names, new_names, std::inserter(common_, common_.end()));
    }
  }

  void run(CablingDifference& result) {
    const auto with_rate = [](auto key) {
      return [key](const NamedCable& one) { return std::tuple_cat(key(one), std::tie(one.rate)); };
    };
    const auto ports = [](const NamedCable& one) { return one.ports(); };
    const auto nodes = [](const NamedCable& one) { return one.nodes(); };
    // Of parallel cables without ports, one that is as before is the one of before.
    match(with_rate(ports), result);
    match(ports, result);
    match(with_rate(nodes), result);
    match(nodes, result);
    for (const NamedCable& one : before_)
      if (is_common(one)) result.cables_gone.push_back(one.text);
    for (const NamedCable& one : now_)
      if (is_common(one)) result.cables_new.push_back(one.text);
  }

 private:
  [[nodiscard]] bool is_common(const NamedCable& one) const {
    return common_.contains(one.a) && common_.contains(one.b);
  }

  /// Removes the cables of equal keys from both lists.
  template <typename Key>
  void match(Key key, CablingDifference& result) {
    for (auto* list : {&before_, &now_})
      std::ranges::sort(*list, [&](const NamedCable& x, const NamedCable& y) {
        return std::tuple(key(x), x.rate, x.ports()) < std::tuple(key(y), y.rate, y.ports());
      });
    std::vector<NamedCable> before, now;
    auto old_one = before_.begin(), new_one = now_.begin();
    while (old_one != before_.end() && new_one != now_.end()) {
      if (key(*old_one) < key(*new_one)) {
        before.push_back(std::move(*old_one++));
      } else if (key(*new_one) < key(*old_one)) {
        now.push_back(std::move(*new_one++));
      } else {
        add_pair(*old_one++, *new_one++, result);
      }
    }
    std::move(old_one, before_.end(), std::back_inserter(before));
    std::move(new_one, now_.end(), std::back_inserter(now));
    before_ = std::move(before);
    now_ = std::move(now);
  }

  /// Is a port another one? Not where a topology file has only the number of a NIC, or nothing.
  static bool has_moved(const std::string& before, const std::string& now) {
    const bool are_numbers = before.starts_with(kNicNumber) && now.starts_with(kNicNumber);
    const bool are_names = !before.starts_with(kNicNumber) && !now.starts_with(kNicNumber);
    return before != now && !before.empty() && !now.empty() && (are_numbers || are_names);
  }

  static void add_pair(const NamedCable& before, const NamedCable& now, CablingDifference& result) {
    if (has_moved(before.a_port, now.a_port) || has_moved(before.b_port, now.b_port))
      result.moved.push_back(fmt::format("{}, before {}", now.text, before.text));
    if (before.rate != now.rate) result.rates.push_back({now.text, before.rate, now.rate});
  }

  std::vector<NamedCable> before_, now_;
  std::set<std::string> common_;
};

std::map<std::string, std::vector<double>> rates_by_server(const Cabling& cabling) {
  std::map<std::string, std::vector<double>> rates;
  for (const Cable& cable : cabling.cables)
    for (const CableEnd* end : {&cable.a, &cable.b})
      if (cabling.nodes[end->node].kind == Kind::kServer)
        rates[cabling.nodes[end->node].name].push_back(cable.up ? cable.bandwidth_bytes_per_s : 0);
  for (auto& [name, of_one] : rates) std::ranges::sort(of_one);
  return rates;
}

}  // namespace

bool CablingDifference::empty() const {
  return servers_gone.empty() && servers_new.empty() && switches_gone.empty() && switches_new.empty() &&
         cables_gone.empty() && cables_new.empty() && moved.empty() && rates.empty() && nics.empty();
}

CablingDifference compare_cablings(const Cabling& before, const Cabling& now, bool by_switches) {
  CablingDifference result;
  const auto old_servers = names_of(before, Kind::kServer), new_servers = names_of(now, Kind::kServer);
  result.servers_gone = without(old_servers, new_servers);
  result.servers_new = without(new_servers, old_servers);
  const auto old_rates = rates_by_server(before), new_rates = rates_by_server(now);
  for (const auto& [name, rates] : old_rates) {
    const auto found = new_rates.find(name);
    if (found == new_rates.end()) continue;
    if (rates.size() != found->second.size())
      result.nics.push_back({name, rates.size(), found->second.size()});
    if (by_switches || rates.size() != found->second.size()) continue;
    for (std::size_t i = 0; i < rates.size(); ++i)
      if (rates[i] != found->second[i])
        result.rates.push_back({fmt::format("a cable of {}", name), rates[i], found->second[i]});
  }
  if (!by_switches) return result;
  const auto old_switches = names_of(before, Kind::kSwitch), new_switches = names_of(now, Kind::kSwitch);
  result.switches_gone = without(old_switches, new_switches);
  result.switches_new = without(new_switches, old_switches);
  CableMatch(before, now).run(result);
  return result;
}

}  // namespace hips::topology

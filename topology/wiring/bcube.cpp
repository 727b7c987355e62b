#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/formats/parse.hpp"
#include "topology/spec.hpp"
#include "topology/union_find.hpp"
#include "topology/wiring/layout.hpp"

namespace hips::topology {
namespace {

// Two servers of a switch of level l differ in digit l only. So their switches of another level m are joined by
// switches of level l, one for each pair of their servers:
//
//   s --- S_m --- u          A and Y: switches of level l
//   |             |          S_m and X: switches of level m
//   A             Y
//   |             |
//   t ---- X ---- w
//
// From the labels of the switches of one server, the labels of all others follow.

class BCubeLayout {
 public:
  explicit BCubeLayout(const ServerWiring& wiring) : wiring_(wiring), level_(wiring.size(), kNone) {}

  std::vector<FamilyLayout> make() {
    if (!is_of_switches()) return {};
    if (!label_switches()) return {};
    for (std::size_t node = wiring_.num_servers; node < wiring_.size(); ++node)
      if (level_[node] == kNone) unlabelled_.push_back(node);
    if (unlabelled_.size() <= static_cast<std::size_t>(kMostMissing)) try_labels(0);
    return std::move(layouts_);
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  bool is_of_switches() {
    for (const WiredCable& cable : wiring_.cables)
      if (wiring_.is_server(cable.b) || !wiring_.is_server(cable.a)) return false;
    for (std::size_t server = 0; server < wiring_.num_servers; ++server)
      levels_ = std::max(levels_, wiring_.of[server].size());
    return levels_ >= 2 && levels_ <= 30;
  }

  [[nodiscard]] std::size_t across(std::size_t cable, std::size_t node) const {
    return wiring_.across(cable, node);
  }

  /// The switch of a level that a server has a cable to, among those that are labelled.
  [[nodiscard]] std::size_t switch_of(std::size_t server, std::size_t level) const {
    for (const std::size_t cable : wiring_.of[server])
      if (level_[across(cable, server)] == level) return across(cable, server);
    return kNone;
  }

  [[nodiscard]] bool has_cable(std::size_t server, std::size_t node) const {
    return std::ranges::any_of(wiring_.of[server],
                               [&](std::size_t cable) { return across(cable, server) == node; });
  }

  /// Labels first the switches of a server that has a cable to each level, then those of servers that share one.
  bool label_switches() {
    std::size_t first = 0;
    while (wiring_.of[first].size() < levels_) ++first;
    std::vector<std::size_t> switches;
    for (const std::size_t cable : wiring_.of[first]) switches.push_back(across(cable, first));
    // The switch of the server that follows by name has level 0.
    std::ranges::sort(switches, {}, [&](std::size_t node) { return next_server(node, first); });
    for (std::size_t level = 0; level < levels_; ++level) {
      if (level_[switches[level]] != kNone) return false;  // two cables to one switch
      level_[switches[level]] = level;
    }
    std::size_t product = 1;
    for (const std::size_t node : switches) product = multiply(product, wiring_.of[node].size());
    if (product > most_places()) return false;
    std::vector<std::size_t> front{first};
    std::vector<bool> done(wiring_.num_servers, false);
    done[first] = true;
    for (std::size_t at = 0; at < front.size(); ++at) {
      for (const std::size_t cable : wiring_.of[front[at]]) {
        const std::size_t shared = across(cable, front[at]);
        if (level_[shared] == kNone) continue;
        for (const std::size_t down : wiring_.of[shared]) {
          const std::size_t server = across(down, shared);
          if (done[server] || !label_beside(front[at], shared, server)) continue;
          done[server] = true;
          front.push_back(server);
        }
      }
    }
    return true;
  }

  /// Tries all levels of the switches of which the neighbours tell too little, as cables are missing.
  void try_labels(std::size_t at) {
    if (at < unlabelled_.size()) {
      for (std::size_t level = 0; level < levels_; ++level) {
        const auto has_level = [&](std::size_t cable) {
          return switch_of(across(cable, unlabelled_[at]), level) != kNone;
        };
        if (std::ranges::any_of(wiring_.of[unlabelled_[at]], has_level)) continue;
        level_[unlabelled_[at]] = level;
        try_labels(at + 1);
      }
      level_[unlabelled_[at]] = kNone;
      return;
    }
    if (!find_radices()) return;
    find_digits();
    if (fill_unknown()) lay_out();
  }

  [[nodiscard]] std::size_t next_server(std::size_t node, std::size_t after) const {
    std::size_t next = kNone;
    for (const std::size_t cable : wiring_.of[node])
      if (const std::size_t server = across(cable, node); server != after) next = std::min(next, server);
    return next;
  }

  /// Labels the switches of server t, which shares a switch with s. False if one stays unknown.
  bool label_beside(std::size_t s, std::size_t shared, std::size_t t) {
    std::vector<std::size_t> unknown;
    std::vector<bool> used(levels_, false);
    for (const std::size_t cable : wiring_.of[t]) {
      const std::size_t node = across(cable, t);
      level_[node] == kNone ? unknown.push_back(node) : void(used[level_[node]] = true);
    }
    bool all = true;
    for (const std::size_t node : unknown) {
      std::size_t level = kNone;
      if (std::ranges::count(used, false) == 1) {
        level = static_cast<std::size_t>(std::ranges::find(used, false) - used.begin());
      } else {
        for (std::size_t m = 0; m < levels_ && level == kNone; ++m)
          if (!used[m] && is_beside(s, m, shared, node)) level = m;
      }
      all = all && level != kNone;
      if (level == kNone) continue;
      level_[node] = level;
      used[level] = true;
    }
    return all;
  }

  /// Is there a server u below the switch of level m of s, and a server below `node`, that share a switch?
  [[nodiscard]] bool is_beside(std::size_t s, std::size_t m, std::size_t shared, std::size_t node) const {
    const std::size_t own = switch_of(s, m);
    if (own == kNone) return false;
    for (const std::size_t down : wiring_.of[own]) {
      const std::size_t u = across(down, own);
      if (u == s) continue;
      for (const std::size_t cable : wiring_.of[u]) {
        const std::size_t between = across(cable, u);
        if (between == own || between == shared) continue;
        if (level_[between] != kNone && level_[between] != level_[shared]) continue;
        for (const std::size_t up : wiring_.of[between])
          if (const std::size_t w = across(up, between); w != u && has_cable(w, node)) return true;
      }
    }
    return false;
  }

  /// Places for twice as many servers as there are: a part is at least half of its family.
  [[nodiscard]] std::size_t most_places() const { return 2 * wiring_.num_servers + kMostMissing; }
  /// Stops where it is too many places.
  [[nodiscard]] std::size_t multiply(std::size_t product, std::size_t radix) const {
    return product > most_places() ? product : product * radix;
  }

  bool find_radices() {
    radices_.assign(levels_, 0);
    for (std::size_t node = wiring_.num_servers; node < wiring_.size(); ++node)
      radices_[level_[node]] = std::max(radices_[level_[node]], wiring_.of[node].size());
    std::size_t product = 1;
    for (const std::size_t radix : radices_) {
      if (radix < 2) return false;
      product = multiply(product, radix);
    }
    return product >= wiring_.num_servers && product <= most_places();
  }

  /// Two servers have the same digit l if switches of other levels join them. Parts that no cables join with the others
  /// stay unknown.
  void find_digits() {
    digits_.assign(wiring_.num_servers, std::vector<std::size_t>(levels_, kNone));
    for (std::size_t level = 0; level < levels_; ++level) {
      UnionFind joined(wiring_.num_servers);
      for (std::size_t node = wiring_.num_servers; node < wiring_.size(); ++node) {
        if (level_[node] == level) continue;
        for (const std::size_t cable : wiring_.of[node])
          joined.join(across(cable, node), across(wiring_.of[node].front(), node));
      }
      // Cables count rather than servers: one without such a cable may have any digit.
      std::map<std::size_t, std::size_t> sizes;
      for (const WiredCable& cable : wiring_.cables)
        if (level_[cable.b] != level) ++sizes[joined.find(cable.a)];
      std::vector<std::size_t> largest;
      for (const auto& [root, size] : sizes) largest.push_back(root);
      std::ranges::stable_sort(largest, std::greater(), [&](std::size_t root) { return sizes[root]; });
      if (largest.size() > radices_[level]) largest.resize(radices_[level]);
      std::map<std::size_t, std::size_t> digit_of;
      for (std::size_t server = 0; server < wiring_.num_servers; ++server) {
        const std::size_t root = joined.find(server);
        if (std::ranges::find(largest, root) == largest.end()) continue;
        digits_[server][level] = digit_of.try_emplace(root, digit_of.size()).first->second;
      }
    }
  }

  [[nodiscard]] std::size_t place_of(const std::vector<std::size_t>& digits) const {
    std::size_t place = 0;
    for (std::size_t level = levels_; level-- > 0;) place = place * radices_[level] + digits[level];
    return place;
  }

  /// Gives servers with an unknown digit places that are free.
  bool fill_unknown() {
    std::size_t places = 1;
    for (const std::size_t radix : radices_) places *= radix;
    server_at_.assign(places, kNone);
    std::vector<std::size_t> unknown;
    for (std::size_t server = 0; server < wiring_.num_servers; ++server) {
      if (std::ranges::find(digits_[server], kNone) != digits_[server].end()) {
        unknown.push_back(server);
        continue;
      }
      std::size_t& at = server_at_[place_of(digits_[server])];
      if (at != kNone) return false;
      at = server;
    }
    return unknown.size() <= 2 * static_cast<std::size_t>(kMostMissing) && fill(unknown, 0);
  }

  /// Gives the servers unknown[at], unknown[at + 1], ... places.
  bool fill(const std::vector<std::size_t>& unknown, std::size_t at) {
    if (at == unknown.size()) return true;
    const std::size_t server = unknown[at];
    const std::vector<std::size_t> known = digits_[server];
    for (std::size_t place = 0; place < server_at_.size(); ++place) {
      if (server_at_[place] != kNone || !has_digits(place, known)) continue;
      server_at_[place] = server;
      if (fill(unknown, at + 1)) return true;
      server_at_[place] = kNone;
    }
    return false;
  }

  [[nodiscard]] bool has_digits(std::size_t place, const std::vector<std::size_t>& known) const {
    for (std::size_t level = 0; level < levels_; ++level) {
      if (known[level] != kNone && place % radices_[level] != known[level]) return false;
      place /= radices_[level];
    }
    return true;
  }

  void lay_out() {
    auto topology = parse(fmt::format("bcube:{}", fmt::join(radices_, "x")));
    if (!topology) return;
    FamilyLayout layout{.whole = *std::move(topology), .seen = {}};
    for (const std::size_t server : server_at_)
      layout.seen.push_back(server == kNone ? -1 : static_cast<std::int64_t>(server));
    std::size_t stride = 1;
    for (std::size_t level = 0; level < levels_; ++level) {
      const std::size_t radix = radices_[level], first = layout.seen.size();
      layout.seen.resize(first + server_at_.size() / radix, -1);
      for (std::size_t place = 0; place < server_at_.size(); ++place) {
        if (server_at_[place] == kNone) continue;
        const std::size_t node = switch_of(server_at_[place], level);
        if (node != kNone)
          layout.seen[first + place % stride + place / (stride * radix) * stride] =
              static_cast<std::int64_t>(node);
      }
      stride *= radix;
    }
    layouts_.push_back(std::move(layout));
  }

  const ServerWiring& wiring_;
  std::vector<std::size_t> level_;  ///< by node; of switches
  std::size_t levels_ = 0;
  std::vector<std::size_t> unlabelled_;
  std::vector<FamilyLayout> layouts_;
  std::vector<std::size_t> radices_;
  std::vector<std::vector<std::size_t>> digits_;  ///< by server
  std::vector<std::size_t> server_at_;            ///< by place
};

}  // namespace

std::vector<FamilyLayout> lay_out_bcube(const ServerWiring& wiring) {
  return BCubeLayout(wiring).make();
}

}  // namespace hips::topology

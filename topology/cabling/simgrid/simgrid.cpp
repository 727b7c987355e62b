#include "topology/cabling/simgrid/simgrid.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/xml/xml_tree.hpp"
#include "topology/cabling/simgrid/simgrid_cluster.hpp"
#include "topology/cabling/simgrid/simgrid_units.hpp"
#include "topology/cabling/text_lines.hpp"
#include "topology/rates.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

constexpr std::size_t kMostLevels = 16;

std::optional<std::size_t> simgrid_number(std::string_view word) {
  word = without_blanks(word);
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> simgrid_parts(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Numbers from 1, such as "4,4,2"; none if it is something else.
std::optional<std::vector<std::size_t>> simgrid_numbers(std::string_view text) {
  std::vector<std::size_t> numbers;
  for (const std::string_view part : simgrid_parts(text, ',')) {
    const auto number = simgrid_number(part);
    if (!number || *number == 0 || numbers.size() == kMostLevels) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

void collect_clusters(const XmlElement& element, std::vector<const XmlElement*>& found) {
  if (element.name == "cluster") found.push_back(&element);
  for (const XmlElement& child : element.children) collect_clusters(child, found);
}

class PlatformReader {
 public:
  explicit PlatformReader(std::string_view file) : builder_(file) {}

  Result<Cabling> read(const XmlElement& platform) {
    std::vector<const XmlElement*> clusters;
    collect_clusters(platform, clusters);
    if (clusters.empty())
      return bad(platform,
                 R"(the platform has no <cluster>; write one, such as <cluster id="c" prefix="n" suffix="" )"
                 R"(radical="0-15" speed="1Gf" bw="125MBps" lat="50us"/>)");
    if (clusters.size() > 1)
      return bad(*clusters[1],
                 fmt::format("the platform has {} clusters; leave one of them", clusters.size()));
    const XmlElement& element = *clusters.front();
    if (auto head = read_head(element); !head) return fail(head.error());
    const std::string topology = text_of(element, "topology");
    Result<void> wired;
    if (topology == "FAT_TREE") {
      wired = read_fat_tree(element);
    } else if (topology == "TORUS") {
      wired = read_torus(element);
    } else if (topology.empty() || topology == "FLAT") {
      add_simgrid_switch(cluster_, builder_);
    } else {
      return bad(element, fmt::format("topology {} is not supported; expected FAT_TREE, TORUS or none",
                                      in_quotes(topology)));
    }
    if (!wired) return fail(wired.error());
    note_ignored(element, topology);
    return builder_.finish("make the cluster smaller");
  }

 private:
  [[nodiscard]] tl::unexpected<Status> bad(const XmlElement& element, std::string_view problem) const {
    return builder_.bad(static_cast<std::int64_t>(element.line), problem);
  }

  static std::string text_of(const XmlElement& element, std::string_view key) {
    const std::string* const value = element.attribute(key);
    return value == nullptr ? std::string() : *value;
  }

  Result<void> read_head(const XmlElement& element) {
    cluster_.line = static_cast<std::int64_t>(element.line);
    cluster_.id = text_of(element, "id");
    if (cluster_.id.empty()) cluster_.id = "cluster";
    const std::string bandwidth = text_of(element, "bw"), latency = text_of(element, "lat");
    const auto rate = simgrid_bandwidth(bandwidth);
    if (!rate)
      return bad(element,
                 fmt::format("bw {} is no bandwidth from 1Mbps to 100Tbps; write such as 125MBps or 1Gbps",
                             in_quotes(bandwidth)));
    const auto ns = simgrid_latency_ns(latency);
    if (!ns)
      return bad(element,
                 fmt::format("lat {} is no latency from 0 to 10s; write such as 50us", in_quotes(latency)));
    cluster_.bandwidth_bytes_per_s = *rate;
    cluster_.latency_ns = *ns;
    return read_servers(element);
  }

  Result<void> read_servers(const XmlElement& element) {
    const std::string prefix = text_of(element, "prefix"), suffix = text_of(element, "suffix");
    const std::string radical = text_of(element, "radical");
    for (const std::string_view part : simgrid_parts(radical, ',')) {
      const std::size_t dash = part.find('-');
      const auto first = simgrid_number(part.substr(0, dash));
      const auto last = dash == std::string_view::npos ? first : simgrid_number(part.substr(dash + 1));
      if (!first || !last || *last < *first)
        return bad(element,
                   fmt::format("radical {} is no list of numbers and ranges; write such as 0-15 or 0-3,7",
                               in_quotes(radical)));
      if (*last - *first >= kMostSimgridNodes - cluster_.servers.size())
        return bad(element, fmt::format("radical {} has more than {} servers; make the cluster smaller",
                                        in_quotes(radical), kMostSimgridNodes));
      for (std::size_t number = *first; number - *first <= *last - *first; ++number) {
        cluster_.servers.push_back(fmt::format("{}{}{}", prefix, number, suffix));
        if (number == *last) break;
      }
    }
    std::vector<std::string_view> names(cluster_.servers.begin(), cluster_.servers.end());
    std::ranges::sort(names);
    if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
      return bad(element, fmt::format("radical {} has server {} twice; name it once", in_quotes(radical),
                                      in_quotes(*twice)));
    return {};
  }

  Result<void> check_count(const XmlElement& element, const std::vector<std::size_t>& factors) const {
    const std::size_t needed = product_of(factors, kMostSimgridNodes);
    if (needed == cluster_.servers.size()) return {};
    const std::string shown = needed > kMostSimgridNodes ? fmt::format("more than {}", kMostSimgridNodes)
                                                         : fmt::format("{}", needed);
    return bad(element,
               fmt::format("topo_parameters {} need {} servers, and radical {} has {}; make them equal",
                           in_quotes(text_of(element, "topo_parameters")), shown,
                           in_quotes(text_of(element, "radical")), cluster_.servers.size()));
  }

  Result<void> read_fat_tree(const XmlElement& element) {
    const std::string parameters = text_of(element, "topo_parameters");
    const auto wrong = [&] {
      return bad(
          element,
          fmt::format("topo_parameters {} are not LEVELS;CHILDREN;PARENTS;CABLES with a number from 1 for "
                      "each of up to {} levels; write such as 2;4,4;1,2;1,2",
                      in_quotes(parameters), kMostLevels));
    };
    const auto parts = simgrid_parts(parameters, ';');
    if (parts.size() != 4) return wrong();
    const auto levels = simgrid_number(parts[0]);
    const auto children = simgrid_numbers(parts[1]), parents = simgrid_numbers(parts[2]),
               cables = simgrid_numbers(parts[3]);
    if (!levels || !children || !parents || !cables) return wrong();
    for (const auto* numbers : {&*children, &*parents, &*cables})
      if (numbers->size() != *levels) return wrong();
    if (auto checked = check_count(element, *children); !checked) return checked;
    // There may be more switches than servers.
    std::size_t num_lower = cluster_.servers.size(), num_cables = 0;
    for (std::size_t level = 1; level <= *levels; ++level) {
      num_cables += product_of({num_lower, (*parents)[level - 1], (*cables)[level - 1]}, kMostSimgridCables);
      std::vector<std::size_t> factors(parents->begin(),
                                       parents->begin() + static_cast<std::ptrdiff_t>(level));
      factors.insert(factors.end(), children->begin() + static_cast<std::ptrdiff_t>(level), children->end());
      num_lower = product_of(factors, kMostSimgridNodes);
      if (num_lower > kMostSimgridNodes || num_cables > kMostSimgridCables)
        return bad(
            element,
            fmt::format("topo_parameters {} have more than {} switches in a level or {} cables; make the "
                        "cluster smaller",
                        in_quotes(parameters), kMostSimgridNodes, kMostSimgridCables));
    }
    add_simgrid_fat_tree(cluster_, {*children, *parents, *cables}, builder_);
    return {};
  }

  Result<void> read_torus(const XmlElement& element) {
    const std::string parameters = text_of(element, "topo_parameters");
    const auto sides = simgrid_numbers(parameters);
    if (!sides)
      return bad(
          element,
          fmt::format("topo_parameters {} are not the sides of up to {} dimensions; write such as 4,4,2",
                      in_quotes(parameters), kMostLevels));
    if (auto checked = check_count(element, *sides); !checked) return checked;
    if (product_of({cluster_.servers.size(), sides->size()}, kMostSimgridCables) > kMostSimgridCables)
      return bad(element, fmt::format("topo_parameters {} have more than {} cables; make the cluster smaller",
                                      in_quotes(parameters), kMostSimgridCables));
    add_simgrid_torus(cluster_, *sides, builder_);
    return {};
  }

  void note_ignored(const XmlElement& element, std::string_view topology) {
    for (const std::string_view key : {"limiter_link", "bb_bw", "bb_lat"})
      if (element.attribute(key) != nullptr)
        builder_.note(fmt::format("{} of clusters is ignored", key), cluster_.line);
    const std::string sharing = text_of(element, "sharing_policy");
    if (!sharing.empty() && sharing != "SPLITDUPLEX" && sharing != "FULLDUPLEX")
      builder_.note(fmt::format("sharing_policy {} is ignored, cables are full duplex", sharing),
                    cluster_.line);
    if (topology.empty() || topology == "FLAT")
      builder_.note("clusters without topology are one switch", cluster_.line);
  }

  CablingBuilder builder_;
  SimgridCluster cluster_;
};

}  // namespace

bool is_simgrid(std::string_view text) {
  text = without_mark(text);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '<') return false;
  return text.find("<platform") != std::string_view::npos || text.find("<cluster") != std::string_view::npos;
}

Result<Cabling> read_simgrid(std::string_view name, std::string_view text) {
  const auto root = read_xml(without_mark(text));
  if (!root) {
    // "line 3: ..." becomes "FILE:3: ...".
    std::string_view message = root.error().message;
    if (message.starts_with("line ")) message.remove_prefix(5);
    return fail(Code::kInvalidArgument, fmt::format("{}:{}", name, message));
  }
  return PlatformReader(name).read(*root);
}

}  // namespace hips::topology

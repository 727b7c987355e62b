#include "tools/hips/common/place_names.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include <fmt/format.h>

#include "tools/hips/health/predicted.hpp"
#include "topology/families/family.hpp"
#include "topology/tiers.hpp"

namespace hips::cli {
namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// The length of what may be an address or a leaf switch at the start of the text; 0: neither.
std::size_t length_of_place(std::string_view text) {
  if (text.front() == '<' || text.front() == '(') {
    const std::size_t end = text.find(text.front() == '<' ? '>' : ')');
    return end == std::string_view::npos ? 0 : end + 1;
  }
  for (const std::string_view kind : {"leaf switch ", "edge switch "}) {
    if (!text.starts_with(kind)) continue;
    const auto* const end = std::find_if_not(text.begin() + kind.size(), text.end(), is_digit);
    return static_cast<std::size_t>(end - text.begin());
  }
  return 0;
}

}  // namespace

PlaceNames::PlaceNames(const topology::TopologyFile& file) {
  const Topology& topology = file.topology;
  for (std::int64_t server = 0; server < std::ssize(file.server_names); ++server)
    servers_.emplace(topology::server_address(topology, server), file.server_name(server));
  if (file.told.switch_names.empty() || topology.num_links > health::kMostCables) return;
  for (const GraphNode& node : topology.graph().nodes)
    if (node.is_switch) switches_.emplace(node.name, topology::name_in_links(file.told, node));
  const auto tiers = topology::tiers(topology);
  if (tiers.empty() || tiers.front().servers_below == 0) return;
  for (std::int64_t leaf = 0; leaf < tiers.front().count; ++leaf) {
    const std::string place =
        topology::entry_of(topology.family).switch_name(topology, leaf * tiers.front().servers_below, 0);
    const auto known = switches_.find(place);
    if (known != switches_.end())
      leaves_.emplace(fmt::format("{} {}", tiers.front().one, leaf), known->second);
  }
}

std::string PlaceNames::operator()(std::string_view text) const {
  std::string result;
  // A place begins a word: "Torus(2,3)" is none.
  bool is_in_word = false;
  while (!text.empty()) {
    const std::size_t length = is_in_word ? 0 : length_of_place(text);
    const std::string place(text.substr(0, length));
    const auto& names = place.starts_with('<') || place.starts_with('(') ? servers_ : leaves_;
    const auto found = names.find(place);
    const std::size_t read = found == names.end() ? 1 : length;
    result += found == names.end() ? text.substr(0, 1) : std::string_view(found->second);
    is_in_word = std::string_view(" \n{").find(text[read - 1]) == std::string_view::npos;
    text.remove_prefix(read);
  }
  return result;
}

const std::string& PlaceNames::switch_named(const std::string& place) const {
  const auto found = switches_.find(place);
  return found == switches_.end() ? place : found->second;
}

std::string PlaceNames::switch_at(const Topology& topology, std::int64_t server, Rail rail) const {
  return switch_named(
      topology::entry_of(topology.family).switch_name(topology, topology.whole_server(server), rail));
}

}  // namespace hips::cli

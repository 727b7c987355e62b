#include "topology/clusters/slurm_nodes.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>

#include "topology/clusters/hostlist.hpp"
#include "topology/clusters/slurm_source.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::topology {
namespace {

constexpr std::string_view kSpaces = " \t\r\v\f";

/// The value of NodeName= at the beginning of a line; empty: another line.
std::string_view node_names(std::string_view line) {
  constexpr std::string_view kKey = "nodename";
  line.remove_prefix(std::min(line.find_first_not_of(kSpaces), line.size()));
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  if (line.size() < kKey.size() || !std::ranges::equal(line.substr(0, kKey.size()), kKey, same)) return {};
  line.remove_prefix(kKey.size());
  line.remove_prefix(std::min(line.find_first_not_of(kSpaces), line.size()));
  if (!line.starts_with('=')) return {};
  line.remove_prefix(1);
  line.remove_prefix(std::min(line.find_first_not_of(kSpaces), line.size()));
  if (line.starts_with('"')) return line.substr(1, line.substr(1).find('"'));
  return line.substr(0, line.find_first_of(kSpaces));
}

}  // namespace

bool needs_all_nodes(std::string_view text) {
  return text.find("ALL") != std::string_view::npos || text.find("flat") != std::string_view::npos;
}

Result<std::vector<std::string>> nodes_of_slurm_conf(const std::string& path) {
  const std::string conf = (std::filesystem::path(path).parent_path() / "slurm.conf").string();
  std::error_code error;
  if (!std::filesystem::is_regular_file(conf, error)) return std::vector<std::string>{};
  const auto text = read_text_file(conf, kMostSlurmBytes);
  if (!text) return fail(text.error());
  const auto whole = with_includes(conf, *text);
  if (!whole) return fail(whole.error());
  std::vector<std::string> nodes;
  HostlistExpander expander;
  std::size_t number = 0;
  for (std::string_view rest = whole->text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++number;
    const std::string_view value = node_names(line.substr(0, line.find('#')));
    if (value.empty() || value == "DEFAULT") continue;
    const auto list = Hostlist::parse(value);
    auto names = list ? expander.expand(*list) : Result<std::vector<std::string>>(fail(list.error()));
    if (!names)
      return fail(Code::kInvalidArgument,
                  fmt::format("{}: NodeName: {}", whole->source.where(number), names.error().message));
    nodes.insert(nodes.end(), std::move_iterator(names->begin()), std::move_iterator(names->end()));
  }
  return nodes;
}

}  // namespace hips::topology

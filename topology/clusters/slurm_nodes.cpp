#include "topology/clusters/slurm_nodes.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "topology/clusters/hostlist.hpp"
#include "topology/clusters/slurm_source.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::topology {
namespace {

constexpr std::string_view kSpaces = " \t\r\v\f";

/// Is `text` the word, which is in lower case?
bool is_same(std::string_view text, std::string_view word) {
  return std::ranges::equal(text, word,
                            [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

/// The value of NodeName= at the beginning of a line; empty: another line.
std::string_view node_names(std::string_view line) {
  constexpr std::string_view kKey = "nodename";
  line.remove_prefix(std::min(line.find_first_not_of(kSpaces), line.size()));
  if (!is_same(line.substr(0, kKey.size()), kKey)) return {};
  line.remove_prefix(kKey.size());
  line.remove_prefix(std::min(line.find_first_not_of(kSpaces), line.size()));
  if (!line.starts_with('=')) return {};
  line.remove_prefix(1);
  line.remove_prefix(std::min(line.find_first_not_of(kSpaces), line.size()));
  if (line.starts_with('"')) return line.substr(1, line.substr(1).find('"'));
  return line.substr(0, line.find_first_of(kSpaces));
}

}  // namespace

Result<std::vector<std::string>> all_slurm_nodes(const SlurmOptions& options) {
  const std::string conf = (std::filesystem::path(options.path).parent_path() / "slurm.conf").string();
  std::error_code error;
  if (options.path.empty() || !std::filesystem::is_regular_file(conf, error)) return options.all_nodes;
  const auto text = read_text_file(conf, kMostSlurmBytes);
  if (!text) return fail(text.error());
  const auto whole = with_includes(conf, *text);
  if (!whole) return fail(whole.error());
  std::vector<std::string> nodes;
  std::unordered_set<std::string> known;
  HostlistExpander expander;
  std::size_t number = 0;
  for (std::string_view rest = whole->text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++number;
    const std::string_view value = node_names(line.substr(0, line.find('#')));
    if (value.empty() || is_same(value, "default")) continue;
    const auto list = Hostlist::parse(value);
    auto names = list ? expander.expand(*list) : Result<std::vector<std::string>>(fail(list.error()));
    if (!names)
      return fail(Code::kInvalidArgument,
                  fmt::format("{}: NodeName: {}", whole->source.where(number), names.error().message));
    for (std::string& one : *names)
      if (known.insert(one).second) nodes.push_back(std::move(one));
  }
  return nodes;
}

}  // namespace hips::topology

#include "topology/clusters/slurm_nodes.hpp"

#include <filesystem>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "topology/cabling/text_lines.hpp"
#include "topology/clusters/hostlist.hpp"
#include "topology/clusters/slurm_lines.hpp"
#include "topology/clusters/slurm_source.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::topology {

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
  SlurmLines lines(whole->text);
  while (const auto line = lines.next()) {
    // What is wrong elsewhere in the file does not matter.
    std::string_view words = line->text;
    const auto first = take_pair(words);
    if (!first || !*first || in_lower_case((*first)->key) != "nodename") continue;
    const std::string_view value = (*first)->value;
    if (value.empty() || in_lower_case(value) == "default") continue;
    const auto list = Hostlist::parse(value);
    auto names = list ? expander.expand(*list) : Result<std::vector<std::string>>(fail(list.error()));
    if (!names)
      return fail(Code::kInvalidArgument,
                  fmt::format("{}: NodeName: {}", whole->source.where(line->number), names.error().message));
    for (std::string& one : *names)
      if (known.insert(one).second) nodes.push_back(std::move(one));
  }
  return nodes;
}

}  // namespace hips::topology

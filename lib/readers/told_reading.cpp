#include "lib/readers/told_reading.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "lib/readers/cabling_files.hpp"
#include "lib/readers/job_reading.hpp"
#include "topology/clusters/slurm.hpp"
#include "topology/clusters/slurm_source.hpp"
#include "topology/formats/yaml_tree.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

CablingOptions cabling_options(const ToldReading& told) {
  return {.selection = told.selection,
          .columns = told.columns,
          .tier_rates = told.tier_rates,
          .format = told.format};
}

/// One host in each file.
Result<TopologyFile> read_several(std::span<const std::string> paths, const ToldReading& told) {
  std::vector<NamedText> texts;
  std::size_t most = kMostYamlBytes;
  for (const std::string& path : paths) {
    auto text = read_text_file(path, most);
    if (!text) return fail(Code::kInvalidArgument, "topology file " + text.error().message);
    most -= text->size();
    texts.push_back({path, *std::move(text)});
  }
  return read_cabling_folder(paths.front(), texts, cabling_options(told));
}

/// The text of a file of Slurm; none of another one.
Result<std::optional<std::string>> slurm_text(const std::string& path, const ToldReading& told) {
  std::error_code error;
  if (!told.format.empty() && told.format != "slurm") return std::nullopt;
  if (told.format.empty() && std::filesystem::is_directory(path, error)) return std::nullopt;
  auto text = read_text_file(path, kMostSlurmBytes);
  if (!text) return fail(Code::kInvalidArgument, "topology file " + text.error().message);
  if (told.format.empty() && !is_slurm(*text)) return std::nullopt;
  return *std::move(text);
}

}  // namespace

Result<TopologyFile> read_as_told(std::span<const std::string> paths, const ToldReading& told) {
  const std::string& path = paths.front();
  if (!told.slurm_topology.empty() && paths.size() > 1)
    return fail(Code::kInvalidArgument,
                fmt::format("--slurm-topology {}: a file of Slurm is one file; leave out the other files",
                            told.slurm_topology));
  if (paths.size() > 1) return read_several(paths, told);
  if (told.selects_cables()) return read_cabling_path(path, cabling_options(told));
  auto text = slurm_text(path, told);
  if (!text) return fail(text.error());
  if (*text) {
    return read_slurm_for_job(
        path, **text,
        {.which = told.slurm_topology, .job = {}, .all_nodes = {}, .tier_rates = told.tier_rates});
  }
  if (!told.slurm_topology.empty())
    return fail(Code::kInvalidArgument,
                fmt::format("--slurm-topology {}: {} is no file of Slurm; leave the option out",
                            told.slurm_topology, in_quotes(path)));
  return read_cabling_path(path, cabling_options(told));
}

}  // namespace hips::topology

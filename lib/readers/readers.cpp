// Registers the readers of inputs that the library preloaded into MPI programs does not have: hostlists in topology files, Slurm's
// topologies, lists of cables, and plans in MSCCL's XML. Programs and libraries that link readers_dep read them directly.

#include "lib/plan/formats/msccl/read_msccl.hpp"
#include "lib/plan/formats/plan_file.hpp"
#include "lib/readers/cabling_files.hpp"
#include "lib/readers/job_reading.hpp"
#include "topology/clusters/hostlist.hpp"
#include "topology/clusters/slurm.hpp"
#include "topology/formats/server_names.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips {
namespace {

Result<std::uint64_t> count_hostlist(std::string_view text) {
  const auto list = topology::Hostlist::parse(text);
  if (!list) return fail(list.error());
  return list->size();
}

Result<std::vector<std::string>> expand_hostlist(std::string_view text, std::uint64_t most) {
  const auto list = topology::Hostlist::parse(text);
  if (!list) return fail(list.error());
  return list->expand(most);
}

Result<topology::TopologyFile> read_slurm(std::string_view name, std::string_view text) {
  return topology::read_slurm_for_job(std::string(name), text, {});
}

Result<topology::TopologyFile> read_folder(std::string_view name,
                                           std::span<const topology::NamedText> texts) {
  return topology::read_cabling_folder(name, texts);
}

[[maybe_unused]] const bool kRegistered = [] {
  topology::set_name_list_reader({.count = count_hostlist, .expand = expand_hostlist});
  topology::add_topology_format({.name = "slurm", .recognises = topology::is_slurm, .read = read_slurm});
  for (const topology::CablingFormat& format : topology::cabling_formats()) {
    topology::add_topology_format({.name = format.name,
                                   .recognises = format.recognises,
                                   .read =
                                       [read = format.read](std::string_view name, std::string_view text) {
                                         return topology::file_of_cables(name, read(name, text), {});
                                       },
                                   .read_folder = format.name == "lldp" ? read_folder : nullptr});
  }
  plan::add_plan_format({.name = "MSCCL XML", .recognises = plan::is_msccl, .read = plan::read_msccl});
  return true;
}();

}  // namespace
}  // namespace hips

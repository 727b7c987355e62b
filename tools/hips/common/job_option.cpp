#include "tools/hips/common/job_option.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/readers/job_reading.hpp"
#include "topology/clusters/job_hosts.hpp"
#include "topology/parts/restrict.hpp"

namespace hips::cli {
namespace {

bool is_given(const CLI::Option* option) {
  return option != nullptr && option->count() > 0;
}

[[noreturn]] void refuse_list(std::string message) {
  throw Error(Status::error(Code::kInvalidArgument, std::move(message)));
}

/// By which notes are sorted: what was assumed, and an option can change, first; then what was left out; what was ignored last.
int unimportance(std::string_view note) {
  const auto says = [&](std::string_view word) { return note.find(word) != std::string_view::npos; };
  if (says("assum")) return 0;
  if (says("ignored")) return 3;
  if (says("left out")) return 2;
  return says(" --") ? 0 : 1;
}

/// The part of a topology that the job uses.
struct JobPart {
  topology::TopologyFile file;              ///< with the notes and cables of all of it
  std::vector<std::string> notes_on_job{};  ///< which servers outside the job have to relay
};

JobPart read_part(const std::string& spec, const JobArguments& arguments) {
  const bool has_hostfile = is_given(arguments.hostfile_option);
  const bool has_nodelist = is_given(arguments.nodelist_option);
  if (!has_hostfile && !has_nodelist) return {.file = value_or_throw(topology::load_topology(spec))};
  if (has_nodelist && arguments.nodelist.empty())
    refuse_list("--nodelist: empty list; check that SLURM_JOB_NODELIST is set");
  if (has_hostfile && arguments.hostfile.empty())
    refuse_list("--hostfile: empty file name; give the hostfile of mpirun");
  topology::JobHosts hosts;
  if (has_nodelist) {
    hosts = value_or_throw(topology::read_nodelist(arguments.nodelist));
  } else {
    constexpr std::size_t kMostBytes = std::size_t{64} << 20U;
    const auto text = topology::read_text_file(arguments.hostfile, kMostBytes);
    if (!text) refuse_list("--hostfile: " + text.error().message);
    hosts = value_or_throw(topology::read_hostfile(arguments.hostfile, *text));
  }
  topology::read_for_job(hosts.names);
  const auto whole = value_or_throw(topology::load_topology(spec));
  JobPart part{.file = value_or_throw(topology::restrict_to(whole, hosts))};
  // To the job its relays are switches; the cables that the file lists have them as servers.
  if (!part.file.notes) part.file.cabling = whole.cabling;
  part.notes_on_job = std::exchange(part.file.notes, whole.notes).value_or(std::vector<std::string>());
  return part;
}

}  // namespace

void add_job_options(CLI::App& command, JobArguments& arguments) {
  arguments.hostfile_option =
      command
          .add_option("--hostfile", arguments.hostfile,
                      "Use only the servers in this MPI hostfile, one host name per line")
          ->type_name("FILE");
  arguments.nodelist_option =
      command
          .add_option("--nodelist", arguments.nodelist,
                      "Use only these servers; Slurm syntax, such as n[01-04,7] or $SLURM_JOB_NODELIST")
          ->type_name("LIST")
          ->excludes(command.get_option("--hostfile"));
}

topology::TopologyFile load_for_job(const std::string& spec, const JobArguments& arguments) {
  JobPart part = read_part(spec, arguments);
  for (std::string& note : part.notes_on_job) {
    if (!part.file.notes) part.file.notes.emplace();
    part.file.notes->push_back(std::move(note));
  }
  if (part.file.notes) std::ranges::stable_sort(*part.file.notes, {}, unimportance);
  return std::move(part.file);
}

topology::TopologyFile load_for_plan(const std::string& spec, const JobArguments& arguments) {
  JobPart part = read_part(spec, arguments);
  for (const std::string& note : part.notes_on_job) fmt::print(stderr, "hips: {}\n", note);
  return std::move(part.file);
}

}  // namespace hips::cli

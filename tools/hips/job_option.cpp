#include "tools/hips/job_option.hpp"

#include <fmt/format.h>

#include "topology/restrict.hpp"

namespace hips::cli {

void add_job_options(CLI::App& command, JobArguments& arguments) {
  CLI::Option* const hostfile =
      command
          .add_option("--hostfile", arguments.hostfile,
                      "only the servers of an MPI job: a host on each line, as mpirun takes it")
          ->type_name("FILE");
  command
      .add_option("--nodelist", arguments.nodelist,
                  "only these servers: n[01-04,7], as SLURM_JOB_NODELIST has them")
      ->type_name("LIST")
      ->excludes(hostfile);
}

topology::TopologyFile part_for_job(topology::TopologyFile file, const JobArguments& arguments) {
  if (!arguments.given()) return file;
  topology::JobHosts hosts;
  if (arguments.hostfile.empty()) {
    hosts = value_or_throw(topology::read_nodelist(arguments.nodelist));
  } else {
    constexpr std::size_t kMostBytes = std::size_t{64} << 20U;
    const auto text = topology::read_text_file(arguments.hostfile, kMostBytes);
    if (!text) throw Error(Status::error(Code::kInvalidArgument, "--hostfile: " + text.error().message));
    hosts = value_or_throw(topology::read_hostfile(arguments.hostfile, *text));
  }
  return value_or_throw(topology::restrict_to(file, hosts));
}

topology::TopologyFile load_for_job(const std::string& spec, const JobArguments& arguments) {
  return part_for_job(value_or_throw(topology::load_topology(spec)), arguments);
}

}  // namespace hips::cli

#include "tools/hips/launch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hips/topology.hpp>

#include "lib/plan/builder.hpp"

namespace hips::cli {
namespace {

/// "hips run -t bcube:3,1 ./app 5": the command again, for messages.
std::string retype(const LaunchRequest& request) {
  std::string text = "hips run";
  if (request.topology) text += " -t " + *request.topology;
  if (request.algorithm) text += " --algorithm " + *request.algorithm;
  if (request.pattern) text += " --pattern " + *request.pattern;
  return text + " " + fmt::format("{}", fmt::join(request.command, " "));
}

std::string ranks_text(std::optional<Rank> ranks) {
  return ranks ? fmt::format("{}", *ranks) : "RANKS";
}

Status check_plan(const LaunchRequest& request, const Topology& topology) {
  PlanRequest plan;
  if (request.algorithm) plan.algorithm = *request.algorithm;
  if (request.pattern) {
    auto patterns = plan::parse_patterns(*request.pattern);
    if (!patterns) return patterns.error();
    plan.patterns = *patterns;
  }
  auto builder = plan::make_builder(topology, plan);
  return builder ? Status::success() : builder.error();
}

Status check_mpi(const LaunchRequest& request, const Program& program, std::optional<Rank> ranks) {
  if (program.is_static)
    return Status::error(
        Code::kUnsupported,
        fmt::format("{} is linked statically, so HiPS cannot take its MPI_Allreduce; link it "
                    "with Open MPI's shared libraries",
                    request.command.front()));
  if (request.mpi && *request.mpi != "openmpi")
    return Status::error(Code::kInvalidArgument,
                         fmt::format("--mpi {} is not known; this HiPS has --mpi openmpi", *request.mpi));
  if (program.abi == MpiAbi::kMpich)
    return Status::error(
        Code::kUnsupported,
        fmt::format("{} needs {}, which is MPICH's, and this HiPS works with Open MPI; build it "
                    "with Open MPI's mpicc (mpicc.openmpi) and type: mpirun -n {} {}",
                    request.command.front(), program.mpi_library, ranks_text(ranks), retype(request)));
  return Status::success();
}

Status check_launcher(const LaunchRequest& request, const Program& program, const Launcher& launcher,
                      std::optional<Rank> ranks) {
  const bool is_openmpi = program.abi == MpiAbi::kOpenMpi || request.mpi;
  switch (launcher.kind) {
    case LauncherKind::kOpenMpi:
    case LauncherKind::kPmix:
      return Status::success();
    case LauncherKind::kHydra:
      return Status::error(
          Code::kUnsupported,
          is_openmpi
              ? fmt::format(
                    "mpiexec.hydra is MPICH's, and {} is a program of Open MPI, so that each rank would "
                    "be alone; type: mpirun.openmpi -n {} {}",
                    request.command.front(), ranks_text(launcher.size), retype(request))
              : fmt::format(
                    "mpiexec.hydra starts programs of MPICH, and this HiPS works with Open MPI; type: "
                    "mpirun.openmpi -n {} {}",
                    ranks_text(launcher.size), retype(request)));
    case LauncherKind::kSrun:
      return Status::error(Code::kUnsupported,
                           fmt::format("srun without PMIx leaves each rank of Open MPI alone; type: srun "
                                       "--mpi=pmix -n {} {}",
                                       ranks_text(ranks ? ranks : launcher.size), retype(request)));
    case LauncherKind::kNone:
      // One rank needs nobody to start it, and a program that nobody started has one rank.
      if (!ranks || *ranks == 1) return Status::success();
      return Status::error(Code::kInvalidArgument,
                           fmt::format("{} has {} ranks, and no launcher started them; type: mpirun -n {} {}",
                                       *request.topology, *ranks, *ranks, retype(request)));
  }
  return Status::success();
}

}  // namespace

Result<std::optional<std::string>> check_launch(const LaunchRequest& request, const Program& program,
                                                const Launcher& launcher) {
  std::optional<Topology> topology;
  std::optional<Rank> ranks;
  if (request.topology) {
    try {
      topology = parse_topology(*request.topology);
    } catch (const Error& error) {
      return fail(error.status());
    }
    ranks = topology->num_ranks();
  }
  if (Status status = check_mpi(request, program, ranks ? ranks : launcher.size); !status.ok())
    return fail(std::move(status));
  if (Status status = check_launcher(request, program, launcher, ranks); !status.ok())
    return fail(std::move(status));
  if (!topology) return std::optional<std::string>();

  std::string spec = *request.topology;
  if (launcher.size && *launcher.size != *ranks) {
    if (topology->ranks_per_server != 1 || *launcher.size % *ranks != 0)
      return fail(Code::kInvalidArgument,
                  fmt::format("{} has {} ranks, but {} were started; type: mpirun -n {} {}", spec, *ranks,
                              *launcher.size, *ranks, retype(request)));
    spec = fmt::format("{}/{}", spec, *launcher.size / *ranks);
    topology = parse_topology(spec);
  }
  if (Status status = check_plan(request, *topology); !status.ok()) return fail(std::move(status));
  return std::optional<std::string>(std::move(spec));
}

std::string add_to_preload(std::string_view preload, std::string_view library) {
  for (std::string_view rest = preload; !rest.empty();) {
    const std::size_t end = rest.find_first_of(": ");
    if (rest.substr(0, end) == library) return std::string(preload);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return preload.empty() ? std::string(library) : fmt::format("{}:{}", library, preload);
}

}  // namespace hips::cli

#include "tools/hips/run/launch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hips/topology.hpp>

namespace hips::cli {
namespace {

/// A word as it is typed in a shell.
std::string typed(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// The command line of the request, for messages: "hips run -t bcube:3,1 ./app 5".
std::string retype(const LaunchRequest& request) {
  std::string text = "hips run";
  if (request.topology) text += " -t " + typed(*request.topology);
  if (request.algorithm) text += " --algorithm " + typed(*request.algorithm);
  if (request.pattern) text += " --pattern " + typed(*request.pattern);
  if (request.mpi) text += " --mpi " + typed(*request.mpi);
  for (const std::string& word : request.others) text += " " + typed(word);
  for (const std::string& word : request.command) text += " " + typed(word);
  return text;
}

std::string ranks_text(std::optional<Rank> ranks) {
  return ranks ? fmt::format("{}", *ranks) : "RANKS";
}

/// Checks that this launcher's ranks can find each other, and that a launcher started several of them.
Status check_launcher(const LaunchRequest& request, const Interposer& interposer, const Launcher& launcher,
                      std::optional<Rank> ranks) {
  const auto refused = [&](std::string_view why, std::string_view launcher_of_mpi, std::optional<Rank> num) {
    return Status::error(Code::kUnsupported, fmt::format("{}; type: {} -n {} {}", why, launcher_of_mpi,
                                                         ranks_text(num), retype(request)));
  };
  const auto alone = [&](std::string_view launcher_name, std::string_view of_mpi) {
    return fmt::format("{} belongs to {}, but {} is a program of {}; each rank would run alone",
                       launcher_name, of_mpi, request.command.front(), interposer.mpi);
  };
  const bool is_mpich = interposer.abi == MpiAbi::kMpich;
  switch (launcher.kind) {
    case LauncherKind::kOpenMpi:
      return is_mpich ? refused(alone("mpirun", "Open MPI"), interposer.launcher, launcher.size)
                      : Status::success();
    case LauncherKind::kPmix:
      return Status::success();
    case LauncherKind::kHydra:
      return is_mpich ? Status::success()
                      : refused(alone("mpiexec.hydra", "MPICH"), "mpirun.openmpi", launcher.size);
    case LauncherKind::kPmi2:
      if (is_mpich) return Status::success();
      [[fallthrough]];
    case LauncherKind::kSrun:
      // Hydra starts its own daemons with srun.
      return is_mpich ? refused("srun without PMI runs each rank of MPICH alone", interposer.launcher,
                                ranks ? ranks : launcher.size)
                      : refused("srun without PMIx runs each rank of Open MPI alone", "srun --mpi=pmix",
                                ranks ? ranks : launcher.size);
    case LauncherKind::kNone:
      // One rank needs no launcher.
      if (!ranks || *ranks == 1) return Status::success();
      return Status::error(
          Code::kInvalidArgument,
          fmt::format("{} has {} ranks, but no launcher started them; type: {} -n {} {}", *request.topology,
                      *ranks, interposer.launcher, *ranks, retype(request)));
  }
  return Status::success();
}

}  // namespace

Result<Launch> check_launch(const LaunchRequest& request, const MpiProgram& program,
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
  if (program.uses_hips_library && program.abi == MpiAbi::kUnknown)
    return fail(
        Code::kUnsupported,
        fmt::format("{} calls the HiPS library itself and makes no MPI calls to intercept; start it without "
                    "hips run, each rank with HIPS_RANK, HIPS_SIZE and HIPS_ROOT=host:port",
                    request.command.front()));
  if (program.is_static)
    return fail(Code::kUnsupported,
                fmt::format("{} is linked statically, so that HiPS cannot intercept its MPI calls; link it "
                            "with the shared libraries of its MPI",
                            request.command.front()));
  if (program.is_secure)
    return fail(
        Code::kUnsupported,
        fmt::format(
            "{} gets rights that you do not have (setuid, setgid or capabilities), so that the system "
            "preloads nothing into it; run a copy without them",
            request.command.front()));
  const auto interposer = choose_interposer(request.mpi, program, launcher);
  if (!interposer) return fail(interposer.error());
  if (Status status = check_launcher(request, **interposer, launcher, ranks); !status.ok())
    return fail(std::move(status));
  std::string warning;
  if (launcher.kind == LauncherKind::kNone)
    warning = fmt::format("no launcher started this program, so that it is one rank; type: {} -n RANKS {}",
                          (*interposer)->launcher, retype(request));
  if (program.makes_no_mpi_calls)
    warning = fmt::format("{} needs no MPI library, so that HiPS has no calls to intercept",
                          request.command.front());
  if (!topology) return Launch{*interposer, std::nullopt, std::move(warning)};

  std::string spec = *request.topology;
  if (launcher.size && *launcher.size != *ranks) {
    if (topology->ranks_per_server != 1 || *launcher.size % *ranks != 0)
      return fail(Code::kInvalidArgument,
                  fmt::format("{} has {} ranks, but {} were started; type: {} -n {} {}", spec, *ranks,
                              *launcher.size, (*interposer)->launcher, *ranks, retype(request)));
    spec = fmt::format("{}/{}", spec, *launcher.size / *ranks);
  }
  return Launch{*interposer, std::move(spec), std::move(warning)};
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

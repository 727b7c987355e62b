#include "tools/hips/run/interposers.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace hips::cli {
namespace {

constexpr std::array kInterposers = {
    Interposer{MpiAbi::kOpenMpi, "openmpi", "Open MPI", "libhips_mpi.so", "mpi", "mpirun"},
    Interposer{MpiAbi::kMpich, "mpich", "MPICH", "libhips_mpich.so", "mpich", "mpiexec.hydra"},
};

MpiAbi abi_of_launcher(LauncherKind kind) {
  switch (kind) {
    case LauncherKind::kOpenMpi:
    case LauncherKind::kPmix:
      return MpiAbi::kOpenMpi;
    case LauncherKind::kHydra:
    case LauncherKind::kPmi2:
      return MpiAbi::kMpich;
    case LauncherKind::kSrun:
    case LauncherKind::kNone:
      break;
  }
  return MpiAbi::kOpenMpi;
}

}  // namespace

std::span<const Interposer> interposers() {
  return kInterposers;
}

const Interposer* interposer_of(MpiAbi abi) {
  const auto found = std::ranges::find(kInterposers, abi, &Interposer::abi);
  return found == kInterposers.end() ? nullptr : &*found;
}

Result<const Interposer*> choose_interposer(const std::optional<std::string>& mpi_option,
                                            const MpiProgram& program, const Launcher& launcher) {
  const Interposer* asked = nullptr;
  if (mpi_option && *mpi_option != "auto") {
    const auto found = std::ranges::find(kInterposers, *mpi_option, &Interposer::option);
    if (found == kInterposers.end())
      return fail(Code::kInvalidArgument,
                  fmt::format("--mpi: unknown MPI \"{}\"; expected openmpi, mpich or auto", *mpi_option));
    asked = &*found;
  }
  if (program.abi == MpiAbi::kUnknown)
    return asked != nullptr ? asked : interposer_of(abi_of_launcher(launcher.kind));
  const Interposer* const its_own = interposer_of(program.abi);
  if (asked != nullptr && asked != its_own)
    return fail(Code::kInvalidArgument, fmt::format("{} needs {} of {}; remove --mpi {}", program.path,
                                                    program.mpi_library, its_own->mpi, asked->option));
  return its_own;
}

}  // namespace hips::cli

#include "tools/hips/job/launcher.hpp"

#include <charconv>
#include <cstdint>

namespace hips::cli {
namespace {

std::optional<std::int64_t> number(const GetEnv& get_env, const char* name) {
  const char* text = get_env(name);
  if (!text) return std::nullopt;
  const std::string_view view(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc{} || end != view.data() + view.size()) return std::nullopt;
  return value;
}

std::optional<Rank> rank_number(const GetEnv& get_env, const char* name) {
  const auto value = number(get_env, name);
  if (!value || *value < 0 || *value > INT32_MAX) return std::nullopt;
  return static_cast<Rank>(*value);
}

std::optional<Rank> first_of(std::optional<Rank> a, std::optional<Rank> b) {
  return a ? a : b;
}

/// Is this a task of srun? Slurm sets its variables in batch scripts and shells of salloc, too; a task of
/// srun has a numbered step. Slurm numbers the special steps (batch, extern, interactive) from the top of 32
/// bits.
bool in_srun_step(const GetEnv& get_env) {
  const auto step = number(get_env, "SLURM_STEP_ID");
  constexpr std::int64_t kFirstSpecialStep = 0xfffffff0;
  return step && *step >= 0 && *step < kFirstSpecialStep && number(get_env, "SLURM_PROCID");
}

}  // namespace

Launcher detect_launcher(const GetEnv& get_env) {
  const auto slurm_size =
      first_of(rank_number(get_env, "SLURM_STEP_NUM_TASKS"), rank_number(get_env, "SLURM_NTASKS"));
  // The most specific first: inside a Slurm job mpirun and mpiexec.hydra start their daemons with srun, and
  // mpirun's ranks have PMIx variables, too.
  if (const auto size = rank_number(get_env, "OMPI_COMM_WORLD_SIZE"))
    return {LauncherKind::kOpenMpi, rank_number(get_env, "OMPI_COMM_WORLD_RANK").value_or(0), size,
            rank_number(get_env, "OMPI_COMM_WORLD_LOCAL_RANK")};
  if (const auto rank = rank_number(get_env, "PMIX_RANK"))
    return {LauncherKind::kPmix, *rank, in_srun_step(get_env) ? slurm_size : std::nullopt,
            rank_number(get_env, "SLURM_LOCALID")};
  if (get_env("HYDI_CONTROL_FD") || (get_env("PMI_RANK") && !in_srun_step(get_env)))
    return {LauncherKind::kHydra, rank_number(get_env, "PMI_RANK").value_or(0),
            rank_number(get_env, "PMI_SIZE"), rank_number(get_env, "MPI_LOCALRANKID")};
  if (in_srun_step(get_env))
    return {get_env("PMI_RANK") ? LauncherKind::kPmi2 : LauncherKind::kSrun,
            rank_number(get_env, "SLURM_PROCID").value_or(0), slurm_size,
            rank_number(get_env, "SLURM_LOCALID")};
  return {};
}

std::string_view to_string(LauncherKind kind) {
  switch (kind) {
    case LauncherKind::kNone:
      return "no launcher";
    case LauncherKind::kOpenMpi:
      return "mpirun";
    case LauncherKind::kPmix:
      return "PMIx";
    case LauncherKind::kHydra:
      return "mpiexec.hydra";
    case LauncherKind::kPmi2:
    case LauncherKind::kSrun:
      return "srun";
  }
  return "unknown launcher";
}

}  // namespace hips::cli

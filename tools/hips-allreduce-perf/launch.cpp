#include "tools/hips-allreduce-perf/launch.hpp"

#include <array>
#include <cstdlib>
#include <string_view>

namespace hips::perf {
namespace {

// Open MPI, PMIx (srun --mpi=pmix, prterun), and PMI-1/2 (hydra, srun --mpi=pmi2).
constexpr std::array kMpiRankVariables = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};

class EnvironmentLaunch final : public PerfLaunch {
 public:
  hips_status_t create(const hips_comm_config_t& config, hips_comm_t* comm) override {
    return hips_comm_create(&config, nullptr, comm);
  }
  std::unique_ptr<OtherAllreduce> native_mpi(bool /*interposed*/) override { return nullptr; }
  void finish() override {}
};

const char* mpi_rank() {
  for (const char* name : kMpiRankVariables) {
    if (const char* rank = std::getenv(name)) return rank;
  }
  return nullptr;
}

}  // namespace

bool PerfLaunch::reports() {
  const char* rank = std::getenv("HIPS_RANK");
  if (rank == nullptr) rank = mpi_rank();
  return rank == nullptr || std::string_view(rank) == "0";
}

Result<std::unique_ptr<PerfLaunch>> PerfLaunch::detect(int* argc, char*** argv) {
  if (std::getenv("HIPS_RANK") != nullptr) return std::make_unique<EnvironmentLaunch>();
  if (mpi_rank() != nullptr) return launch_by_mpi(argc, argv);
  return fail(Code::kInvalidArgument,
              "no launcher; run it under mpirun -n N, or start each rank with HIPS_RANK, HIPS_SIZE and "
              "HIPS_ROOT=host:port");
}

}  // namespace hips::perf

#include <hips/mpi.h>

#include "tools/hips-allreduce-perf/launch.hpp"

namespace hips::perf {
namespace {

class MpiLaunch final : public Launch {
 public:
  MpiLaunch(int* argc, char*** argv) { MPI_Init(argc, argv); }
  hips_status_t create(const hips_comm_config_t& config, hips_comm_t* comm) override {
    return hips_comm_create_mpi(MPI_COMM_WORLD, &config, comm);
  }
  void finish() override { MPI_Finalize(); }
};

}  // namespace

Result<std::unique_ptr<Launch>> launch_by_mpi(int* argc, char*** argv) {
  return std::make_unique<MpiLaunch>(argc, argv);
}

}  // namespace hips::perf

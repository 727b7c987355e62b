// Sums a vector over all ranks; needs no MPI and no NIC. Start it once for each rank:
//   HIPS_RANK=0 HIPS_SIZE=2 HIPS_ROOT=127.0.0.1:18500 ./allreduce &
//   HIPS_RANK=1 HIPS_SIZE=2 HIPS_ROOT=127.0.0.1:18500 ./allreduce
// or by a launcher:
//   HIPS_ROOT=127.0.0.1:18500 mpirun -n 9 ./allreduce
#include <cstdio>
#include <vector>

#include <hips/hips.hpp>

int main() try {
  hips::Communicator comm = hips::Communicator::from_environment();

  std::vector<float> gradient(1'000'000, static_cast<float>(comm.rank() + 1));
  comm.allreduce(gradient, hips::ReduceOp::kSum);

  std::printf("rank %d of %d: every element is %g\n", comm.rank(), comm.size(), gradient.front());
  return 0;
} catch (const hips::Error& error) {
  std::fprintf(stderr, "allreduce: %s\n", error.what());
  return 1;
}

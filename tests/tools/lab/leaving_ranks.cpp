// Ranks that leave at once after a reduction whose result only rank 0 gets.

#include <cstddef>
#include <cstdio>
#include <hips/hips.hpp>
#include <vector>

int main() try {
  hips::Communicator comm = hips::Communicator::from_environment();
  std::vector<float> in(std::size_t{1} << 19U, 1), out(in.size());
  comm.reduce(in, std::span(out), hips::ReduceOp::kSum, 0);
  if (comm.rank() == 0) std::printf("%g\n", out.back());
} catch (const hips::Error& error) {
  std::fprintf(stderr, "leaving_ranks: %s\n", error.what());
  return 1;
}

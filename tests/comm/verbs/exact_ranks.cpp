// One rank of a job that something else started, as users' programs are: exact_ranks COUNT[,COUNT...]
// ALGORITHM... calls allreduce with vectors of so many elements by each algorithm, twice each, overwrites
// what it gave as soon as the calls return, and checks every element. "hips/ring" is algorithm hips with
// HIPS_PATTERN=ring.

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/comm/allreduce_check.hpp"

int main(int argc, char** argv) {
  using hips::ReduceOp;
  std::vector<std::size_t> counts;
  std::istringstream list(argc > 1 ? argv[1] : "");
  for (std::string count; std::getline(list, count, ',');)
    counts.push_back(std::strtoull(count.c_str(), nullptr, 10));
  if (counts.empty() || argc < 3) {
    std::fprintf(stderr, "usage: exact_ranks COUNT[,COUNT...] ALGORITHM[/PATTERN]...\n");
    return 2;
  }
  try {
    for (int i = 2; i < argc; ++i) {
      const std::string name = argv[i];
      const std::size_t slash = name.find('/');
      setenv("HIPS_ALGORITHM", name.substr(0, slash).c_str(), 1);
      unsetenv("HIPS_PATTERN");
      if (slash != std::string::npos) setenv("HIPS_PATTERN", name.substr(slash + 1).c_str(), 1);
      auto comm = hips::Communicator::from_environment();
      hips::test::Digest digest;
      for (const std::size_t count : counts)
        hips::test::check_allreduce<float>(comm, ReduceOp::kSum, count, digest);
      std::printf("exact %s %s: %s\n", name.c_str(), digest.text().c_str(),
                  std::string(comm.describe()).c_str());
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::printf("failed: %s\n", error.what());
    return 1;
  }
  return 0;
}

// That communicators over verbs free what they take. Linked with the leak sanitizer, which needs nothing
// woven in.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <sanitizer/lsan_interface.h>
#include <hips/hips.hpp>

#include "tests/comm/verbs/job.hpp"

namespace hips::test {
namespace {

TEST(Leaks, CommunicatorsFreeAllThatTheyTook) {
  const auto texts = run_job(3, [](int rank, const auto&) -> std::string {
    for (int i = 0; i < 30; ++i) {
      auto comm = hips::Communicator::from_environment();
      std::vector<float> v(1000, static_cast<float>(rank));
      comm.allreduce<float>(v, ReduceOp::kSum);
      if (v[999] != 3) throw std::runtime_error("a wrong sum");
    }
    return __lsan_do_recoverable_leak_check() != 0 ? "leaks, listed above" : "";
  });
  EXPECT_THAT(texts, ::testing::Each(""));
}

}  // namespace
}  // namespace hips::test

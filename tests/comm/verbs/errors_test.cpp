// What a user reads when something is wrong with the NIC, the wiring, a limit or a peer: one line that names
// rank, device, peer, what the device said and what to do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <hips/hips.hpp>

#include "tests/comm/verbs/job.hpp"
#include "tests/hang_limit.hpp"

namespace hips::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;

std::string create() {
  return error_of([] { hips::Communicator::from_environment(); });
}

/// Calls until something fails; the test fails when nothing does.
std::string call_until_it_fails(hips::Communicator& comm,
                                std::chrono::seconds limit = hips::test::kHangLimit) {
  std::vector<float> v(50'000, 1);
  const auto end = std::chrono::steady_clock::now() + limit;
  return error_of([&] {
    while (std::chrono::steady_clock::now() < end) comm.allreduce<float>(v, ReduceOp::kMax);
  });
}

/// Not empty, and one line; printed, because a person has to judge whether it helps.
MATCHER(IsOneLine, "is one line") {
  std::printf("    %s\n", arg.c_str());
  return !arg.empty() && arg.find('\n') == std::string::npos;
}

testing::Matcher<const std::string&> one_line() {
  return IsOneLine();
}

/// The interface that carries the device, for "ip link".
std::string interface_of(const std::string& port) {
  const std::string device = port.substr(0, port.find(':'));
  std::string name;
  if (FILE* file = fopen(fmt::format("/sys/class/infiniband/{}/parent", device).c_str(), "r");
      file != nullptr) {
    char text[64] = "";
    if (fgets(text, sizeof text, file) != nullptr) name = text;
    fclose(file);
  }
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

TEST(Errors, ADeviceThatIsNotThereIsNamedWithThoseThatAre) {
  const auto texts = run_job(2, [](int, const auto&) { return create(); }, {{"HIPS_IB_HCA", "=nosuch_9"}});
  EXPECT_THAT(texts, Each(AllOf(one_line(), HasSubstr("HIPS_IB_HCA=\"=nosuch_9\""), HasSubstr(rdma_port()))));
}

TEST(Errors, AWrongAddressIndexOfOneRankReachesAllWithWhatThereIs) {
  const auto texts = run_job(3, [](int rank, const auto&) {
    if (rank == 1) setenv("HIPS_IB_GID_INDEX", "200", 1);
    return create();
  });
  EXPECT_THAT(texts, Each(AllOf(one_line(), HasSubstr("rank 1: "), HasSubstr("HIPS_IB_GID_INDEX=200"),
                                HasSubstr(rdma_port()), HasSubstr("at index 0"))));
}

TEST(Errors, ACapOnQueuePairsSaysHowManyAreNeeded) {
  const auto texts = run_job(3, [](int, const auto&) { return create(); },
                             {{"HIPS_VERBS_MAX_QP", "1"}, {"HIPS_PATTERN", "mesh"}});
  EXPECT_THAT(texts, Each(AllOf(one_line(), HasSubstr("rank "), HasSubstr(rdma_port()),
                                HasSubstr("HIPS_VERBS_MAX_QP allows 1"), HasSubstr("raise it"))));
}

TEST(Errors, TooLittleLockedMemoryGivesTheLineThatRaisesIt) {
  const auto texts = run_job(2, [](int rank, const auto&) {
    if (rank == 1) {
      move_to_another_host();  // root is not limited
      const rlimit small{64 << 10, 64 << 10};
      if (setrlimit(RLIMIT_MEMLOCK, &small) != 0) return std::string("setrlimit");
    }
    return create();
  });
  EXPECT_THAT(texts, Each(AllOf(one_line(), HasSubstr("rank 1: "), HasSubstr(rdma_port()),
                                HasSubstr("RLIMIT_MEMLOCK is 64 KiB"), HasSubstr("ulimit -l unlimited"))));
}

TEST(Errors, APeerThatIsKilledInTheMiddleIsNamedOnAllOthers) {
  RankProcesses ranks(
      3,
      [](int, const auto& ready) {
        auto comm = hips::Communicator::from_environment();
        std::vector<float> v(100, 1);
        comm.allreduce<float>(v, ReduceOp::kMax);
        ready();
        return call_until_it_fails(comm);
      },
      verbs_environment());
  ASSERT_TRUE(ranks.wait_ready());
  std::this_thread::sleep_for(300ms);
  ranks.signal(2, SIGKILL);
  const auto outcomes = ranks.wait();
  for (int rank : {0, 1}) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_THAT(outcome.text, AllOf(one_line(), HasSubstr("rank 2 (pid"), HasSubstr("died")));
  }
}

TEST(Errors, APeerThatCannotBeReachedIsNamedWithWhatTheDeviceSaid) {
  if (rdma_ports().size() < 2) GTEST_SKIP() << "missing: a second device, which does not reach the first";
  // Two software devices of one host do not reach each other: as between NICs of two networks.
  const auto texts =
      run_job(2,
              [](int rank, const auto&) {
                setenv("HIPS_IB_HCA", ("=" + rdma_ports()[static_cast<std::size_t>(rank)]).c_str(), 1);
                return error_of([] {
                  auto comm = hips::Communicator::from_environment();
                  std::vector<float> v(100, 1);
                  comm.allreduce<float>(v, ReduceOp::kMax);
                });
              },
              {{"HIPS_IB_TIMEOUT", "12"}});
  EXPECT_THAT(texts, Each(AllOf(one_line(), HasSubstr("rank "), HasSubstr(rdma_ports()[0]),
                                HasSubstr(rdma_ports()[1]), HasSubstr("transport retry counter exceeded"),
                                HasSubstr("ping "), HasSubstr("HIPS_IB_TIMEOUT (12)"))));
}

TEST(Errors, APortThatGoesDownInTheMiddleIsNamedOnAllRanks) {
  const std::string interface = interface_of(rdma_port());
  ASSERT_NE(interface, "") << "no parent interface of " << rdma_port();
  RankProcesses ranks(
      3,
      [](int, const auto& ready) {
        auto comm = hips::Communicator::from_environment();
        std::vector<float> v(100, 1);
        comm.allreduce<float>(v, ReduceOp::kMax);
        ready();
        return call_until_it_fails(comm);
      },
      verbs_environment());
  ASSERT_TRUE(ranks.wait_ready());
  std::this_thread::sleep_for(300ms);
  ASSERT_EQ(std::system(("ip link set " + interface + " down").c_str()), 0);
  const auto outcomes = ranks.wait();
  ASSERT_EQ(std::system(("ip link set " + interface + " up").c_str()), 0);
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.text, AllOf(one_line(), HasSubstr(rdma_port()), HasSubstr("HIPS_IB_HCA"),
                                    AnyOf(HasSubstr("went down"), HasSubstr("lost"))));
  }
}

}  // namespace
}  // namespace hips::test

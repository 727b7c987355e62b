#include "lib/comm/setup/reach.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace hips::comm {
namespace {

ProcessInfo process_on(const std::string& host, std::uint32_t rdma_rails, std::uint32_t socket_rails) {
  ProcessInfo process;
  process.uid = ProcessUid::random();
  process.host = process.host_key = host;
  process.rdma_rails = rdma_rails;
  process.socket_rails = socket_rails;
  return process;
}

std::vector<ProcessInfo> processes_on(const std::vector<std::string>& hosts, std::uint32_t rdma_rails) {
  std::vector<ProcessInfo> processes;
  for (const std::string& host : hosts) processes.push_back(process_on(host, rdma_rails, 1));
  return processes;
}

void expect_medium(const std::vector<ProcessInfo>& processes, const std::string& choice,
                   const cost::Medium& expected) {
  const cost::Medium medium = medium_between(choice, processes);
  EXPECT_EQ(medium.has_links, expected.has_links) << choice;
  EXPECT_EQ(medium.message_seconds, expected.message_seconds) << choice;
}

TEST(Reach, a_medium_is_what_carries_most_messages_dearest) {
  const auto one_host = processes_on({"a", "a", "a"}, 0);
  expect_medium(one_host, "auto", cost::Medium::kMemory);
  expect_medium(one_host, "shm", cost::Medium::kMemory);
  expect_medium(one_host, "tcp", cost::Medium::kSocketsOnNode);
  const auto with_rdma = processes_on({"a", "b", "a", "c"}, 2);
  expect_medium(with_rdma, "auto", cost::Medium::kWires);
  expect_medium(with_rdma, "verbs", cost::Medium::kWires);
  expect_medium(with_rdma, "tcp", cost::Medium::kSockets);
  expect_medium(processes_on({"a", "a", "b", "b"}, 0), "auto", cost::Medium::kSockets);
}

TEST(Reach, one_host_without_rdma_makes_messages_dear_wherever_its_rank_is) {
  for (std::size_t at = 0; at < 5; ++at) {
    auto processes = processes_on({"a", "b", "c", "d", "e"}, 1);
    processes[at].rdma_rails = 0;
    expect_medium(processes, "auto", cost::Medium::kSockets);
  }
}

TEST(Reach, names_two_that_no_transport_connects) {
  auto processes = processes_on({"a", "b", "c"}, 1);
  EXPECT_TRUE(check_reach("auto", processes).ok());
  EXPECT_TRUE(check_reach("tcp", processes).ok());
  EXPECT_THAT(check_reach("shm", processes).message, testing::HasSubstr("from rank 0"));
  processes[2].rdma_rails = processes[2].socket_rails = 0;
  const Status status = check_reach("auto", processes);
  EXPECT_EQ(status.code, Code::kUnsupported);
  EXPECT_THAT(status.message, testing::HasSubstr("to rank 2"));
  processes[2].uid = processes[1].uid;
  EXPECT_THAT(check_reach("auto", processes).message, testing::HasSubstr("ranks 1 and 2 are one process"));
}

}  // namespace
}  // namespace hips::comm

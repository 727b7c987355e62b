#include "lib/comm/setup/reach.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace hips::comm {
namespace {

ProcessInfo process_on(const std::string& node, std::uint32_t rdma_rails, std::uint32_t socket_rails) {
  ProcessInfo process;
  process.uid = ProcessUid::random();
  process.host = process.node_key = node;
  process.rdma_nics.resize(rdma_rails);
  process.socket_nics.resize(socket_rails);
  return process;
}

std::vector<ProcessInfo> processes_on(const std::vector<std::string>& nodes, std::uint32_t rdma_rails) {
  std::vector<ProcessInfo> processes;
  for (const std::string& node : nodes) processes.push_back(process_on(node, rdma_rails, 1));
  return processes;
}

void expect_medium(const std::vector<ProcessInfo>& processes, const std::string& choice,
                   const cost::Medium& expected) {
  const cost::Medium medium = medium_between(choice, processes);
  EXPECT_EQ(medium.has_links, expected.has_links) << choice;
  EXPECT_EQ(medium.message_seconds, expected.message_seconds) << choice;
}

TEST(Reach, the_medium_has_the_highest_cost_per_message_of_all_pairs) {
  const auto one_node = processes_on({"a", "a", "a"}, 0);
  expect_medium(one_node, "auto", cost::Medium::kMemory);
  expect_medium(one_node, "shm", cost::Medium::kMemory);
  expect_medium(one_node, "tcp", cost::Medium::kSocketsOnNode);
  const auto with_rdma = processes_on({"a", "b", "a", "c"}, 2);
  expect_medium(with_rdma, "auto", cost::Medium::kWires);
  expect_medium(with_rdma, "verbs", cost::Medium::kWires);
  expect_medium(with_rdma, "tcp", cost::Medium::kSockets);
  expect_medium(processes_on({"a", "a", "b", "b"}, 0), "auto", cost::Medium::kSockets);
}

TEST(Reach, one_node_without_rdma_raises_the_cost_per_message_whatever_its_rank) {
  for (std::size_t at = 0; at < 5; ++at) {
    auto processes = processes_on({"a", "b", "c", "d", "e"}, 1);
    processes[at].rdma_nics.clear();
    expect_medium(processes, "auto", cost::Medium::kSockets);
  }
}

TEST(Reach, the_error_names_two_ranks_that_no_transport_connects) {
  auto processes = processes_on({"a", "b", "c"}, 1);
  EXPECT_TRUE(check_reach("auto", processes).ok());
  EXPECT_TRUE(check_reach("tcp", processes).ok());
  EXPECT_THAT(check_reach("shm", processes).message, testing::HasSubstr("connects rank 0"));
  processes[2].rdma_nics.clear();
  processes[2].socket_nics.clear();
  const Status status = check_reach("auto", processes);
  EXPECT_EQ(status.code, Code::kUnsupported);
  EXPECT_THAT(status.message, testing::HasSubstr("to rank 2"));
  processes[2].uid = processes[1].uid;
  EXPECT_THAT(check_reach("auto", processes).message,
              testing::HasSubstr("ranks 1 and 2 are the same process"));
}

}  // namespace
}  // namespace hips::comm

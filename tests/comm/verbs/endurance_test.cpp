// What must not grow: verbs objects over communicators, memory over calls.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <hips/hips.hpp>

#include "tests/comm/verbs/job.hpp"

namespace hips::test {
namespace {

// The address sanitizer keeps what was freed for a while.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kMemoryIsKept = true;
#else
constexpr bool kMemoryIsKept = false;
#endif

using ::testing::Each;

std::size_t open_files() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// Memory of this process that is in RAM, in KiB.
std::size_t resident_kib() {
  std::size_t pages = 0, resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r"); file != nullptr) {
    if (std::fscanf(file, "%zu %zu", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

/// "pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0": what the kernel holds of all devices.
std::string kernel_objects() {
  std::string text;
  FILE* pipe = popen("rdma resource show", "r");
  std::array<char, 256> line;
  while (pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr) text += line.data();
  if (pipe != nullptr) pclose(pipe);
  return text;
}

TEST(Endurance, CommunicatorsLeaveNoObjectNoFileAndNoMemory) {
  const std::string before = kernel_objects();
  ASSERT_THAT(before, ::testing::HasSubstr("qp")) << "\"rdma resource show\" (package iproute2) says nothing";
  const auto texts = run_job(3, [](int rank, const auto&) {
    const auto one = [&] {
      auto comm = hips::Communicator::from_environment();
      std::vector<float> v(1000, static_cast<float>(rank));
      comm.allreduce<float>(v, ReduceOp::kSum);
      if (v[999] != 3) throw std::runtime_error("a wrong sum");
    };
    for (int i = 0; i < 5; ++i) one();
    const std::size_t files = open_files(), memory = resident_kib();
    for (int i = 0; i < 30; ++i) one();
    std::string grown;
    // The control thread may still be closing its side of a link to a peer that has left.
    for (int i = 0; i < 50 && open_files() > files; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (open_files() > files) grown += fmt::format("files {} -> {} ", files, open_files());
    if (!kMemoryIsKept && resident_kib() > memory + 384)
      grown += fmt::format("memory {} -> {} KiB", memory, resident_kib());
    return grown;
  });
  EXPECT_THAT(texts, Each(""));
  EXPECT_EQ(kernel_objects(), before);
}

TEST(Endurance, TenThousandCallsTakeNoMemory) {
  const auto texts = run_job(2, [](int, const auto&) {
    auto comm = hips::Communicator::from_environment();
    std::vector<std::int64_t> v(500);
    const auto calls = [&](int count) {
      for (int i = 0; i < count; ++i) {
        std::fill(v.begin(), v.end(), i);
        comm.allreduce<std::int64_t>(v, ReduceOp::kSum);
        if (v[0] != 2 * i || v[499] != 2 * i) throw std::runtime_error("a wrong sum");
      }
    };
    calls(1000);
    const std::size_t memory = resident_kib();
    calls(10'000);
    const std::size_t grown = resident_kib() > memory ? resident_kib() - memory : 0;
    std::printf("resident %zu KiB after 1000 calls, %zu KiB after 11000\n", memory, resident_kib());
    return grown > 128 && !kMemoryIsKept ? fmt::format("{} KiB more", grown) : std::string();
  });
  EXPECT_THAT(texts, Each(""));
}

}  // namespace
}  // namespace hips::test

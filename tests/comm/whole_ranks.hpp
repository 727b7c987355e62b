#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <hips/status.hpp>

#include "lib/comm/communicator.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/setup/bootstrap.hpp"
#include "tests/comm/rank_processes.hpp"
#include "tests/hang_limit.hpp"

// What tests of whole communicators share.
namespace hips::test {

using Ready = std::function<void()>;
using Environment = std::map<std::string, std::string>;

/// A communicator of the environment, by the door that the interposer uses.
inline std::unique_ptr<comm::Communicator> internal_communicator(comm::CommunicatorOptions options = {}) {
  const auto loaded = load_process_config();
  const auto rendezvous = comm::rendezvous_from(loaded.config, {});
  auto bootstrap = value_or_throw(comm::make_tcp_bootstrap(*rendezvous));
  return value_or_throw(comm::Communicator::create(*bootstrap, options));
}

inline std::string error_text(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(to_string(error.status().code)) + ": " + error.what();
  }
  return "no error";
}

/// All ranks ended by themselves with the same text, which is given back.
inline std::string same_text(const std::vector<Outcome>& outcomes) {
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    EXPECT_FALSE(outcomes[r].hung) << "rank " << r << " hung; " << outcomes[r].text;
    EXPECT_TRUE(outcomes[r].exited) << "rank " << r << " ended by signal " << outcomes[r].signal;
    EXPECT_EQ(outcomes[r].exit_code, 0) << "rank " << r << ": " << outcomes[r].text;
    EXPECT_EQ(outcomes[r].text, outcomes[0].text) << "rank " << r;
  }
  EXPECT_THAT(left_in_dev_shm(), testing::IsEmpty());
  return outcomes[0].text;
}

inline std::string run(int num_ranks, const RankProcesses::Body& body, const Environment& environment = {}) {
  RankProcesses ranks(num_ranks, body, environment);
  return same_text(ranks.wait());
}

/// What every rank returns matches, and nothing is left.
inline void expect_texts(int num_ranks, const std::function<std::string(int rank)>& body,
                         const testing::Matcher<std::string>& text, const Environment& environment = {},
                         std::chrono::milliseconds limit = kHangLimit) {
  RankProcesses ranks(
      num_ranks, [&](int rank, const Ready&) { return body(rank); }, environment);
  const auto outcomes = ranks.wait(limit);
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    EXPECT_FALSE(outcomes[r].hung) << "rank " << r << " hung";
    EXPECT_EQ(outcomes[r].exit_code, 0) << "rank " << r << ": " << outcomes[r].text;
    EXPECT_THAT(outcomes[r].text, text) << "rank " << r;
  }
  EXPECT_THAT(left_in_dev_shm(), testing::IsEmpty());
}

}  // namespace hips::test

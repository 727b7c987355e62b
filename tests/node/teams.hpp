#pragma once

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "lib/node/node_team.hpp"

namespace hips::test {

/// Creates the connected teams of all ranks, each with a segment of its own.
inline std::vector<std::unique_ptr<node::NodeTeam>> make_teams(Rank size, node::NodeTeam::Config config) {
  std::vector<std::unique_ptr<node::NodeTeam>> teams;
  std::vector<node::NodeName> names;
  config.size = size;
  for (config.rank = 0; config.rank < size; ++config.rank) {
    config.segment = value_or_throw(node::NodeSegment::create());
    if (config.uses_wake_pipes) {
      if (Status status = config.segment->make_wake_pipe(); !status.ok()) throw Error(status);
    }
    teams.push_back(value_or_throw(node::NodeTeam::create(config)));
    names.push_back(config.segment->name());
  }
  for (auto& team : teams) {
    if (Status status = team->connect(names); !status.ok()) throw Error(status);
  }
  return teams;
}

/// Runs `body(rank)` on a thread for each rank.
template <typename Body>
void on_all_ranks(Rank size, Body body) {
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < size; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  for (auto& thread : threads) thread.join();
}

}  // namespace hips::test

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/exec/engine.hpp"
#include "lib/exec/team.hpp"
#include "lib/plan/builder.hpp"
#include "lib/plan/plan_builder.hpp"
#include "tests/choices.hpp"
#include "tests/exchange.hpp"
#include "transports/inproc/network.hpp"

namespace hips::exec::testing {

struct WorldOptions {
  PlanRequest request{};
  std::int32_t credits = 4;
  std::size_t segment_bytes = 1024;
  inproc::Faults faults{};
  bool phantom = false;
  /// As with a NIC: only registered memory can be sent, and no memory is shared.
  bool needs_registration = false;
  /// As with TCP: memory can be registered for one call but need not be, and no memory is shared.
  bool registers_freely = false;
  Clock* clock = nullptr;
  /// Makes the transports instead of the inproc network.
  std::function<std::unique_ptr<transport::Transport>()> make_transport{};
  /// Wraps the transport between the executor and the network.
  std::function<std::unique_ptr<transport::Transport>(std::unique_ptr<transport::Transport>)> wrap{};
};

/// Performs the two exchanges of a set-up among the teams of all ranks, by rank.
inline void connect(const std::vector<Team*>& teams) {
  std::vector<Outbound> offers, addresses;
  for (Team* team : teams) offers.push_back(team->offer());
  test::Exchanged offered(std::move(offers));
  for (std::size_t r = 0; r < teams.size(); ++r)
    addresses.push_back(value_or_throw(teams[r]->allocate(offered.of(r))));
  test::Exchanged allocated(std::move(addresses));
  for (std::size_t r = 0; r < teams.size(); ++r) {
    if (Status status = teams[r]->connect(allocated.of(r)); !status.ok()) throw Error(status);
  }
}

/// All ranks of a job in one thread, over the inproc network. Each rank has its engine and team; ranks are
/// stepped in random order.
class World {
 public:
  struct Member {
    std::unique_ptr<Engine> engine;
    transport::Transport* transport = nullptr;
    std::unique_ptr<Team> team;
    std::vector<Status> errors;  ///< errors that on_error received
  };

  World(const std::string& spec, std::uint64_t seed, WorldOptions options = {})
      : random_(seed), options_(std::move(options)) {
    const Topology topology = parse_topology(spec);
    builder_ = value_or_throw(plan::make_builder(topology, options_.request));
    shape_ = std::make_shared<const PlanShape>(builder_->shape());
    network_ = value_or_throw(inproc::Network::create(
        {.random = &random_,
         .clock = options_.clock,
         .faults = options_.faults,
         .max_posted = 64,
         .attaches_memory = !options_.needs_registration && !options_.registers_freely,
         .needs_local_registration = options_.needs_registration,
         .registers_freely = options_.registers_freely}));
    members_.resize(static_cast<std::size_t>(shape_->num_ranks));
    for (Rank rank = 0; rank < size(); ++rank) {
      Member& member = members_[rank];
      member.engine = std::make_unique<Engine>(Engine::Options{.clock = options_.clock});
      auto made = options_.make_transport ? options_.make_transport() : network_->make_transport(rank);
      if (options_.wrap) made = options_.wrap(std::move(made));
      member.transport = member.engine->add_transport(std::move(made));
    }
    make_teams(7);
  }

  [[nodiscard]] Team::Config config(Rank rank, std::uint64_t id) {
    Member& member = members_[rank];
    Team::Config config;
    config.id = id;
    config.rank = rank;
    config.size = size();
    config.plans = {{shape_, [this, rank] { return builder_->program(rank); }}};
    config.route_to = [this, rank, &member](Rank peer) {
      return Team::Route{{peer_id(rank, peer)}, {member.transport}};
    };
    config.credits = options_.credits;
    config.max_segment_bytes = options_.segment_bytes;
    config.phantom = options_.phantom;
    config.on_error = [&member](const Status& status) { member.errors.push_back(status); };
    return config;
  }

  /// Makes a communicator of all ranks on their engines; the earlier one ends.
  void make_teams(std::uint64_t id) {
    std::vector<Team*> teams;
    for (Rank rank = 0; rank < size(); ++rank) {
      members_[rank].errors.clear();
      members_[rank].team = value_or_throw(Team::create(*members_[rank].engine, config(rank, id)));
      teams.push_back(members_[rank].team.get());
    }
    connect(teams);
  }

  /// Makes another communicator of all ranks on their engines.
  std::vector<std::unique_ptr<Team>> make_more_teams(std::uint64_t id) {
    std::vector<std::unique_ptr<Team>> made;
    std::vector<Team*> teams;
    for (Rank rank = 0; rank < size(); ++rank) {
      Team::Config one = config(rank, id);
      one.on_error = [this](const Status& status) { other_errors.push_back(status); };
      made.push_back(value_or_throw(Team::create(*members_[rank].engine, std::move(one))));
      teams.push_back(made.back().get());
    }
    connect(teams);
    return made;
  }
  std::vector<Status> other_errors;  ///< of make_more_teams()

  /// The number of `peer` in the engine of `rank`.
  transport::PeerId peer_id(Rank rank, Rank peer) {
    return members_[rank].engine->peer_for(0, static_cast<std::uint64_t>(peer), 0);
  }
  [[nodiscard]] Rank size() const { return static_cast<Rank>(members_.size()); }
  [[nodiscard]] const PlanShape& shape() const { return *shape_; }
  Member& operator[](Rank rank) { return members_[static_cast<std::size_t>(rank)]; }
  std::mt19937_64& random() { return random_; }
  inproc::Network& network() { return *network_; }

  /// Steps random ranks until `finished` returns true; false after `max_rounds` rounds of all ranks.
  template <typename Finished>
  bool run(Finished finished, int max_rounds = 20000) {
    std::vector<Rank> order(members_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Rank>(i);
    for (int round = 0; round < max_rounds; ++round) {
      if (finished()) return true;
      std::shuffle(order.begin(), order.end(), random_);
      for (const Rank rank : order) members_[rank].engine->progress();
    }
    return finished();
  }
  bool run(const std::vector<std::shared_ptr<Operation>>& operations) {
    return run(
        [&] { return std::all_of(operations.begin(), operations.end(), [](auto& o) { return o->done(); }); });
  }

 private:
  std::mt19937_64 random_;
  WorldOptions options_;
  std::unique_ptr<PlanBuilder> builder_;
  std::shared_ptr<const PlanShape> shape_;
  std::unique_ptr<inproc::Network> network_;
  std::vector<Member> members_;
};

}  // namespace hips::exec::testing

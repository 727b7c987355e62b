// What a set-up costs a rank depends on its neighbours in the plan, not on the number of ranks.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/exec/passing_transport.hpp"
#include "tests/exec/world.hpp"

namespace hips::exec::testing {
namespace {

// Sanitizers take memory of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsOurs = false;
#else
constexpr bool kMemoryIsOurs = true;
#endif

/// Records the peers with which connections are opened.
class PeersOf final : public PassingTransport {
 public:
  PeersOf(std::unique_ptr<transport::Transport> inner, std::set<transport::PeerId>& peers)
      : PassingTransport(std::move(inner)), peers_(peers) {}
  Result<transport::Address> open(transport::PeerId peer) override {
    peers_.insert(peer);
    return PassingTransport::open(peer);
  }

 private:
  std::set<transport::PeerId>& peers_;
};

std::size_t resident_bytes() {
  long pages = 0, resident = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &pages, &resident) != 2) std::abort();
  std::fclose(file);
  return static_cast<std::size_t>(resident) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Each engine has some descriptors.
void allow_many_descriptors() {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/// The largest of all ranks.
struct Costs {
  std::size_t num_peers = 0;
  std::size_t bytes_from_peers = 0, bytes_from_all = 0;  ///< received in the two exchanges of a team
};

/// Makes a world, and in it another team, whose exchanges it measures; then sums one number of each rank.
Costs costs_of(const std::string& spec, std::size_t* resident) {
  std::vector<std::set<transport::PeerId>> opened;
  opened.reserve(5000);
  const std::size_t before = resident_bytes();
  World world(spec, 7, {.credits = 2, .wrap = [&](auto inner) {
                          return std::make_unique<PeersOf>(std::move(inner), opened.emplace_back());
                        }});
  const auto size = static_cast<std::size_t>(world.size());
  if (resident != nullptr) *resident = resident_bytes() - before;
  Costs costs;
  for (const auto& peers : opened) costs.num_peers = std::max(costs.num_peers, peers.size());

  std::vector<std::unique_ptr<Team>> teams;
  std::vector<Outbound> offers, addresses;
  for (Rank rank = 0; rank < world.size(); ++rank) {
    teams.push_back(value_or_throw(Team::create(*world[rank].engine, world.config(rank, 8))));
    offers.push_back(teams.back()->offer());
  }
  std::vector<std::size_t> received(size);
  const auto count = [&](std::size_t rank, const Inbound& incoming) {
    std::size_t bytes = 0;
    for (const Blob& blob : incoming.from_all) bytes += blob.size();
    costs.bytes_from_all = std::max(costs.bytes_from_all, bytes);
    for (const PeerBlob& one : incoming.from_peers) received[rank] += one.blob.size();
    costs.bytes_from_peers = std::max(costs.bytes_from_peers, received[rank]);
  };
  test::Exchanged offered(std::move(offers));
  for (std::size_t r = 0; r < size; ++r) {
    const Inbound& incoming = offered.of(r);
    count(r, incoming);
    addresses.push_back(value_or_throw(teams[r]->allocate(incoming)));
  }
  test::Exchanged allocated(std::move(addresses));
  for (std::size_t r = 0; r < size; ++r) {
    const Inbound& incoming = allocated.of(r);
    count(r, incoming);
    if (Status status = teams[r]->connect(incoming); !status.ok()) throw Error(status);
  }

  std::vector<std::vector<std::int64_t>> values(size, std::vector<std::int64_t>(4, 1));
  std::vector<std::shared_ptr<Operation>> operations;
  for (std::size_t r = 0; r < size; ++r) {
    auto* const bytes = reinterpret_cast<std::byte*>(values[r].data());
    operations.push_back(teams[r]->start({.in = bytes,
                                          .out = bytes,
                                          .count = values[r].size(),
                                          .type = DataType::kInt64,
                                          .op = ReduceOp::kSum}));
  }
  EXPECT_TRUE(world.run(operations));
  for (const auto& of_rank : values)
    EXPECT_EQ(of_rank, std::vector<std::int64_t>(4, static_cast<std::int64_t>(size)));
  return costs;
}

TEST(Scale, ProgramsAreThereForOperationsThatUseThem) {
  World world("torus:3x3", 7);
  const int size = world.size();
  std::array<int, 2> made{};  // how often, by plan
  std::vector<std::unique_ptr<Team>> teams;
  std::vector<Team*> by_rank;
  for (Rank rank = 0; rank < size; ++rank) {
    Team::Config config = world.config(rank, 8);
    const Team::Config::RankPlan plan = config.plans.front();
    config.plans.clear();
    for (int& times : made)
      config.plans.push_back({plan.shape, [plan, &times] {
                                ++times;
                                return plan.program();
                              }});
    teams.push_back(value_or_throw(Team::create(*world[rank].engine, std::move(config))));
    by_rank.push_back(teams.back().get());
  }
  connect(by_rank);
  EXPECT_EQ(made, (std::array{size, size})) << "a set-up needs the channels of all";
  for (int call = 0; call < 2; ++call) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(size), 1);
    std::vector<std::shared_ptr<Operation>> operations;
    for (std::size_t r = 0; r < values.size(); ++r) {
      auto* const bytes = reinterpret_cast<std::byte*>(&values[r]);
      operations.push_back(teams[r]->start({.program = 1,
                                            .in = bytes,
                                            .out = bytes,
                                            .count = 1,
                                            .type = DataType::kInt64,
                                            .op = ReduceOp::kSum}));
    }
    EXPECT_TRUE(world.run(operations));
    EXPECT_EQ(values, std::vector<std::int64_t>(values.size(), size));
    EXPECT_EQ(made, (std::array{size, 2 * size})) << "call " << call;
  }
}

TEST(Scale, ASetUpReachesOnlyNeighbours) {
  allow_many_descriptors();
  const Costs few = costs_of("torus:8x8", nullptr);
  std::vector<int> sides{hips::test::runs_a_sample() ? 16 : 32};
  if (hips::test::runs_everything()) sides.push_back(64);
  for (const int side : sides) {
    const int size = side * side;
    std::size_t resident = 0;
    const Costs many = costs_of("torus:" + std::to_string(side) + "x" + std::to_string(side), &resident);
    std::printf("%d ranks: %zu peers, %zu bytes from peers, %zu from all, %zu KiB resident for each\n", size,
                many.num_peers, many.bytes_from_peers, many.bytes_from_all,
                resident / 1024 / static_cast<std::size_t>(size));
    if (kMemoryIsOurs && size == 1024) {
      EXPECT_LE(resident, std::size_t{64} << 20U);
    }
    EXPECT_EQ(many.num_peers, few.num_peers);
    EXPECT_EQ(many.bytes_from_peers, few.bytes_from_peers);
    EXPECT_EQ(many.bytes_from_all * 64, few.bytes_from_all * static_cast<std::size_t>(size));
  }
}

}  // namespace
}  // namespace hips::exec::testing

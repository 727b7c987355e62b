#include "tools/discover/lldp_draft.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include <fmt/format.h>

#include "tests/choices.hpp"
#include "tools/discover/lldpctl.hpp"
#include "topology/families/family.hpp"
#include "topology/formats/parse.hpp"

namespace hips::discover {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// A job of which nobody knows more than LLDP tells: one subnet of everything, no packets.
struct HeardJob {
  topology::Observation seen;
  std::vector<topology::LldpHost> hosts;
};

/// The servers of a topology in a random order, with NICs in a random order.
HeardJob heard_on(const std::string& spec, std::mt19937_64& random) {
  const Topology topology = value_or_throw(topology::parse(spec));
  const auto& family = topology::entry_of(topology.family);
  HeardJob job;
  for (std::int64_t server = 0; server < topology.num_servers(); ++server) {
    topology::SeenServer seen{.host = fmt::format("n{}", server)};
    topology::LldpHost host{.name = seen.host};
    std::vector<Rail> rails;
    for (Rail rail = 0; rail < topology.num_rails; ++rail) rails.push_back(rail);
    std::ranges::shuffle(rails, random);
    for (const Rail rail : rails) {
      const std::string nic = fmt::format("eth{}", seen.nics.size());
      seen.nics.push_back({nic, fmt::format("10.0.{}.{}", rail, server), "10.0.0.0/8", 12.5e9});
      host.neighbours.push_back({.interface = nic,
                                 .via = "LLDP",
                                 .chassis = family.switch_name(topology, server, rail),
                                 .port_id = fmt::format("p{}.{}", server, rail),
                                 .port_id_type = "ifname",
                                 .is_bridge = true});
    }
    job.seen.servers.push_back(std::move(seen));
    job.hosts.push_back(std::move(host));
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < job.hosts.size(); ++i) order.push_back(i);
  std::ranges::shuffle(order, random);
  HeardJob shuffled;
  for (const std::size_t i : order) {
    shuffled.seen.servers.push_back(job.seen.servers[i]);
    shuffled.hosts.push_back(job.hosts[i]);
  }
  return shuffled;
}

std::string text_of(const HeardJob& job) {
  return topology::draft_text(value_or_throw(draft_with_lldp(job.seen, job.hosts)));
}

TEST(LldpDraft, IsTheFamilyWhateverTheOrderOfServersAndNics) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    std::mt19937_64 random(seed);
    for (const std::string spec :
         {"switch:5", "rail:9,2", "bcube:3,1", "bcube:2,2", "leafspine:3,3", "leafspine:2,4"}) {
      SCOPED_TRACE(fmt::format("seed {}, {}", seed, spec));
      const HeardJob job = heard_on(spec, random);
      const auto draft = value_or_throw(draft_with_lldp(job.seen, job.hosts));
      EXPECT_EQ(topology::topology_shape(draft.file.topology), spec);
      // Expect: NICs of one switch are NICs of one switch in the draft, under the servers' names.
      const Topology& found = draft.file.topology;
      std::map<std::string, std::string> switch_of;
      for (std::size_t server = 0; server < job.hosts.size(); ++server) {
        const std::size_t seen = draft.placement.server_of[server];
        EXPECT_EQ(draft.file.server_names[server], job.hosts[seen].name);
        for (Rail rail = 0; rail < found.num_rails; ++rail) {
          const auto nic =
              static_cast<std::size_t>(draft.placement.nic_of[server][static_cast<std::size_t>(rail)]);
          const std::string name =
              topology::entry_of(found.family).switch_name(found, static_cast<std::int64_t>(server), rail);
          EXPECT_EQ(switch_of.try_emplace(job.hosts[seen].neighbours[nic].chassis, name).first->second, name);
        }
      }
      EXPECT_THAT(topology::draft_text(draft), HasSubstr("# told by LLDP: the switches of "));
    }
  }
}

TEST(LldpDraft, SaysWhatIsGuessedSeenAndTold) {
  std::mt19937_64 random(1);
  HeardJob job = heard_on("leafspine:2,2", random);
  EXPECT_THAT(text_of(job), HasSubstr("# guessed: as many spines as a leaf has servers"));
  EXPECT_THAT(text_of(job), Not(HasSubstr("told by LLDP: rate")));
  for (auto& server : job.seen.servers) server.nics[0].bandwidth_bytes_per_s = 0;
  for (auto& host : job.hosts) host.neighbours[0].mau = "25GBaseCR - 25GBASE-CR";
  EXPECT_THAT(text_of(job), HasSubstr("rate: 25Gb"));
  EXPECT_THAT(text_of(job), HasSubstr("told by LLDP: rate of 4 NICs"));
}

TEST(LldpDraft, WithoutNeighboursIsThatOfTheSubnets) {
  std::mt19937_64 random(1);
  HeardJob job = heard_on("leafspine:2,2", random);
  for (auto& host : job.hosts) host.neighbours.clear();
  EXPECT_EQ(text_of(job), topology::draft_text(value_or_throw(topology::draft_topology(job.seen))));
  EXPECT_THAT(text_of(job), Not(HasSubstr("LLDP")));
}

TEST(LldpDraft, WhereSomeServersHearNothingTheSubnetsDecideAndANoteSaysSo) {
  std::mt19937_64 random(1);
  HeardJob job = heard_on("leafspine:2,2", random);
  job.hosts[1].neighbours.clear();
  EXPECT_THAT(text_of(job), HasSubstr("# Note: LLDP is not used: 1 of 4 servers have heard no neighbour.\n"));
  EXPECT_THAT(text_of(job), HasSubstr("shape: \"switch:4\""));
}

TEST(LldpDraft, ANicThatHearsNoSwitchIsDown) {
  std::mt19937_64 random(1);
  HeardJob job = heard_on("rail:4,2", random);
  job.hosts[2].neighbours.pop_back();
  EXPECT_THAT(text_of(job), HasSubstr("state: down}  # seen: LLDP has heard no switch of this level"));
}

TEST(LldpDraft, NeighboursAreThoseOfTheNicsInUse) {
  const std::vector<JobNic> nics{{{"mlx5_0", "", "", 0}, "eth0", true}};
  const auto own = neighbours_of(nics, {{.interface = "eth0", .via = "LLDP", .chassis = "leaf1"},
                                        {.interface = "eth0", .via = "CDPv2", .chassis = "phone"},
                                        {.interface = "eth9", .via = "LLDP", .chassis = "mgmt"}});
  ASSERT_THAT(own, ::testing::SizeIs(1));
  EXPECT_EQ(own[0], (topology::LldpNeighbour{.interface = "mlx5_0", .via = "LLDP", .chassis = "leaf1"}));
}

/// Runs a script as lldpctl.
class Lldpctl : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "lldpctl-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = std::getenv("PATH");
    setenv("PATH", (folder_ + ":" + path_).c_str(), 1);
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(folder_);
  }
  auto says(const std::string& script, const LldpctlLimits& limits = {}) {
    std::ofstream(folder_ + "/lldpctl") << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(folder_ + "/lldpctl", std::filesystem::perms::owner_all);
    return ask_lldpd(limits);
  }
  std::string folder_, path_;
};

TEST_F(Lldpctl, IsAskedForJson) {
  const auto heard = says(
      R"([ "$*" = "-f json" ] && echo '{"lldp": {"interface": {"eth0": {"via": "LLDP", "chassis": {"leaf1": {}}}}}}')");
  EXPECT_EQ(value_or_throw(heard).at(0).chassis, "leaf1");
}

TEST_F(Lldpctl, WithoutADaemonOrWithOutputThatIsNotItsOwnIsAnError) {
  EXPECT_THAT(says("echo no permission >&2; exit 1").error().message,
              HasSubstr("no lldpd runs, or this user may not ask it"));
  EXPECT_THAT(says("echo hello").error().message, HasSubstr("lldpctl -f json:1: "));
}

TEST_F(Lldpctl, IsBoundedInTimeAndOutput) {
  const LldpctlLimits limits{.time = std::chrono::milliseconds(100), .bytes = 1000};
  EXPECT_EQ(says("exec sleep 1000", limits).error().code, Code::kTimeout);
  EXPECT_FALSE(says("exec >/dev/null; exec sleep 1000", limits).has_value());
  EXPECT_THAT(says("exec cat /dev/zero", {.bytes = 1000}).error().message, HasSubstr("more than 1000 bytes"));
}

}  // namespace
}  // namespace hips::discover

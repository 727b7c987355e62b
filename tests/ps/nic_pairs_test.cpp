#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/ps/nic_pairs.hpp"

namespace hips::ps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

std::vector<comm::NicInfo> nics(const std::vector<std::string>& subnets) {
  std::vector<comm::NicInfo> made;
  for (const std::string& subnet : subnets) made.push_back({.subnet = subnet});
  return made;
}
using Rails = std::vector<std::uint32_t>;

TEST(NicPairs, AreOfOneNetworkInTheOrderOfTheFirst) {
  EXPECT_THAT(nic_pairs(nics({"x", "y"}), Rails{0, 1}, nics({"y", "x"}), Rails{0, 1}),
              ElementsAre(Pair(0, 1), Pair(1, 0)));
  // Servers of a BCube or a mesh share one network, or none.
  EXPECT_THAT(nic_pairs(nics({"a0", "b1"}), Rails{0, 1}, nics({"a2", "b1"}), Rails{0, 1}),
              ElementsAre(Pair(1, 1)));
  EXPECT_THAT(nic_pairs(nics({"a0", "b1"}), Rails{0, 1}, nics({"a2", "b0"}), Rails{0, 1}), IsEmpty());
}

TEST(NicPairs, LeaveOutWhatIsNotForData) {
  EXPECT_THAT(nic_pairs(nics({"login", "x"}), Rails{1}, nics({"login", "x"}), Rails{1}),
              ElementsAre(Pair(1, 1)));
  EXPECT_THAT(nic_pairs(nics({"", "x"}), Rails{0, 1}, nics({"", "x"}), Rails{0, 1}), ElementsAre(Pair(1, 1)));
}

TEST(NicPairs, HaveEachNicOnce) {
  EXPECT_THAT(nic_pairs(nics({"x", "x"}), Rails{0, 1}, nics({"x", "x"}), Rails{0, 1}),
              ElementsAre(Pair(0, 0), Pair(1, 1)));
  EXPECT_THAT(nic_pairs(nics({"x"}), Rails{0, 0}, nics({"x", "x"}), Rails{0, 1}), ElementsAre(Pair(0, 0)));
  EXPECT_THAT(nic_pairs(nics({"x", "x"}), Rails{0, 1}, nics({"x"}), Rails{0, 0}), ElementsAre(Pair(0, 0)));
}

TEST(NicPairs, AreFewAndOfNicsThatExist) {
  const std::vector<comm::NicInfo> many(20, comm::NicInfo{.subnet = "x"});
  Rails all;
  for (std::uint32_t nic = 0; nic < many.size(); ++nic) all.push_back(nic);
  EXPECT_THAT(nic_pairs(many, all, many, all), SizeIs(kMostNicPairs));
  EXPECT_THAT(nic_pairs(nics({"x"}), Rails{0, 1}, nics({"x"}), Rails{1}), IsEmpty());
}

}  // namespace
}  // namespace hips::ps

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <vector>

#include <hips/ps.hpp>

#include "tests/choices.hpp"
#include "tests/comm/whole_ranks.hpp"

namespace hips::ps::test {

/// One node; two nodes of two ranks and four of one, in shared memory; the same over TCP.
inline const hips::test::Environment kPlaces[] = {{},
                                                  {{"HIPS_TOPO", "switch:2/2"}},
                                                  {{"HIPS_TOPO", "switch:4"}},
                                                  {{"HIPS_TOPO", "switch:4"}, {"HIPS_TRANSPORT", "tcp"}},
                                                  {{"HIPS_TOPO", "switch:2/2"}, {"HIPS_TRANSPORT", "tcp"}}};

/// Waits until all rows are on this node, as rows or replicas. False: they do not come.
template <typename T>
bool waits_until_here(Table<T>& table, std::span<const Key> keys, std::span<T> rows) {
  std::vector<unsigned char> here(keys.size(), 0);
  const auto limit = std::chrono::steady_clock::now() + hips::test::kHangLimit;
  while (std::ranges::find(here, 0) != here.end()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    table.pull_if_local(keys, rows, here);
  }
  return true;
}

template <typename Body>
void expect_everywhere(const std::string& text, const Body& body) {
  (void)hips::test::seed();  // printed once, by this process
  for (const hips::test::Environment& place : kPlaces) {
    std::string described;
    for (const auto& [name, value] : place) described += name + "=" + value + " ";
    EXPECT_EQ(hips::test::run(
                  4, [&](int rank, const hips::test::Ready&) { return body(rank); }, place),
              text)
        << described;
  }
}

}  // namespace hips::ps::test

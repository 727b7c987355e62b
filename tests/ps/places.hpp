#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/choices.hpp"
#include "tests/comm/whole_ranks.hpp"

namespace hips::ps::test {

/// One node; two nodes of two ranks and four of one, in shared memory; the same over TCP.
inline const hips::test::Environment kPlaces[] = {{},
                                                  {{"HIPS_TOPO", "switch:2/2"}},
                                                  {{"HIPS_TOPO", "switch:4"}},
                                                  {{"HIPS_TOPO", "switch:4"}, {"HIPS_TRANSPORT", "tcp"}},
                                                  {{"HIPS_TOPO", "switch:2/2"}, {"HIPS_TRANSPORT", "tcp"}}};

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

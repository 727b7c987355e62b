#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <vector>

// Choices of the person who runs the tests, from the environment. Python tests: tests/mpi/harness.py.
namespace hips::test {

/// The seed of this run: HIPS_SEED, or a random one; printed once, so that a failure can be repeated.
inline std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* given = std::getenv("HIPS_SEED");
    const std::uint64_t chosen = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device()();
    std::cout << "HIPS_SEED=" << chosen << std::endl;
    return chosen;
  }();
  return value;
}

inline bool is_set(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text == '1';
}

/// HIPS_TEST_FULL=1: whole matrices and long trials, which take minutes.
inline bool runs_everything() {
  return is_set("HIPS_TEST_FULL");
}

/// HIPS_TEST_SAMPLE=1: tests of arithmetic take some of their shapes. For sanitizers, which see in a few what
/// they see in all, and are slow.
inline bool runs_a_sample() {
  return is_set("HIPS_TEST_SAMPLE");
}

/// Every `step`-th of `all` where a sample is wanted, from the seed's on; all of them otherwise. Time:
/// O(all).
template <typename T>
std::vector<T> or_every_nth(std::vector<T> all, std::size_t step) {
  if (!runs_a_sample()) return all;
  std::vector<T> some;
  for (std::size_t i = seed() % step; i < all.size(); i += step) some.push_back(all[i]);
  return some;
}

}  // namespace hips::test

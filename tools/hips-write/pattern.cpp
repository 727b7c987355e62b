#include "tools/hips-write/pattern.hpp"

namespace hips::write {
namespace {

/// Mixes the bits of offset and seed into a byte; adjacent offsets and seeds give different bytes.
std::byte pattern_byte(std::size_t offset, std::uint64_t seed) {
  std::uint64_t x = (offset + 1) * 0x9e3779b97f4a7c15U + seed * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 29U) * 0x94d049bb133111ebU;
  return static_cast<std::byte>(x >> 56U);
}

}  // namespace

void fill_pattern(std::span<std::byte> memory, std::uint64_t seed) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = pattern_byte(i, seed);
}

void invert_pattern(std::span<std::byte> memory, std::uint64_t seed) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = ~pattern_byte(i, seed);
}

std::uint64_t count_wrong_bytes(std::span<const std::byte> memory, std::size_t offset, std::size_t bytes,
                                std::uint64_t seed) {
  std::uint64_t wrong = 0;
  for (std::size_t i = offset; i < offset + bytes; ++i) wrong += memory[i] != pattern_byte(i, seed) ? 1 : 0;
  return wrong;
}

}  // namespace hips::write

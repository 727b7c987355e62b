#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hips::write {

/// Fills memory with bytes that depend on their offset and the seed, for --data_validation.
void fill_pattern(std::span<std::byte> memory, std::uint64_t seed);
/// Fills memory with bytes that all differ from the pattern.
void invert_pattern(std::span<std::byte> memory, std::uint64_t seed);
/// Counts the bytes of [offset, offset + bytes) that differ from the pattern.
std::uint64_t count_wrong_bytes(std::span<const std::byte> memory, std::size_t offset, std::size_t bytes,
                                std::uint64_t seed);

}  // namespace hips::write

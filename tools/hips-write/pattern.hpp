#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hips::write {

/// Fills memory with bytes that depend on place and seed, for --data_validation.
void fill_pattern(std::span<std::byte> memory, std::uint64_t seed);
/// Fills memory with what the pattern has nowhere.
void spoil_pattern(std::span<std::byte> memory, std::uint64_t seed);
/// Bytes of [offset, offset + bytes) that are not the pattern's.
std::uint64_t count_wrong(std::span<const std::byte> memory, std::size_t offset, std::size_t bytes,
                          std::uint64_t seed);

}  // namespace hips::write

#pragma once

#include <cstddef>
#include <cstdint>

namespace hips::exec {

/// A set of the engine's ports by index. Ports whose indices are equal modulo 64 are in it together.
class PortSet {
 public:
  static constexpr PortSet all() {
    PortSet set;
    set.bits_ = ~std::uint64_t{0};
    return set;
  }

  constexpr void add(std::size_t port) { bits_ |= std::uint64_t{1} << (port % 64); }
  constexpr void add(PortSet others) { bits_ |= others.bits_; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr bool has(std::size_t port) const { return (bits_ >> (port % 64) & 1U) != 0; }

 private:
  std::uint64_t bits_ = 0;
};

}  // namespace hips::exec

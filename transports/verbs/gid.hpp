#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::verbs {

/// An entry of a port's table of addresses.
struct Gid {
  enum class Kind : std::uint8_t { kInfiniBand, kRoceV1, kRoceV2, kIwarp };
  std::uint32_t index = 0;
  Kind kind = Kind::kRoceV2;
  std::array<std::uint8_t, 16> bytes{};

  /// An IPv4 address in IPv6 clothes, ::ffff:a.b.c.d.
  [[nodiscard]] bool is_ipv4() const;
  [[nodiscard]] bool is_link_local() const;
  [[nodiscard]] bool is_zero() const;
  /// "10.0.0.1", "fe80::1"
  [[nodiscard]] std::string address() const;
  /// "RoCE v2 10.0.0.1 at index 1"
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Gid&, const Gid&) = default;
};

/// A GID and the words that say why it was taken.
struct GidChoice {
  Gid gid;
  std::string reason;
};

/// Takes the entry at `wanted`, or, for -1, the best: RoCE v2 over IPv4, over a global IPv6, over a
/// link-local one, then RoCE v1. The order in the table counts only among equals, because it differs from
/// host to host.
///
/// Errors   kInvalidArgument: there is none at `wanted`; lists what there is. kUnsupported: the table is
/// empty.
Result<GidChoice> choose_gid(std::span<const Gid> table, std::int32_t wanted, const std::string& port_name);

}  // namespace hips::verbs

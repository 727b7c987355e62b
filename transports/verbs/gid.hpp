#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::verbs {

/// An entry of a port's GID table.
struct Gid {
  enum class Kind : std::uint8_t { kInfiniBand, kRoceV1, kRoceV2, kIwarp };
  std::uint32_t index = 0;
  Kind kind = Kind::kRoceV2;
  std::array<std::uint8_t, 16> bytes{};

  /// True for an IPv4-mapped address, ::ffff:a.b.c.d.
  [[nodiscard]] bool is_ipv4() const;
  [[nodiscard]] bool is_link_local() const;
  [[nodiscard]] bool is_zero() const;
  /// "10.0.0.1", "fe80::1"
  [[nodiscard]] std::string address() const;
  /// "fe80::/64": the fabric of an InfiniBand port; empty for other kinds, whose GIDs do not tell it.
  [[nodiscard]] std::string subnet_prefix() const;
  /// "RoCE v2 10.0.0.1 at index 1"
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Gid&, const Gid&) = default;
};

/// A GID and the reason for its choice, for messages.
struct GidChoice {
  Gid gid;
  std::string reason;
};

/// Chooses the entry at index `wanted`. For -1 it chooses the best: RoCE v2 with IPv4, with global IPv6, with a
/// link-local address, then RoCE v1. Among equals the first in the table wins; the table's order differs from
/// node to node.
///
/// Errors   kInvalidArgument: no entry at `wanted`; lists the entries. kUnsupported: the table is empty.
Result<GidChoice> choose_gid(std::span<const Gid> table, std::int32_t wanted, const std::string& port_name);

}  // namespace hips::verbs

#include "transports/verbs/gid.hpp"

#include <arpa/inet.h>

#include <algorithm>

#include <fmt/format.h>

namespace hips::verbs {
namespace {

/// Lower is better.
int order_of(const Gid& gid) {
  const int address = gid.is_ipv4() ? 0 : gid.is_link_local() ? 2 : 1;
  switch (gid.kind) {
    case Gid::Kind::kInfiniBand:
    case Gid::Kind::kIwarp:
      return 0;
    case Gid::Kind::kRoceV2:
      return address;
    case Gid::Kind::kRoceV1:
      return 3 + address;
  }
  return 9;
}

std::string_view name_of(Gid::Kind kind) {
  switch (kind) {
    case Gid::Kind::kInfiniBand:
      return "InfiniBand";
    case Gid::Kind::kIwarp:
      return "iWARP";
    case Gid::Kind::kRoceV2:
      return "RoCE v2";
    case Gid::Kind::kRoceV1:
      return "RoCE v1";
  }
  return "?";
}

std::string list(std::span<const Gid> table) {
  std::string text;
  for (const Gid& gid : table) text += (text.empty() ? "" : ", ") + gid.to_string();
  return text;
}

}  // namespace

bool Gid::is_ipv4() const {
  return std::all_of(bytes.begin(), bytes.begin() + 10, [](std::uint8_t b) { return b == 0; }) &&
         bytes[10] == 0xff && bytes[11] == 0xff;
}

bool Gid::is_link_local() const {
  return bytes[0] == 0xfe && (bytes[1] & 0xc0U) == 0x80;
}

bool Gid::is_zero() const {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b == 0; });
}

std::string Gid::subnet_prefix() const {
  if (kind != Kind::kInfiniBand) return {};
  Gid prefix = *this;
  std::fill(prefix.bytes.begin() + 8, prefix.bytes.end(), std::uint8_t{0});
  return prefix.address() + "/64";
}

std::string Gid::address() const {
  char text[INET6_ADDRSTRLEN] = "?";
  if (is_ipv4()) {
    (void)inet_ntop(AF_INET, bytes.data() + 12, text, sizeof text);
  } else {
    (void)inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
  }
  return text;
}

std::string Gid::to_string() const {
  return fmt::format("{} {} at index {}", name_of(kind), address(), index);
}

Result<GidChoice> choose_gid(std::span<const Gid> table, std::int32_t wanted, const std::string& port_name) {
  if (table.empty()) {
    return fail(
        Code::kUnsupported,
        fmt::format("verbs: {} has no address (GID): give its network interface an IP address and bring "
                    "it up, e.g. \"ip addr add 10.0.0.1/24 dev IF; ip link set IF up\"",
                    port_name),
        Scope::kProcess);
  }
  if (wanted >= 0) {
    const auto at = std::find_if(table.begin(), table.end(), [&](const Gid& gid) {
      return gid.index == static_cast<std::uint32_t>(wanted);
    });
    if (at != table.end()) return GidChoice{*at, "set by HIPS_IB_GID_INDEX"};
    return fail(Code::kInvalidArgument,
                fmt::format("HIPS_IB_GID_INDEX={} is out of range: {} has {}; unset it to use the best one",
                            wanted, port_name, list(table)),
                Scope::kProcess);
  }
  const auto best = std::min_element(table.begin(), table.end(),
                                     [](const Gid& a, const Gid& b) { return order_of(a) < order_of(b); });
  if (best->kind == Gid::Kind::kInfiniBand || best->kind == Gid::Kind::kIwarp)
    return GidChoice{*best, "the port's own"};
  const auto rivals = std::count_if(table.begin(), table.end(),
                                    [&](const Gid& gid) { return order_of(gid) == order_of(*best); });
  return GidChoice{*best, rivals == 1
                              ? fmt::format("the best of {}", table.size())
                              : fmt::format("the first of {} equally good ones of {}", rivals, table.size())};
}

}  // namespace hips::verbs

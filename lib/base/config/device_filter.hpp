#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips {

/// Which devices may be used, in the syntax of NCCL_IB_HCA and NCCL_SOCKET_IFNAME.
///
///     mlx5           devices whose names begin with "mlx5"
///     =mlx5_1        the device of exactly that name
///     mlx5_0:1       port 1 of it, where devices have ports
///     a,b:2          any of them, in this order of preference; rails use them in turn
///     ^mlx5_3        all devices except these; "^=" compares whole names
///
/// Source   NCCL's user guide, NCCL_IB_HCA and NCCL_SOCKET_IFNAME; its parser is src/misc/utils.cc.
class DeviceFilter {
 public:
  /// The variable as errors name it, and whether names may end with a port.
  struct Syntax {
    std::string_view variable;  ///< "HIPS_IB_HCA"
    std::string_view example;   ///< "mlx5_0 or mlx5_0:1"
    std::string_view noun;      ///< "a device"
    bool ports = false;
  };

  DeviceFilter() = default;  ///< all devices pass

  /// Errors   kInvalidArgument: names the entry and says what would be right.
  static Result<DeviceFilter> parse(std::string_view text, const Syntax& syntax);

  /// The positions of the device in the order of preference, lower first; empty if it does not pass. A device
  /// that several equal entries name has several positions: it may serve several rails.
  [[nodiscard]] std::vector<std::int32_t> positions_of(std::string_view device, std::uint8_t port = 1) const;
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  /// Whether the filter lists allowed devices, not excluded ones.
  [[nodiscard]] bool chooses() const { return !entries_.empty() && !exclude_; }

 private:
  struct Entry {
    std::string name;
    std::int32_t port = -1;  ///< -1: any
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  [[nodiscard]] bool matches(const Entry& entry, std::string_view device, std::uint8_t port) const;

  std::vector<Entry> entries_;
  bool exclude_ = false;
  bool exact_ = false;
};

/// HIPS_IB_HCA.
inline constexpr DeviceFilter::Syntax kHcaSyntax{
    .variable = "HIPS_IB_HCA", .example = "mlx5_0 or mlx5_0:1", .noun = "a device", .ports = true};
/// HIPS_SOCKET_IFNAME.
inline constexpr DeviceFilter::Syntax kSocketSyntax{
    .variable = "HIPS_SOCKET_IFNAME", .example = "eth0", .noun = "a network interface"};

}  // namespace hips

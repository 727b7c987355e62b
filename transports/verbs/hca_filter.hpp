#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::verbs {

/// Which ports of which devices may be used: HIPS_IB_HCA, in the syntax of NCCL_IB_HCA.
///
///     mlx5           devices whose names begin with "mlx5"
///     =mlx5_1        the device of exactly that name
///     mlx5_0:1       port 1 of it
///     a,b:2          any of them, in this order of preference; rails take them in turn
///     ^mlx5_3        all but; "^=" all but exactly
///
/// Source   NCCL's user guide, NCCL_IB_HCA; its parser is src/misc/utils.cc.
class HcaFilter {
 public:
  HcaFilter() = default;  ///< everything passes

  /// Errors   kInvalidArgument: names the entry and says what would be right.
  static Result<HcaFilter> parse(std::string_view text);

  /// Its places among what passes, lower first; none where it does not pass. An entry that is written several
  /// times gives its ports as many places: one port may serve several rails.
  [[nodiscard]] std::vector<std::int32_t> places_of(std::string_view device, std::uint8_t port) const;
  [[nodiscard]] bool empty() const { return entries_.empty(); }

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

}  // namespace hips::verbs

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <hips/plan.hpp>

#include "lib/base/result.hpp"

namespace hips::cost {

/// A plan that somebody chose for vectors of some size, by measuring or by knowing better than the model.
struct ChosenPlan {
  /// In place of an algorithm: no plan. HiPS does as it would without a table, which may be none of the
  /// plans: in the memory of each host and between hosts.
  static constexpr std::string_view kAuto = "auto";

  std::uint64_t up_to_bytes = UINT64_MAX;  ///< of the vector; UINT64_MAX: any
  std::string algorithm = "hips";
  std::string pattern;  ///< as HIPS_PATTERN; empty: the algorithm's default

  friend bool operator==(const ChosenPlan&, const ChosenPlan&) = default;
};

/// Plans by topology and size, in a file of lines
///
///     # HiPS selection table 1
///     topology=bcube:3,1 up_to=65536 algorithm=recursive-doubling pattern=default
///     topology=bcube:3,1 up_to=1048576 algorithm=auto pattern=default
///     topology=bcube:3,1 up_to=any algorithm=hips pattern=mesh,ring
///
/// Spaces, control characters and % in a topology's path are written as %20. Empty lines and those that begin
/// with # say nothing. The lines of a topology ascend and end with up_to=any.
class SelectTable {
 public:
  static constexpr std::string_view kTitle = "# HiPS selection table 1";

  /// Errors   kInvalidArgument: names the line of `name` that is wrong, and what would be right.
  static Result<SelectTable> parse(std::string_view text, std::string_view name);
  /// Errors   as parse(). kSystem: the file cannot be read; kInvalidArgument where it is too large for a
  /// table.
  static Result<SelectTable> read(const std::string& path);

  /// The plans of a topology, ascending, the last for any size; null where the table has none. `spec` as
  /// Topology::spec.
  [[nodiscard]] const std::vector<ChosenPlan>* find(std::string_view spec) const;
  void set(const std::string& spec, std::vector<ChosenPlan> plans) { plans_[spec] = std::move(plans); }
  /// What parse() reads.
  [[nodiscard]] std::string text() const;
  /// Errors   those of replace_file().
  Status write(const std::string& path) const;

 private:
  std::map<std::string, std::vector<ChosenPlan>, std::less<>> plans_;
};

/// "recursive-doubling up to 65536, else hips mesh": the same on ranks that read the same.
std::string to_string(const std::vector<ChosenPlan>& plans);

}  // namespace hips::cost

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <hips/plan.hpp>

#include "lib/base/result.hpp"

namespace hips::cost {

/// The plan that a user chose for vectors of some size, for example by measuring.
struct ChosenPlan {
  /// Instead of an algorithm: no plan is chosen. HiPS does the same as without a table, which may be a
  /// hierarchical call instead of a plan.
  static constexpr std::string_view kAuto = "auto";

  std::uint64_t up_to_bytes = UINT64_MAX;  ///< of the vector; UINT64_MAX: any
  std::string algorithm = "hips";
  std::string pattern;  ///< as HIPS_PATTERN; empty: the algorithm's default

  friend bool operator==(const ChosenPlan&, const ChosenPlan&) = default;
};

/// Plans by topology and size, in a file with lines such as
///
///     # HiPS selection table 1
///     topology=bcube:3,1 up_to=65536 algorithm=recursive-doubling pattern=default
///     topology=bcube:3,1 up_to=1048576 algorithm=auto pattern=default
///     topology=bcube:3,1 up_to=any algorithm=hips pattern=mesh,ring
///
/// Spaces, control characters and % in a topology's path are escaped, as in %20. Empty lines and lines that
/// begin with # are ignored. The lines of a topology ascend and end with up_to=any.
class SelectTable {
 public:
  static constexpr std::string_view kTitle = "# HiPS selection table 1";

  /// Errors   kInvalidArgument: names the wrong line of file `name`, and what would be right.
  static Result<SelectTable> parse(std::string_view text, std::string_view name);
  /// Errors   as parse(). kSystem: the file cannot be read. kInvalidArgument: it is too large for a table.
  static Result<SelectTable> read(const std::string& path);

  /// The plans of a topology, ascending, the last for any size; null if the table has none. `spec` is
  /// Topology::spec.
  [[nodiscard]] const std::vector<ChosenPlan>* find(std::string_view spec) const;
  void set(const std::string& spec, std::vector<ChosenPlan> plans) { plans_[spec] = std::move(plans); }
  /// The text that parse() reads.
  [[nodiscard]] std::string text() const;
  /// Errors   those of replace_file().
  Status write(const std::string& path) const;

 private:
  std::map<std::string, std::vector<ChosenPlan>, std::less<>> plans_;
};

/// "recursive-doubling up to 65536, else hips mesh". Equal on ranks that read the same table.
std::string to_string(const std::vector<ChosenPlan>& plans);

}  // namespace hips::cost

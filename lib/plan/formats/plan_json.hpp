#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include <hips/plan.hpp>

#include "lib/base/result.hpp"

/// Plans as JSON: printable, diffable (a line for each step), storable.
///
///   {
///    "format": "hips-plan",
///    "version": 1,                        of this schema
///    "algorithm": "hips",
///    "description": "HiPS, 2 lanes, mesh on both levels",
///    "num_ranks": 9,
///    "num_steps": 4,                      longest chain of messages
///    "neighbours_only": true,
///    "blocks": {"num_blocks": 18, "num_scratch_blocks": 0,
///               "parts": [{"blocks": [0, 18], "begin": [0, 1], "end": [1, 1]}]},
///                                         "blocks" is [first, count]; a share is [num, den]
///    "lanes": [{"blocks": [0, 9], "direction": 1,
///               "stages": [{"phase": "scatter", "level": 0, "pattern": "mesh", "num_leaders": 3}, ...]},
///               ...],
///    "notes": {...},                      optional remarks of the writer; readers ignore them
///    "programs": [
///     {"rank": 0, "owned": [[0, 1], [9, 1]], "steps": [
///      {"op": "send", "phase": "scatter", "lane": 0, "stage": 0, "level": 0, "round": 0,
///       "peer": 1, "rail": 0, "dst": ["output", 3, 3], "srcs": [["input", 3, 3]], "after": []},
///      {"op": "reduce", ..., "dst": ["output", 0, 3],
///       "srcs": [["input", 0, 3], {"peer": 1, "rail": 0}], ...},
///      ...]},
///     ...]
///   }
///
/// docs/plan.schema.json is the schema. A step's `after` are the indices of earlier steps of its rank. Only
/// sends have "peer" and "rail"; rail -1 is no rail. "phase" is scatter or gather, "op" send, reduce or copy,
/// "pattern" mesh, ring or ps, and a buffer input, output or scratch. Keys may come in any order; unknown
/// ones are errors.
namespace hips::plan {

inline constexpr std::int32_t kPlanJsonVersion = 1;

/// Writes a plan piece by piece, so that it need not be in memory as a whole.
///
/// Owns     nothing; `out` must outlive it.
/// Example  PlanJsonWriter writer(out, builder->shape());
///          for (Rank r = 0; r < n; ++r) writer.add(builder->program(r));
///          writer.finish();
class PlanJsonWriter {
 public:
  PlanJsonWriter(std::ostream& out, const PlanShape& shape);
  /// With a "notes" field.
  PlanJsonWriter(std::ostream& out, const PlanShape& shape, const nlohmann::ordered_json& notes);
  void add(const Program& program);
  void finish();

 private:
  std::ostream& out_;
  bool first_ = true;
};

/// The whole plan as text.
std::string to_json(const Plan& plan);

/// Reads a plan that to_json(), a person or another tool wrote. The result is well formed, but not proved to
/// be correct: check() does that.
///
/// Shapes   a builder's plan is equal to the original after to_json() and from_json().
/// Cost     linear in the text.
/// Errors   kInvalidArgument: where, the value seen and what would be right. kMismatch: another version.
///          kUnsupported: only the programs of some ranks.
Result<Plan> from_json(std::string_view text);
/// Also returns the "notes"; null if there are none.
Result<Plan> from_json(std::string_view text, nlohmann::ordered_json& notes);

}  // namespace hips::plan

#pragma once

#include <string>
#include <string_view>

#include <hips/plan.hpp>
#include <hips/topology.hpp>

#include "lib/base/result.hpp"

namespace hips::plan {

inline constexpr std::string_view kJsonFormat = "JSON";

/// A plan from a file, which a person may have edited.
struct StoredPlan {
  Plan plan;
  std::string topology;  ///< the spec in its notes, for which it was made; "" if there is none
  std::string name;      ///< for messages: the path of the file, or of the file it was converted from
  std::string digest;    ///< 16 hexadecimal digits, the same on all ranks that read the same file
};

/// The largest plan file that is read. Files are read as a whole, so the limit bounds the memory.
inline constexpr std::size_t kMostPlanBytes = std::size_t{256} << 20U;

/// A format of stored plans other than JSON.
struct PlanFormat {
  std::string_view name;  ///< "MSCCL XML"
  bool (*recognises)(std::string_view text);
  Result<Plan> (*read)(std::string_view text);
};

/// Adds a format that read_plan_file() reads from now on. The library preloaded into MPI programs adds none:
/// `hips run` converts such files to JSON before it starts the program.
///
/// Threads  call it before plan files are read.
void add_plan_format(const PlanFormat& format);

/// The name of the format of a stored plan: one that was added, otherwise kJsonFormat.
std::string_view plan_format(std::string_view text);

/// The note of a JSON plan that says which file it was converted from.
inline constexpr const char* kConvertedFrom = "converted_from";

/// Reads a plan from JSON (plan_json.hpp) or from one of the formats that were added. The plan is well
/// formed, but not proved to be correct: prove_stored() does that. Some formats name no NICs: set_rails()
/// adds them.
///
/// Errors   kInvalidArgument: the path, and what is wrong with the file, or that this program does not read
///          its format.
Result<StoredPlan> read_plan_file(const std::string& path);

/// Gives every message without a NIC the NIC of the topology's route; on a rack, lanes take its rails in
/// turn. Sets neighbours_only if all messages are one hop. Leaves a plan for another number of ranks as it
/// is.
void set_rails(const Topology& topology, Plan& plan);

/// Proves a plan from the file `path` on the topology that it is to run on, with one credit.
///
/// Cost     that of check().
/// Errors   kInvalidArgument: the first error that the checker found, with its counter-example. kUnsupported:
///          the plan is for another number of ranks.
Status prove_stored(const std::string& path, const Plan& plan, const Topology& topology);

}  // namespace hips::plan

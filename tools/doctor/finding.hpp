#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hips::doctor {

enum class FindingLevel : std::uint8_t {
  kOk,       ///< checked, no problem
  kNote,     ///< information; no action is needed
  kWarning,  ///< works, but slower or not in every case
  kError,    ///< HiPS cannot work
};

/// One finding of the doctor.
struct DoctorFinding {
  FindingLevel level = FindingLevel::kOk;
  std::string where;  ///< "rxe0:1", "limits", "rank 2 on node1: rxe0:1"
  std::string text;   ///< one sentence with the value seen
  std::string fix;    ///< the command that fixes it; never empty for a warning or an error
  friend bool operator==(const DoctorFinding&, const DoctorFinding&) = default;
};

using Findings = std::vector<DoctorFinding>;

/// "ok", "note", "warning", "error"
std::string_view to_string(FindingLevel level);

/// Is one of them an error?
bool any_error(const Findings& findings);

}  // namespace hips::doctor

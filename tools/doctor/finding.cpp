#include "tools/doctor/finding.hpp"

#include <algorithm>

namespace hips::doctor {

std::string_view to_string(FindingLevel level) {
  switch (level) {
    case FindingLevel::kOk:
      return "ok";
    case FindingLevel::kNote:
      return "note";
    case FindingLevel::kWarning:
      return "warning";
    case FindingLevel::kError:
      return "error";
  }
  return "?";
}

bool any_error(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const DoctorFinding& finding) { return finding.level == FindingLevel::kError; });
}

}  // namespace hips::doctor

#include "tools/doctor/finding.hpp"

#include <algorithm>

namespace hips::doctor {

std::string_view to_string(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kNote:
      return "note";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "?";
}

bool any_error(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.level == Level::kError; });
}

}  // namespace hips::doctor

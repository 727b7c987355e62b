#pragma once

#include <string>

#include "lib/plan/check/check.hpp"

namespace hips::tests {

/// What was found, as a person reads it: a line for each finding, its example behind it.
inline std::string text_of(const plan::CheckReport& report) {
  std::string text;
  for (const plan::Finding& finding : report.findings) {
    text += std::string(to_string(finding.kind)) + ": " + finding.text + "\n";
    for (const std::string& line : finding.example) text += "  " + line + "\n";
  }
  return text;
}

}  // namespace hips::tests

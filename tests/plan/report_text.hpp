#pragma once

#include <string>

#include "lib/plan/check/check.hpp"

namespace hips::tests {

/// The findings as text: a line for each, followed by its example.
inline std::string text_of(const plan::CheckReport& report) {
  std::string text;
  for (const plan::Finding& finding : report.findings) {
    text += std::string(to_string(finding.kind)) + ": " + finding.text + "\n";
    for (const std::string& line : finding.example) text += "  " + line + "\n";
  }
  return text;
}

}  // namespace hips::tests

#pragma once

#include <string>

#include "lib/base/result.hpp"
#include "tools/hips-write/options.hpp"

namespace hips::write {

/// What both ends must have alike, one "flag value" on each line, for the other end.
std::string agreement_text(const Options& options);

/// Compares with what the other end sent. Pure.
///
/// Errors   kMismatch: names each flag that differs with both values.
Status check_agreement(const Options& options, const std::string& theirs);

}  // namespace hips::write

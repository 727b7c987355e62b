#pragma once

#include <string>

#include "lib/base/result.hpp"
#include "tools/hips-write/options.hpp"

namespace hips::write {

/// Lists the settings that both ends must share, one "flag value" per line, to be sent to the other end.
std::string agreement_text(const WriteOptions& options);

/// Compares the settings with those that the other end sent. Pure.
///
/// Errors   kMismatch: names each flag that differs, with both values.
Status check_agreement(const WriteOptions& options, const std::string& theirs);

}  // namespace hips::write

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hips::doctor {

enum class Level : std::uint8_t {
  kOk,       ///< looked at and in order
  kNote,     ///< worth knowing; nothing has to be done
  kWarning,  ///< works, but slower or not in every case
  kError,    ///< HiPS does not work like this
};

/// One thing that the doctor has found.
struct Finding {
  Level level = Level::kOk;
  std::string where;  ///< "rxe0:1", "limits", "rank 2 on node1: rxe0:1"
  std::string text;   ///< one sentence with the value seen
  std::string fix;    ///< the line that fixes it; never empty for a warning or an error
  friend bool operator==(const Finding&, const Finding&) = default;
};

using Findings = std::vector<Finding>;

/// "ok", "note", "warning", "error"
std::string_view to_string(Level level);

/// Is one of them an error?
bool any_error(const Findings& findings);

}  // namespace hips::doctor

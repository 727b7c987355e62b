#include "tools/hips/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace hips::cli {

int finish_output(int code, std::string_view command) {
  // Where an earlier write failed and nothing is left to flush, its reason is the last that was noted.
  if (std::ferror(stdout) == 0) errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  const std::string why = errno == 0 ? "" : fmt::format(": {}", std::strerror(errno));
  fmt::print(stderr, "hips: {}{}cannot write the output{}\n", command, command.empty() ? "" : ": ", why);
  return code == 0 ? 1 : code;
}

}  // namespace hips::cli

#include "tools/hips/common/output.hpp"

#include <cstdio>

#include <fmt/format.h>

#include "lib/base/os/printed.hpp"

namespace hips::cli {

void write_stdout(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int finish_output(int code, std::string_view command) {
  const Status status = printed();
  if (status.ok()) return code;
  fmt::print(stderr, "hips: {}{}{}\n", command, command.empty() ? "" : ": ", status.message);
  return code == 0 ? 1 : code;
}

}  // namespace hips::cli

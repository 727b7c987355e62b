#include "tools/hips-write/main.hpp"

#include <cstdio>
#include <exception>

#include "lib/base/os/printed.hpp"
#include "tools/hips-write/session.hpp"

namespace hips::write {
namespace {

int run_or_stop(const ParsedWriteOptions& parsed) {
  if (!parsed.stop) return run_session(parsed.options);
  std::fputs(parsed.message.c_str(), parsed.exit_status == 0 ? stdout : stderr);
  return parsed.exit_status;
}

}  // namespace

int run_program(WriteProgram program, int argc, const char* const* argv) {
  const ParsedWriteOptions parsed = parse_options(program, argc, argv);
  try {
    const int exit_status = run_or_stop(parsed);
    if (exit_status != 0) return exit_status;
    const Status status = printed();
    if (status.ok()) return 0;
    std::fprintf(stderr, "%s: %s\n", parsed.options.name(), status.message.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", parsed.options.name(), error.what());
  }
  return 1;
}

}  // namespace hips::write

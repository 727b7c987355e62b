#include "tools/hips-write/main.hpp"

#include <cstdio>
#include <exception>

#include "tools/hips-write/session.hpp"

namespace hips::write {

int run_program(Program program, int argc, const char* const* argv) {
  const Parsed parsed = parse_options(program, argc, argv);
  if (parsed.stop) {
    std::fputs(parsed.message.c_str(), parsed.exit_status == 0 ? stdout : stderr);
    return parsed.exit_status;
  }
  try {
    return run_session(parsed.options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", parsed.options.name(), error.what());
    return 1;
  }
}

}  // namespace hips::write

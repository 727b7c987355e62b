#include <cstdio>
#include <exception>

#include <hips/hips.h>
#include <hips/status.hpp>

#include "tools/hips/arguments.hpp"
#include "tools/hips/command.hpp"

int main(int argc, char** argv) {
  CLI::App app{"HiPS: plans, proves and runs hierarchical synchronization on a known topology.", "hips"};
  app.require_subcommand(1);
  app.failure_message(hips::cli::argument_error);
  app.set_version_flag("--version", [] { return std::string("hips ") + hips_version(); });
  hips::cli::add_topo(app);
  hips::cli::add_plan(app);
  hips::cli::add_check(app);
  hips::cli::add_compare(app);
  hips::cli::add_run(app);
  hips::cli::add_trace(app);
  hips::cli::add_lab(app);
  hips::cli::add_doctor(app);
  hips::cli::add_info(app);
  hips::cli::add_completion(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& error) {
    // A command that ran something has that program's exit code.
    return error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    // Help and version exit 0; a wrong flag is the caller's and exits 2.
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const hips::Error& error) {
    std::fprintf(stderr, "hips: %s\n", error.what());
    return error.status().code == hips::Code::kInvalidArgument ||
                   error.status().code == hips::Code::kUnsupported
               ? 2
               : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hips: %s\n", error.what());
    return 1;
  }
  return 0;
}

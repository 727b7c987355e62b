#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hips/hips.h>
#include <hips/status.hpp>

#include "tools/hips/command.hpp"
#include "tools/hips/common/arguments.hpp"
#include "tools/hips/common/output.hpp"
#include "tools/hips/common/settings.hpp"

namespace {

/// All commands, as the help lists them; or `run` alone: it starts each rank of a job, and the options of the others take milliseconds.
void add_commands(CLI::App& app, std::string_view named, const std::vector<std::string>& program) {
  using namespace hips::cli;
  if (named == "run") {
    add_run(app);
    return;
  }
  add_topo(app);
  add_plan(app);
  add_check(app);
  add_compare(app);
  add_run(app);
  add_trace(app);
  add_lab(app, program);
  add_doctor(app);
  add_info(app);
  add_completion(app);
}

/// Runs the command of the command line and returns its exit code.
int run(CLI::App& app, std::vector<char*> arguments) {
  hips::cli::remove_separator(app, arguments);
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::RuntimeError& error) {
    // A command that ran another program returns that program's exit code.
    return error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    // Help and version exit with 0, a wrong flag with 2.
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const hips::Error& error) {
    std::fprintf(stderr, "hips: %s\n", error.what());
    return error.status().code == hips::Code::kInvalidArgument ||
                   error.status().code == hips::Code::kUnsupported
               ? 2
               : 1;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "hips: out of memory; check ulimit -v and free -m, or reduce the request\n");
    return 1;
  } catch (const std::exception& error) {
    // fmt throws when it cannot write to stdout; finish_output() reports that for all commands.
    if (std::ferror(stdout) == 0) std::fprintf(stderr, "hips: %s\n", error.what());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> arguments{argv, argv + argc};
  const std::vector<std::string> program = hips::cli::take_program(arguments);
  CLI::App app{"HiPS plans, proves and runs hierarchical collectives on a known topology.", "hips"};
  app.require_subcommand(1);
  app.failure_message(hips::cli::argument_error);
  app.set_version_flag("--version", [] { return std::string("hips ") + hips_version(); });
  add_commands(app, argc > 1 ? argv[1] : "", program);
  app.parse_complete_callback([&app] { hips::cli::check_settings(hips::cli::command_name(app)); });
  const int code = run(app, std::move(arguments));
  return hips::cli::finish_output(code, hips::cli::command_name(app));
}

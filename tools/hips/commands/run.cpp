#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "lib/base/config/config.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/common/beside.hpp"
#include "tools/hips/common/reading_options.hpp"
#include "tools/hips/job/launcher.hpp"
#include "tools/hips/run/converted_inputs.hpp"
#include "tools/hips/run/job_settings.hpp"
#include "tools/hips/run/launch.hpp"
#include "tools/hips/run/program.hpp"

namespace hips::cli {
namespace {

struct RunOptions {
  std::string topology, algorithm, pattern, mpi, adopt, trace;
  std::string report;  ///< "": none; "on"; FILE.json
};

/// The ranks that detect the same error; one of them reports it.
enum class Detected { kByJob, kByNode };

[[noreturn]] void refuse(const Launcher& launcher, Detected detected, Status status) {
  const bool reports =
      detected == Detected::kByNode && launcher.local_rank ? *launcher.local_rank == 0 : launcher.rank == 0;
  if (!reports) {
    // The launcher ends the job when the first rank fails: let the reporting rank go first.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    throw CLI::RuntimeError(2);
  }
  throw Error(std::move(status));
}

void set(const char* name, const std::optional<std::string>& value) {
  if (value) setenv(name, value->c_str(), 1);
}

/// Passes converted inputs to the program where the preloaded library does not read those that were given.
void convert_inputs(const Launcher& launcher, const std::optional<std::string>& topology,
                    const std::optional<std::string>& plan_file) {
  if (topology) {
    const auto converted = converted_topology(*topology);
    if (!converted) refuse(launcher, Detected::kByNode, converted.error());
    set("HIPS_TOPO", *converted);
  }
  if (plan_file) {
    const auto converted = converted_plan_file(*plan_file, topology);
    if (!converted) refuse(launcher, Detected::kByNode, converted.error());
    set("HIPS_PLAN_FILE", *converted);
  }
}

/// Before the program starts, as it writes its report when it ends.
Status check_report_file(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::path folder = file.parent_path();
  const auto wrong = [&](std::string_view why) {
    return Status::error(Code::kInvalidArgument,
                         fmt::format("run: the report cannot be written to {}: {}", file.string(), why));
  };
  if (!std::filesystem::is_directory(folder, error))
    return wrong(fmt::format("there is no folder {}", folder.string()));
  if (std::filesystem::is_directory(file, error)) return wrong("that is a folder; name a file in it");
  if (access((std::filesystem::exists(file, error) ? file : folder).c_str(), W_OK) != 0)
    return wrong(std::strerror(errno));
  return Status::success();
}

/// The topology that the world of the job gets; nullopt if neither a topology nor the number of ranks is known.
std::optional<Topology> topology_of_job(const Launch& launch, const Launcher& launcher) {
  if (launch.topology) return parse_topology(*launch.topology);
  if (launcher.kind == LauncherKind::kNone) return parse_topology("switch:1");
  if (launcher.size) return parse_topology(fmt::format("switch:{}", *launcher.size));
  return std::nullopt;
}

void run(const RunOptions& options, const std::vector<std::string>& command) {
  const Launcher launcher = detect_launcher([](const char* name) { return std::getenv(name); });
  const LoadedConfig loaded = load_process_config();
  if (!loaded.status.ok()) refuse(launcher, Detected::kByNode, loaded.status);
  LaunchRequest request;
  request.topology = options.topology.empty() ? loaded.config.topology : options.topology;
  if (!options.algorithm.empty()) request.algorithm = options.algorithm;
  if (!options.pattern.empty()) request.pattern = options.pattern;
  if (!options.mpi.empty()) request.mpi = options.mpi;
  if (!options.adopt.empty()) request.others.insert(request.others.end(), {"--adopt", options.adopt});
  if (options.report == "on") request.others.emplace_back("--report");
  if (options.report.ends_with(".json")) request.others.push_back("--report=" + options.report);
  if (!options.trace.empty()) request.others.insert(request.others.end(), {"--trace", options.trace});
  request.command = command;
  if (!request.command.empty() && request.command.front() == "--")
    request.command.erase(request.command.begin());

  const auto wrong = [&](std::string message) {
    refuse(launcher, Detected::kByJob, Status::error(Code::kInvalidArgument, std::move(message)));
  };
  if (request.command.empty()) wrong("run: no program; type: mpirun -n 9 hips run -t bcube:3,1 ./app");
  if (request.command.front().starts_with('-'))
    wrong(fmt::format("run: unknown option \"{}\"; hips run --help lists them", request.command.front()));

  const char* path = std::getenv("PATH");
  auto found = find_program(request.command.front(), path ? path : "/usr/local/bin:/usr/bin:/bin");
  if (!found) refuse(launcher, Detected::kByNode, found.error());
  const MpiProgram program = inspect_program(*found);

  const auto launch = check_launch(request, program, launcher);
  if (!launch) refuse(launcher, Detected::kByJob, launch.error());
  const NamedByCommandLine named{request.algorithm, request.pattern};
  if (Status status = check_job_settings(named, loaded.config, topology_of_job(*launch, launcher));
      !status.ok())
    refuse(launcher, Detected::kByNode, std::move(status));
  // A file that the environment names has the text, too. Absolute, because the program may change its working directory before
  // it writes.
  const char* const known = std::getenv("HIPS_MPI_REPORT");
  std::string report = options.report;
  if (known != nullptr && std::string_view(known).ends_with(".json") && !report.ends_with(".json"))
    report = known;
  if (report.ends_with(".json")) {
    report = std::filesystem::absolute(report).string();
    if (launcher.rank == 0)
      if (Status status = check_report_file(report); !status.ok())
        refuse(launcher, Detected::kByJob, std::move(status));
  }
  if (!launch->warning.empty() && launcher.rank == 0)
    std::fprintf(stderr, "hips: warning: %s\n", launch->warning.c_str());
  const Interposer& interposer = *launch->interposer;
  const auto library = find_library(interposer);
  if (!library)
    refuse(launcher, Detected::kByNode,
           Status::error(Code::kUnsupported,
                         fmt::format("{}, the library for programs of {}, is not installed beside this hips; "
                                     "build HiPS with -D{}=enabled",
                                     interposer.library, interposer.mpi, interposer.feature)));

  if (library->find_first_of(": ") != std::string::npos)
    refuse(launcher, Detected::kByNode,
           Status::error(
               Code::kUnsupported,
               fmt::format("{} cannot be preloaded: LD_PRELOAD takes no path with a space or a colon; move "
                           "HiPS to a folder without them",
                           *library)));

  set("HIPS_TOPO", launch->topology);
  convert_inputs(launcher, launch->topology, loaded.config.plan_file);
  set("HIPS_ALGORITHM", request.algorithm);
  set("HIPS_PATTERN", request.pattern);
  if (!options.adopt.empty()) set("HIPS_ADOPT", options.adopt);
  if (!report.empty()) set("HIPS_MPI_REPORT", report);
  if (!options.trace.empty()) set("HIPS_TRACE", std::filesystem::absolute(options.trace).string());
  const char* preload = std::getenv("LD_PRELOAD");
  set("LD_PRELOAD", add_to_preload(preload ? preload : "", *library));

  std::vector<char*> argv;
  for (std::string& argument : request.command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execvp(found->c_str(), argv.data());
  Status status = Status::error(Code::kInvalidArgument, fmt::format("program \"{}\" cannot be executed: {}",
                                                                    *found, std::strerror(errno)));
  status.sys_errno = errno;
  refuse(launcher, Detected::kByNode, std::move(status));
}

/// A help text whose usage shows the program, which CLI11 does not know.
class RunFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: hips run [OPTIONS] [--] PROGRAM [ARGUMENTS...]\n";
  }
};

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand(
      "run", "Run an unmodified MPI program with HiPS: mpirun -n 9 hips run -t bcube:3,1 ./app");
  add_topology_option(
      *command, options->topology,
      "Topology: bcube:n,k | torus:AxB | mesh:AxB | fattree:k | leafspine:l,s | rail:servers,K | switch:n, "
      "with /m for m ranks per server; or FILE.yaml");
  command->add_option("--algorithm", options->algorithm,
                      "hips, flat-ring, ...; hips plan --list has all (default: by size)");
  command->add_option("--pattern", options->pattern,
                      "mesh, ring or ps:LEADERS, one for all levels or one per level");
  command->add_option(
      "--mpi", options->mpi,
      "MPI of a program that does not link to one, such as a script: openmpi, mpich, or auto, "
      "which goes by the launcher");
  command
      ->add_option("--adopt", options->adopt,
                   "auto: HiPS takes over a communicator once that is expected to pay; always: at its first "
                   "collective (default: auto)")
      ->check(CLI::IsMember({"auto", "always"}));
  command
      ->add_flag(
          "--report{on}", options->report,
          "Print at the end how long collectives took, what HiPS saved, which calls it executed, which it "
          "delegated to native MPI, and why; --report=FILE.json writes that, too")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text == "on" || text.ends_with(".json")
                       ? std::string()
                       : fmt::format("\"{}\" is no file that ends with .json", text);
          },
          ""));
  command->add_option("--trace", options->trace, "Write a Chrome trace for each rank into this folder");
  // An empty one is a variable of a script that was not set: the program would run without it, and nobody would know.
  for (const char* name : {"--topology", "--algorithm", "--pattern", "--mpi", "--trace"})
    command->get_option(name)->check(CLI::Validator(
        [](const std::string& text) {
          return text.empty() ? "is empty; leave it out, or give it a value" : "";
        },
        ""));
  command->prefix_command();
  command->formatter(std::make_shared<RunFormatter>());
  command->callback([command, options] { run(*options, command->remaining()); });
}

}  // namespace hips::cli

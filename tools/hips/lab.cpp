#include <memory>

#include "tools/hips/command.hpp"
#include "tools/hips/topology_option.hpp"
#include "tools/lab/agent.hpp"
#include "tools/lab/host_devices.hpp"
#include "tools/lab/image.hpp"
#include "tools/lab/lab.hpp"
#include "tools/lab/sandbox.hpp"

namespace hips::cli {
namespace {

constexpr const char* kLabFooter =
    R"(Each rank finds HIPS_RANK, HIPS_SIZE, HIPS_ROOT, HIPS_TOPO and HIPS_IB_HCA, the device of
each of its NICs in order (rxe0:1,rxe1:1). PATH, LD_LIBRARY_PATH, LANG, LC_*, HIPS_*, OMPI_MCA_* and UCX_* are passed on. A
guest sees the host's files; what it writes is gone with it, except in folders named with --writable. Guests are node0,
node1, ...

  hips lab run -t bcube:2,1 -- ibv_devinfo
  hips lab run -t bcube:3,1 --rate 4mbit --mpirun -- mpirun -n 9 hips run -t bcube:3,1 ./app
  hips lab run -t rail:4,2 --one-guest -- ./app
)";

/// A year: nobody waits longer for a command in guests.
constexpr int kMostSeconds = 365 * 86400;

void add_run_command(CLI::App& lab) {
  auto options = std::make_shared<lab::LabOptions>();
  CLI::App* command = lab.add_subcommand(
      "run", "Boots one guest for each server, runs a command in each, and takes everything down");
  command->add_option("-t,--topology", options->topology, "the wiring, such as bcube:2,1; default HIPS_TOPO")
      ->type_name("SPEC");
  command->add_option("--ranks-per-server", options->ranks_per_server, "ranks in each guest")
      ->check(CLI::Range(1, 64));
  command->add_flag("--one-guest", options->one_guest,
                    "all ranks in one guest, on devices that reach themselves: no wiring, but fast");
  command->add_flag("--mpirun", options->mpirun,
                    "runs the command in node0 only; an mpirun there starts programs in all guests");
  command->add_option("--rate", options->shaping.rate, "of every NIC, in each direction: 4mbit")
      ->type_name("RATE");
  command->add_option("--loss", options->shaping.loss, "of what every NIC sends: 1%")->type_name("PERCENT");
  command
      ->add_option("--queue", options->shaping.queue_bytes,
                   "bytes that wait at a NIC of limited --rate before packets are dropped (4M)")
      ->transform(CLI::AsSizeValue(false))
      // Before that one, which takes -1 for the largest size there is.
      ->transform(CLI::Validator(
          [](std::string& text) {
            return text.starts_with('-') ? "\"" + text + "\" is no size; give one such as 512K or 4M"
                                         : std::string();
          },
          ""));
  command->add_option("--cpus", options->num_cpus, "of each guest")->check(CLI::Range(1, 64));
  command->add_option("--memory", options->memory_mb, "of each guest, in MB")
      ->check(CLI::Range(128, 1 << 20));
  command
      ->add_option(
          "--accel", options->accelerator,
          "kvm, tcg, or with --one-guest host: the host's own soft-RoCE, no guest; default: what works")
      ->check(CLI::IsMember({"host", "kvm", "tcg"}));
  command->add_option("--timeout", options->timeout_s, "seconds for the command, 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(0, kMostSeconds));
  command->add_option("--counters", options->counters,
                      "writes what NICs and devices counted to this file, as JSON");
  command->add_option("--output", options->output, "writes rank0.out, rank0.err, ... into this folder, too");
  command
      ->add_option("--writable", options->writable,
                   "a folder of the host that guests may write to; repeatable")
      ->allow_extra_args(false);
  command->add_option("-x", options->variables, "passes a variable: NAME or NAME=VALUE; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--tag", options->tagged, "begins each line of output with its rank");
  command->add_flag("-q,--quiet", options->quiet, "does not tell how long it took to boot");
  command->footer(kLabFooter);
  // One positional, and not CLI11's prefix commands: those lose what follows "--" in a subcommand's
  // subcommand.
  command->add_option("command", options->command, "the program and its arguments, after --");
  command->callback([options] {
    options->topology = topology_or_environment(options->topology);
    if (options->topology.empty()) {
      throw Error(Status::error(Code::kInvalidArgument,
                                "lab run: no topology; give -t SPEC (such as bcube:2,1) or set HIPS_TOPO"));
    }
    const int code = value_or_throw(lab::run_lab(*options));
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace

void add_lab(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("lab", "Soft-RoCE guests that are wired as a topology says, on one machine");
  command->require_subcommand(1);
  add_run_command(*command);
  command->add_subcommand("prepare", "Makes the guests' kernel image now; the first run does it else")
      ->callback([] {
        const lab::Image image = value_or_throw(lab::find_or_make_image());
        std::printf("%s\n", image.kernel.parent_path().c_str());
      });

  // What runs inside the guests; nobody types these.
  auto fd = std::make_shared<int>(-1);
  CLI::App* agent = command->add_subcommand("agent", "")->group("");
  agent->add_option("--fd", *fd);
  agent->callback([fd] { throw CLI::RuntimeError(lab::run_agent(*fd)); });
  command->add_subcommand("host-check", "")->group("")->callback([] {
    const int code = value_or_throw(lab::run_in_sandbox([](int) {
      const Status status = lab::check_host_device();
      if (!status.ok()) std::fprintf(stderr, "hips: %s\n", status.message.c_str());
      return status.ok() ? 0 : 2;
    }));
    if (code != 0) throw CLI::RuntimeError(code);
  });
  CLI::App* shell = command->add_subcommand("rsh", "")->group("");
  shell->prefix_command();
  shell->callback([shell] { throw CLI::RuntimeError(lab::run_remote_shell(shell->remaining())); });
}

}  // namespace hips::cli

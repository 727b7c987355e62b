#include <memory>
#include <optional>

#include "tools/hips/command.hpp"
#include "tools/hips/common/reading_options.hpp"
#include "tools/hips/common/temporary_topology.hpp"
#include "tools/hips/common/topology_option.hpp"
#include "tools/lab/guest/host_devices.hpp"
#include "tools/lab/guest/image.hpp"
#include "tools/lab/lab.hpp"
#include "tools/lab/outside.hpp"
#include "tools/lab/process/agent.hpp"
#include "tools/lab/sandbox.hpp"
#include "tools/lab/server_namespaces.hpp"

namespace hips::cli {
namespace {

constexpr const char* kLabFooter =
    R"(Each rank gets HIPS_RANK, HIPS_SIZE, HIPS_ROOT, HIPS_TOPO and, in guests, HIPS_IB_HCA, the devices of its NICs in order
(rxe0:1,rxe1:1). PATH, LD_LIBRARY_PATH, LANG, LC_*, HIPS_*, OMPI_MCA_* and UCX_* are passed on. Guests see the files of this
machine; what they write is discarded, except in folders named with --writable. With --namespaces there are no guests and no RDMA:
each server has a network, host name and processes of its own on this kernel, within a second, and writes to this machine's
files. Servers are called node0, node1, ...

  hips lab run -t bcube:2,1 -- ibv_devinfo
  hips lab run -t bcube:3,1 --rate 4mbit --mpirun -- mpirun -n 9 hips run -t bcube:3,1 ./app
  hips lab run -t rail:4,2 --one-guest -- ./app
  hips lab run --namespaces -t rail:9,2 --rate 200mbit --mpirun -- mpirun -n 9 hips run ./app
)";

/// A year.
constexpr int kMostSeconds = 365 * 86400;

void add_run_command(CLI::App& lab, const std::vector<std::string>& program) {
  auto options = std::make_shared<lab::LabOptions>();
  CLI::App* command = lab.add_subcommand(
      "run", "Start one guest or namespace for each server, run a command in each, and remove everything");
  // Its --rate is that of the NICs of the lab.
  const auto reading =
      add_topology_option(*command, options->topology, "Topology, such as bcube:2,1 (default: HIPS_TOPO)",
                          "-t,--topology", {.has_rate = false});
  command->add_flag("--namespaces", options->namespaces,
                    "Servers are network namespaces of this kernel: starts in a second, fast, no RDMA");
  command->add_option("--ranks-per-server", options->ranks_per_server, "Number of ranks in each server")
      ->check(CLI::Range(1, 64));
  command->add_flag("--one-guest", options->one_guest,
                    "Run all ranks in one guest, on devices that reach themselves: no wiring, but fast");
  command->add_flag("--mpirun", options->mpirun,
                    "Run the command in node0 only; an mpirun there starts programs in all servers");
  command->add_flag("--without-topology", options->without_topology,
                    "Do not set HIPS_TOPO: programs find their NICs themselves");
  command->add_option("--rate", options->shaping.rate, "Rate of every NIC in each direction, such as 4mbit")
      ->type_name("RATE");
  command->add_option("--loss", options->shaping.loss, "Packet loss of every NIC, such as 1%")
      ->type_name("PERCENT");
  command->add_option("--delay", options->shaping.delay, "One-way delay of what each NIC sends, such as 2ms")
      ->type_name("TIME");
  command
      ->add_option("--queue", options->shaping.queue_bytes,
                   "Bytes queued at a NIC with --rate before packets are dropped; default 4M")
      ->transform(CLI::AsSizeValue(false))
      // Runs before AsSizeValue, which reads -1 as the largest size.
      ->transform(CLI::Validator(
          [](std::string& text) {
            return text.starts_with('-') ? "invalid size \"" + text + "\"; write 512K or 4M" : std::string();
          },
          ""));
  command->add_option("--cpus", options->num_cpus, "CPUs of each guest")->check(CLI::Range(1, 64));
  command->add_option("--memory", options->memory_mb, "Memory of each guest in MB")
      ->check(CLI::Range(128, 1 << 20));
  command
      ->add_option(
          "--accel", options->accelerator,
          "kvm or tcg; with --one-guest also host: soft-RoCE of this machine, without a guest; default: the "
          "fastest that works")
      ->check(CLI::IsMember({"host", "kvm", "tcg"}));
  command->add_option("--timeout", options->timeout_s, "Seconds that the command may take; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(0, kMostSeconds));
  command->add_option("--counters", options->counters,
                      "Write the counters of NICs and devices to this file, as JSON");
  command->add_option("--output", options->output, "Also write rank0.out, rank0.err, ... into this folder");
  command
      ->add_option("--writable", options->writable,
                   "Folder of this machine that guests may write to; repeatable")
      ->allow_extra_args(false);
  command->add_option("-x", options->variables, "Pass on a variable, NAME or NAME=VALUE; repeatable")
      ->allow_extra_args(false);
  command->add_flag("--tag", options->tagged, "Begin each line of output with its rank");
  command->add_flag("-q,--quiet", options->quiet, "Do not print how long booting took");
  command->footer(kLabFooter);
  command->add_option("command", options->command, "Program and its arguments, after --");
  command->callback([options, reading, program] {
    options->command.insert(options->command.end(), program.begin(), program.end());
    options->topology = required_topology("lab run", options->topology);
    // Programs in the lab do not know how the file was read.
    std::optional<TemporaryTopology> read;
    if (reading->are_given()) options->topology = read.emplace(options->topology).spec();
    if (options->namespaces) options->shaping.bucket_bytes = lab::kNamespaceBucketBytes;
    const int code = value_or_throw(lab::run_lab(*options));
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

/// The running lab that a command means.
void add_lab_option(CLI::App& command, std::int64_t& pid) {
  command.add_option("--lab", pid, "Process id of the lab, where several run")->type_name("PID");
}

void add_exec_command(CLI::App& lab, const std::vector<std::string>& program) {
  struct Options {
    std::int64_t lab = 0;
    std::string server;
    std::vector<std::string> program;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = lab.add_subcommand("exec", "Run a command in a server of a running lab of namespaces");
  add_lab_option(*command, options->lab);
  command->add_option("server", options->server, "Server, such as node4")->required();
  command->add_option("command", options->program, "Program and its arguments, after --");
  command->footer("  hips lab exec node4 -- ip address\n");
  command->callback([options, program] {
    options->program.insert(options->program.end(), program.begin(), program.end());
    if (options->program.empty()) {
      throw CLI::ValidationError("lab exec", "no program; type: hips lab exec node4 -- COMMAND");
    }
    const lab::RunningLab running = value_or_throw(lab::find_running_lab(options->lab));
    const int code = value_or_throw(lab::run_in_server(running, options->server, options->program));
    if (code != 0) throw CLI::RuntimeError(code);
  });
}

void add_link_command(CLI::App& lab) {
  struct Options {
    std::int64_t lab = 0;
    std::string nic, state;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = lab.add_subcommand("link", "Cut, slow or heal a cable of a running lab of namespaces");
  add_lab_option(*command, options->lab);
  command->add_option("nic", options->nic, "NIC at the cable, such as node4:nic1")->required();
  command->add_option("state", options->state, "down, up, a rate such as 50mbit, or unlimited")->required();
  command->callback([options] {
    const Status status =
        lab::change_cable(value_or_throw(lab::find_running_lab(options->lab)), options->nic, options->state);
    if (!status.ok()) throw Error(status);
  });
}

}  // namespace

void add_lab(CLI::App& app, const std::vector<std::string>& program) {
  CLI::App* command =
      app.add_subcommand("lab", "Emulate a cluster on this machine: servers wired like a topology");
  command->require_subcommand(1);
  add_run_command(*command, program);
  add_exec_command(*command, program);
  add_link_command(*command);
  command->add_subcommand("prepare", "Make the kernel image of the guests now instead of at the first run")
      ->callback([] {
        const lab::Image image = value_or_throw(lab::find_or_make_image());
        std::printf("%s\n", image.kernel.parent_path().c_str());
      });

  // Internal commands, which run inside the guests.
  auto fd = std::make_shared<int>(-1);
  CLI::App* agent = command->add_subcommand("agent", "")->group("");
  agent->add_option("--fd", *fd);
  auto server = std::make_shared<std::int64_t>(-1);
  agent->add_option("--server", *server);
  agent->callback([fd, server] {
    const auto run = [fd] { return lab::run_agent(*fd); };
    throw CLI::RuntimeError(*server < 0 ? run() : value_or_throw(lab::run_as_server(*server, run)));
  });
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

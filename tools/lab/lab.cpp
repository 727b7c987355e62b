#include "tools/lab/lab.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <thread>

#include <fmt/format.h>

#include <hips/topology.hpp>

#include "lib/base/os/replace_file.hpp"
#include "tools/lab/guest/guests.hpp"
#include "tools/lab/guest/host_devices.hpp"
#include "tools/lab/guest/image.hpp"
#include "tools/lab/network/counters.hpp"
#include "tools/lab/network/network.hpp"
#include "tools/lab/network/wiring.hpp"
#include "tools/lab/output.hpp"
#include "tools/lab/process/child.hpp"
#include "tools/lab/sandbox.hpp"
#include "tools/lab/server_setup.hpp"

extern char** environ;

namespace hips::lab {
namespace fs = std::filesystem;
using Clock = Guests::Clock;
namespace {

constexpr int kTimedOut = 124;  // as timeout(1) has it
constexpr auto kForever = std::chrono::hours(24 * 365);
/// Guests boot at the same time and share the host's cores, so each adds to the time of all.
/// For each of several boots; one takes 6 s, nine on two busy cores a minute.
constexpr auto kBootLimit = std::chrono::seconds(60);
constexpr auto kBootLimitPerGuest = std::chrono::seconds(10);
constexpr std::uint16_t kRootPort = 18500;

/// Everything that is decided before a process is started.
struct LabPlan {
  const LabOptions* options = nullptr;
  Topology topology;
  Wiring wiring;
  ServerSetup setup;
  std::vector<std::int64_t> devices;  ///< of a server's rails
  std::string device_prefix = "rxe";
  GuestOptions guest;
  std::string folder;  ///< where the command starts
  std::string self;    ///< this program
  std::map<std::string, std::string> env;
};

Status wrong(std::string message) {
  return Status::error(Code::kInvalidArgument, "lab: " + std::move(message));
}

Result<Topology> read_topology(const LabOptions& options) {
  try {
    Topology topology = parse_topology(options.topology);
    if (options.ranks_per_server == 0 || options.ranks_per_server == topology.ranks_per_server)
      return topology;
    if (topology.ranks_per_server != 1) {
      return fail(wrong(
          fmt::format("\"{}\" has {} ranks on each server and --ranks-per-server says {}; leave one out",
                      options.topology, topology.ranks_per_server, options.ranks_per_server)));
    }
    return parse_topology(fmt::format("{}/{}", topology.spec, options.ranks_per_server));
  } catch (const Error& error) {
    return fail(error.status());
  }
}

/// Variables that every program of the guests gets.
Result<std::map<std::string, std::string>> passed_variables(const LabOptions& options) {
  std::map<std::string, std::string> env;
  const auto is_passed = [](std::string_view name) {
    if (name == "PATH" || name == "LD_LIBRARY_PATH" || name == "LANG") return true;
    constexpr std::array<std::string_view, 4> kPrefixes{"HIPS_", "OMPI_MCA_", "UCX_", "LC_"};
    return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                       [&](auto prefix) { return name.starts_with(prefix); });
  };
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text(*variable);
    const auto equal = text.find('=');
    if (equal == std::string_view::npos || !is_passed(text.substr(0, equal))) continue;
    env[std::string(text.substr(0, equal))] = text.substr(equal + 1);
  }
  for (const std::string& variable : options.variables) {
    const auto equal = variable.find('=');
    if (equal == 0 || variable.empty())
      return fail(wrong(fmt::format("\"{}\" is no variable; write -x NAME=VALUE", variable)));
    if (equal != std::string::npos) {
      env[variable.substr(0, equal)] = variable.substr(equal + 1);
    } else if (const char* value = std::getenv(variable.c_str())) {
      env[variable] = value;
    }
  }
  return env;
}

Status find_programs(std::initializer_list<const char*> programs) {
  for (const char* program : programs) {
    if (!find_on_path(program)) {
      return Status::error(Code::kUnsupported,
                           fmt::format("lab: {} is missing: apt-get install iproute2", program));
    }
  }
  return Status::success();
}

/// What the ranks run in: namespaces where they are asked for; the host itself where its kernel has the devices and one
/// machine is enough; else guests. What they need is looked for here, before there is anything to take down.
Status choose_guest(LabPlan& plan) {
  const LabOptions& options = *plan.options;
  plan.guest.agent = plan.self;
  if (options.namespaces) {
    plan.guest.accelerator = "namespaces";
    return find_programs({"ip", "bridge", "tc"});
  }
  if (options.accelerator == "host" && !options.one_guest) {
    return wrong("one host is one machine; --accel host needs --one-guest");
  }
  if (options.one_guest && (options.accelerator.empty() || options.accelerator == "host")) {
    Status status = ask_for_host_devices(plan.self);
    if (status.ok()) {
      plan.guest.accelerator = "host";
      plan.device_prefix = fmt::format("lab{}x", getpid());  // names of devices are the whole host's
      return status;
    }
    if (options.accelerator == "host") return status;
  }
  auto emulator = find_emulator();
  if (!emulator) return emulator.error();
  if (Status status = find_programs({"ip", "bridge", "tc", "rdma"}); !status.ok()) return status;
  if (!options.one_guest && access("/dev/net/tun", R_OK | W_OK) != 0) {
    return Status::error(
        Code::kUnsupported,
        fmt::format("lab: /dev/net/tun: {}; the guests' network needs it; as root: modprobe tun",
                    std::strerror(errno)));
  }
  auto image = find_or_make_image();
  if (!image) return image.error();
  plan.guest.image = *image;
  plan.guest.emulator = *emulator;
  plan.guest.accelerator = options.accelerator.empty() ? choose_accelerator(*image) : options.accelerator;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  plan.guest.num_cpus = options.num_cpus > 0 ? options.num_cpus : options.one_guest ? std::min(cores, 8) : 1;
  plan.guest.memory_mb = options.memory_mb > 0 ? options.memory_mb : options.one_guest ? 2048 : 512;
  plan.guest.writable = plan.setup.writable;
  return Status::success();
}

Result<LabPlan> make_plan(const LabOptions& options) {
  LabPlan plan;
  plan.options = &options;
  auto topology = read_topology(options);
  if (!topology) return fail(topology.error());
  plan.topology = std::move(*topology);
  if (Status status = check_shaping(options.shaping); !status.ok()) return fail(std::move(status));
  if (const Shaping& shaping = options.shaping;
      options.one_guest && !(shaping.rate.empty() && shaping.loss.empty() && shaping.delay.empty())) {
    return fail(
        wrong("devices of one guest reach themselves without a wire, so --rate, --loss and --delay need "
              "guests for all servers; leave --one-guest out"));
  }
  const char* const of_guests = options.one_guest              ? "--one-guest"
                                : !options.accelerator.empty() ? "--accel"
                                : options.num_cpus > 0         ? "--cpus"
                                : options.memory_mb > 0        ? "--memory"
                                                               : nullptr;
  if (options.namespaces && of_guests != nullptr) {
    return fail(
        wrong(fmt::format("--namespaces needs no guest, and {} is for guests; leave one out", of_guests)));
  }
  if (options.command.empty()) {
    return fail(wrong("no program; type: hips lab run -t bcube:2,1 -- COMMAND"));
  }
  auto wiring = wire(plan.topology);
  if (!wiring) return fail(wiring.error());
  plan.setup.num_guests = options.one_guest ? 1 : plan.topology.num_servers();
  plan.setup.slots = plan.topology.num_ranks() / plan.setup.num_guests;
  for (const std::string& folder : options.writable) {
    std::error_code error;
    const fs::path path = fs::canonical(folder, error);
    if (error || !fs::is_directory(path, error))
      return fail(wrong(fmt::format("\"{}\" is no folder", folder)));
    plan.setup.writable.push_back(path.string());
  }
  if (options.one_guest) {
    plan.devices = shared_devices(plan.topology);
  } else {
    plan.wiring = std::move(*wiring);
    for (Rail rail = 0; rail < plan.topology.num_rails; ++rail) plan.devices.push_back(rail);
  }
  auto env = passed_variables(options);
  if (!env) return fail(env.error());
  plan.env = std::move(*env);
  // Servers that are no guests inherit the variables of this process, too.
  const auto leave_out = [&](const char* name) {
    plan.env.erase(name);
    ::unsetenv(name);
  };
  for (const char* own : {"HIPS_RANK", "HIPS_SIZE", "HIPS_ROOT"}) leave_out(own);
  if (options.without_topology) {
    leave_out("HIPS_TOPO");
  } else {
    plan.env["HIPS_TOPO"] = plan.topology.spec;
  }
  std::error_code error;
  plan.folder = fs::current_path(error).string();
  plan.self = fs::read_symlink("/proc/self/exe", error).string();

  if (Status status = choose_guest(plan); !status.ok()) return fail(std::move(status));
  if (options.namespaces) return plan;
  // Many guests on few cores: one may come to nothing for seconds, and is not dead.
  plan.env.emplace("HIPS_DEAD_AFTER", "30s");
  plan.env["HIPS_IB_HCA"] = device_list(plan.devices, plan.device_prefix);
  return plan;
}

std::vector<GuestOptions> guests_of(const LabPlan& plan) {
  std::vector<GuestOptions> guests;
  for (std::int64_t server = 0; server < plan.setup.num_guests; ++server) {
    GuestOptions& guest = guests.emplace_back(plan.guest);
    guest.server = server;
    if (plan.options->one_guest || plan.options->namespaces) continue;
    for (const Port& port : plan.wiring.ports_of(server))
      guest.nics.push_back({port.tap, port.mac, kRailMtu});
    guest.nics.push_back({management_tap(server), management_mac(server), 1500});
  }
  return guests;
}

/// Makes each guest its node of the lab.
Status set_up(Guests& guests, const LabPlan& plan) {
  std::vector<Job> jobs;
  const bool on_host = plan.guest.accelerator == "host";
  const auto num_devices = 1 + *std::max_element(plan.devices.begin(), plan.devices.end());
  if (on_host) {
    if (Status status = add_host_devices(plan.device_prefix, num_devices); !status.ok()) return status;
  }
  for (std::size_t guest = 0; guest < guests.size(); ++guest) {
    Job job{guest, {}};
    const auto server = static_cast<std::int64_t>(guest);
    const Shaping& shaping = plan.options->shaping;
    const std::string script = on_host                   ? ":"
                               : plan.options->one_guest ? one_guest_script(plan.setup, num_devices)
                               : plan.options->namespaces
                                   ? namespace_script(plan.setup, plan.wiring, shaping, server, plan.self)
                                   : guest_script(plan.setup, plan.wiring, shaping, server);
    // One argument may have 128 KiB, and a script of a large lab is longer.
    constexpr std::size_t kPiece = std::size_t{64} << 10;
    job.request.argv = {"sh", "-c", R"sh(eval "$(printf %s "$@")")sh", "sh"};
    for (std::size_t at = 0; at < script.size(); at += kPiece)
      job.request.argv.push_back(script.substr(at, kPiece));
    job.request.env = plan.env;
    job.request.shared = true;
    jobs.push_back(std::move(job));
  }
  std::vector<std::string> errors(jobs.size());
  const auto outcomes = guests.run(
      jobs, [&](std::size_t job, bool, std::string_view bytes) { errors[job] += bytes; },
      Clock::now() + kBootLimit + kBootLimitPerGuest * guests.size());
  if (!outcomes) return outcomes.error();
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    if ((*outcomes)[job].ok()) continue;
    if (errors[job].find("qdisc kind is unknown") != std::string::npos) {
      return Status::error(
          Code::kUnsupported,
          "lab: this kernel has no netem (CONFIG_NET_SCH_NETEM), which --delay and --loss need; use "
          "guests (leave --namespaces out), or a kernel that has it");
    }
    return Status::error(Code::kSystem, fmt::format("lab: server {} cannot be set up: {}", job,
                                                    errors[job].empty() ? "no answer" : errors[job]));
  }
  return Status::success();
}

/// The same for servers that are namespaces, for Open MPI and for MPICH's Hydra. MPI's own traffic uses all NICs, and Open
/// MPI yields where it would spin: servers share this machine's cores, and without that 8 bytes take 33 ms instead of 0.2.
std::map<std::string, std::string> launcher_variables(const LabPlan& plan) {
  std::string nics;
  for (Rail rail = 0; rail < plan.topology.num_rails; ++rail)
    nics += fmt::format("{}nic{}", rail == 0 ? "" : ",", rail);
  return {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
          {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
          {"OMPI_MCA_plm_rsh_agent", kServerShell},
          {"OMPI_MCA_orte_default_hostfile", kServerHostFile},
          {"OMPI_MCA_oob_tcp_if_include", "mgmt0"},
          {"OMPI_MCA_btl_tcp_if_include", nics},
          {"OMPI_MCA_pml", "ob1"},
          {"OMPI_MCA_btl", "self,vader,tcp"},
          {"OMPI_MCA_hwloc_base_binding_policy", "none"},
          {"OMPI_MCA_mpi_yield_when_idle", "1"},
          {"HYDRA_LAUNCHER", "rsh"},
          {"HYDRA_LAUNCHER_EXEC", kServerShell},
          {"HYDRA_HOST_FILE", kServerHydraFile},
          {"HYDRA_IFACE", "mgmt0"}};
}

/// mpirun finds the guests and reaches their agents; its own traffic stays off the rails. What its command
/// line says comes before these variables.
std::map<std::string, std::string> mpirun_variables(const LabPlan& plan) {
  if (plan.options->namespaces) return launcher_variables(plan);
  const char* interface = plan.setup.num_guests == 1 ? "lo" : "mgmt0";
  std::map<std::string, std::string> variables = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                                  {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                                  {"OMPI_MCA_plm_rsh_agent", plan.self + " lab rsh"},
                                                  {"OMPI_MCA_oob_tcp_if_include", interface},
                                                  {"OMPI_MCA_btl_tcp_if_include", interface},
                                                  {"OMPI_MCA_pml", "ob1"},
                                                  {"OMPI_MCA_btl", "self,vader,tcp"},
                                                  {"OMPI_MCA_hwloc_base_binding_policy", "none"}};
  if (plan.guest.accelerator == "host") {
    variables["OMPI_MCA_rmaps_base_oversubscribe"] = "1";
  } else {
    variables["OMPI_MCA_orte_default_hostfile"] = kHostFile;
  }
  return variables;
}

std::vector<Job> rank_jobs(const LabPlan& plan) {
  std::vector<Job> jobs;
  const LabOptions& options = *plan.options;
  if (options.mpirun) {
    Job job{0, {options.command, mpirun_variables(plan), plan.folder, false}};
    for (const auto& [name, value] : plan.env) job.request.env[name] = value;
    return {job};
  }
  for (Rank rank = 0; rank < plan.topology.num_ranks(); ++rank) {
    Job job{static_cast<std::size_t>(rank / plan.setup.slots), {options.command, {}, plan.folder, false}};
    job.request.env["HIPS_RANK"] = std::to_string(rank);
    job.request.env["HIPS_SIZE"] = std::to_string(plan.topology.num_ranks());
    job.request.env["HIPS_ROOT"] =
        fmt::format("{}:{}", plan.options->one_guest ? "127.0.0.1" : management_ip(0), kRootPort);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

/// Tells of each rank that did not end well, and gives the lab's exit code.
int report(const LabPlan& plan, const std::vector<Job>& jobs, const std::vector<Outcome>& outcomes) {
  int code = 0;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    const Outcome& outcome = outcomes[job];
    if (outcome.ok()) continue;
    const std::string who = plan.options->mpirun ? "the command" : fmt::format("rank {}", job);
    switch (outcome.kind) {
      case Outcome::Kind::kEnded:
        fmt::print(stderr, "hips lab: {} {}\n", who, describe_exit(outcome.wait_status));
        if (code == 0) code = exit_code_of(outcome.wait_status);
        break;
      case Outcome::Kind::kGuestLost:
        fmt::print(stderr, "hips lab: {} was lost: server {} went down\n", who, jobs[job].guest);
        if (code == 0) code = 1;
        break;
      case Outcome::Kind::kRunning:
        fmt::print(stderr, "hips lab: {} did not end in {} s\n", who, plan.options->timeout_s);
        code = kTimedOut;
        break;
    }
  }
  return code;
}

/// What guests wrote to the host's folders through a mapping is on its way until they are told to hurry.
Status sync_folders(Guests& guests, const LabPlan& plan) {
  if (plan.setup.writable.empty()) return Status::success();
  std::vector<Job> jobs;
  for (std::size_t guest = 0; guest < guests.size(); ++guest) {
    if (guests.is_down(guest)) continue;
    Job job{guest, {}};
    job.request.argv = {"sync"};
    jobs.push_back(std::move(job));
  }
  const auto outcomes = guests.run(
      jobs, [](std::size_t, bool, std::string_view) {}, Clock::now() + std::chrono::seconds(20));
  return outcomes ? Status::success() : outcomes.error();
}

Result<int> run_inside(const LabPlan& plan, int lifeline) {
  const LabOptions& options = *plan.options;
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  auto output = RankOutput::create(options.mpirun ? 1 : static_cast<std::size_t>(plan.topology.num_ranks()),
                                   options.output, options.tagged);
  if (!output) return fail(output.error());
  const auto build = [&](const std::vector<pid_t>& servers) {
    return build_network(plan.wiring, plan.setup.num_guests, options.shaping, servers);
  };
  // Guests open the lab's ends of their NICs while they boot. NICs of namespaces are made when these are there.
  if (!options.one_guest && !options.namespaces) {
    if (Status status = build({}); !status.ok()) return fail(std::move(status));
  }
  Guests guests(lifeline);
  const auto limit = kBootLimit + kBootLimitPerGuest * plan.setup.num_guests;
  if (Status status = guests.boot(guests_of(plan), limit); !status.ok()) return fail(std::move(status));
  if (options.namespaces) {
    std::vector<pid_t> servers;
    for (std::size_t server = 0; server < guests.size(); ++server) servers.push_back(guests.at(server).pid());
    if (Status status = build(servers); !status.ok()) return fail(std::move(status));
  }
  const double boot_s = seconds();
  if (Status status = set_up(guests, plan); !status.ok()) return fail(std::move(status));
  if (!options.quiet) {
    const std::string where = plan.guest.accelerator == "host" ? "this host's own devices"
                              : options.namespaces             ? fmt::format("{} namespaces", guests.size())
                              : guests.size() == 1
                                  ? "1 guest with " + plan.guest.accelerator
                                  : fmt::format("{} guests with {}", guests.size(), plan.guest.accelerator);
    fmt::print(stderr, "hips lab: {} on {}: booted in {:.1f} s, set up in {:.1f} s\n", plan.topology.spec,
               where, boot_s, seconds() - boot_s);
  }
  Counters before;
  if (!options.counters.empty()) {
    auto counters = read_counters(guests);
    if (!counters) return fail(counters.error());
    before = std::move(*counters);
  }
  const std::vector<Job> jobs = rank_jobs(plan);
  const auto deadline =
      Clock::now() + (options.timeout_s > 0 ? std::chrono::seconds(options.timeout_s) : kForever);
  const auto outcomes = guests.run(
      jobs,
      [&](std::size_t job, bool is_error, std::string_view bytes) { output->add(job, is_error, bytes); },
      deadline);
  const Status written = output->finish();
  if (!written.ok()) fmt::print(stderr, "hips {}\n", written.message);
  if (!outcomes) return fail(outcomes.error());
  const int code = report(plan, jobs, *outcomes);
  if (!options.counters.empty()) {
    const auto after = read_counters(guests);
    if (!after) return fail(after.error());
    Status status =
        replace_file(options.counters, counters_json(plan.topology.spec, plan.wiring, before, *after));
    if (!status.ok()) return fail(wrong(fmt::format("{} {}", options.counters, status.message)));
  }
  if (Status status = sync_folders(guests, plan); !status.ok()) return fail(std::move(status));
  return code == 0 && !written.ok() ? 1 : code;
}

}  // namespace

Result<int> run_lab(const LabOptions& options) {
  const auto plan = make_plan(options);
  if (!plan) return fail(plan.error());
  return run_in_sandbox([&](int lifeline) {
    const auto code = run_inside(*plan, lifeline);
    if (code) return *code;
    const Status& status = code.error();
    fmt::print(stderr, "hips {}\n", status.message);
    if (status.code == Code::kAborted) return status.sys_errno > 0 ? 128 + status.sys_errno : 1;
    return status.code == Code::kInvalidArgument || status.code == Code::kUnsupported ? 2 : 1;
  });
}

}  // namespace hips::lab

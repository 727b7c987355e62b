#include "tools/hips/commands/info.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <hips/hips.h>

#include "lib/base/config/config.hpp"
#include "lib/base/counted.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "lib/comm/setup/transport_registry.hpp"
#include "lib/plan/builder.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/common/beside.hpp"
#include "tools/hips/run/interposers.hpp"

namespace hips::cli {
namespace {

void list_algorithms() {
  std::size_t width = 0;
  for (const plan::Algorithm& algorithm : plan::algorithms()) width = std::max(width, algorithm.name.size());
  for (const plan::Algorithm& algorithm : plan::algorithms()) {
    fmt::print("  {:<{}}  {}\n  {:<{}}  {}\n", algorithm.name, width, algorithm.description, "", width,
               algorithm.cost);
  }
}

/// The ports or interfaces of a transport on this node, or why it has none.
std::string availability(const comm::TransportEntry& entry, const comm::ProcessInfo& process,
                         const Status& looked) {
  if (entry.name == "verbs") {
    if (!process.rdma_nics.empty()) return counted(process.rdma_nics.size(), "port");
    return "unavailable: " + (process.rdma_problem.empty() ? looked.message : process.rdma_problem);
  }
  if (entry.name == "tcp") return counted(process.socket_nics.size(), "interface");
  return "available";
}

void print_transports() {
  const Config config = load_process_config().config;
  comm::ProcessInfo process;
  const Status looked = comm::describe_networks(config, process);
  for (const comm::TransportEntry& entry : comm::transport_entries()) {
    fmt::print("  {:<6} {}; {}\n", entry.name, entry.description, availability(entry, process, looked));
  }
}

void print_build() {
#ifdef NDEBUG
  const char* assertions = "off";
#else
  const char* assertions = "on";
#endif
  fmt::print("  {:<22} {}\n", "version", hips_version());
  fmt::print("  {:<22} {}, C++{}\n", "compiler", __VERSION__, __cplusplus / 100 % 100);
  fmt::print("  {:<22} {}\n", "assertions", assertions);
  fmt::print("  {:<22} plans {}, wire {}\n", "protocol versions", plan::kBuilderVersion, comm::kWireVersion);
  for (const Interposer& interposer : interposers())
    fmt::print("  {:<22} {}\n", fmt::format("for {} programs", interposer.mpi),
               find_library(interposer).value_or("not built"));
}

}  // namespace

void add_info(CLI::App& app) {
  CLI::App* const info =
      app.add_subcommand("info", "Show the build, algorithms, transports, settings and plan selection");
  info->require_subcommand(0, 1);
  add_info_select(*info);
  add_info_env(*info);
  info->add_subcommand("algorithms", "List the algorithms and what they cost")->callback(list_algorithms);
  info->add_subcommand("transports", "List the transports, and which are available on this node")
      ->callback(print_transports);
  info->add_subcommand("build", "Show version, compiler and interposers")->callback(print_build);
  info->callback([info] {
    if (!info->get_subcommands().empty()) return;
    fmt::print("Build\n");
    print_build();
    fmt::print("\nAlgorithms\n");
    list_algorithms();
    fmt::print("\nTransports\n");
    print_transports();
    fmt::print("\nVariables\n");
    print_variables(false);
  });
}

}  // namespace hips::cli

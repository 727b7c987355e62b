#include "tools/hips/info.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <hips/hips.h>

#include "lib/base/config.hpp"
#include "lib/comm/process_info.hpp"
#include "lib/comm/transport_registry.hpp"
#include "lib/comm/wire.hpp"
#include "lib/plan/builder.hpp"
#include "tools/hips/beside.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/interposers.hpp"

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

/// What of a transport there is on this host, or why there is nothing.
std::string here(const comm::TransportEntry& entry, const comm::ProcessInfo& process, const Status& looked) {
  const auto ways = [](std::uint32_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  if (entry.name == "verbs") {
    if (process.rdma_rails > 0) return ways(process.rdma_rails, "port");
    return "none here: " + (process.rdma_problem.empty() ? looked.message : process.rdma_problem);
  }
  if (entry.name == "tcp") return ways(process.socket_rails, "interface");
  return "here";
}

void print_transports() {
  const Config config = load_process_config().config;
  comm::ProcessInfo process;
  const Status looked = comm::describe_networks(config, process);
  for (const comm::TransportEntry& entry : comm::transport_entries()) {
    fmt::print("  {:<6} {}; {}\n", entry.name, entry.description, here(entry, process, looked));
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
  fmt::print("  {:<22} plans {}, wire {}\n", "what ranks must share", plan::kBuilderVersion,
             comm::kWireVersion);
  for (const Interposer& interposer : interposers())
    fmt::print("  {:<22} {}\n", fmt::format("for {} programs", interposer.mpi),
               find_library(interposer).value_or("not built"));
}

}  // namespace

void add_info(CLI::App& app) {
  CLI::App* const info =
      app.add_subcommand("info", "What HiPS has, how it is set, what it decides by itself and why");
  info->require_subcommand(0, 1);
  add_info_select(*info);
  add_info_env(*info);
  info->add_subcommand("algorithms", "Every algorithm and what it costs")->callback(list_algorithms);
  info->add_subcommand("transports", "What can carry data, and which of it is here")
      ->callback(print_transports);
  info->add_subcommand("build", "Version, compiler, and what was built")->callback(print_build);
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

#include "tools/hips/commands/info_select_job.hpp"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/comm/communicator.hpp"
#include "lib/comm/setup/network_measurement.hpp"
#include "lib/cost/constants.hpp"
#include "lib/cost/select.hpp"
#include "tools/hips/common/output.hpp"
#include "tools/hips/common/settings.hpp"
#include "tools/hips/common/size_text.hpp"
#include "tools/hips/job/meeting.hpp"
#include "tools/hips/job/pmix_meeting.hpp"
#include "topology/formats/parse.hpp"

namespace hips::cli {
namespace {

constexpr const char* kName = "info select";

/// The plans of a job by its measured constants and by the defaults.
struct SelectedTwice {
  Topology topology;  ///< between the nodes
  cost::Constants constants;
  cost::Selection measured, by_default;
};

SelectedTwice select_twice(const cost::Constants& constants, const cost::Medium& medium) {
  Topology topology = parse_topology(constants.spec);
  auto measured = value_or_throw(cost::select(topology, medium, constants));
  auto by_default = value_or_throw(cost::select(topology, medium));
  return {std::move(topology), constants, std::move(measured), std::move(by_default)};
}

/// Latency of a hop and rate of the fastest NIC that a topology has by default.
struct DefaultLink {
  double hop_seconds = 0, bytes_per_s = 0;
};

DefaultLink default_link(const Topology& topology) {
  DefaultLink link;
  for (const Level& level : topology.levels) {
    if (level.kind == LevelKind::kNode || level.bandwidth_bytes_per_s <= link.bytes_per_s) continue;
    link = {level.latency_ns * 1e-9, level.bandwidth_bytes_per_s};
  }
  return link;
}

void print_text(const SelectedTwice& twice) {
  const cost::Constants& measured = twice.constants;
  const DefaultLink link = default_link(twice.topology);
  fmt::print("{} between {} nodes, if no algorithm or pattern is named:\n\n", twice.topology.name,
             twice.topology.num_servers());
  fmt::print("  {:<24}{:>12}{:>12}\n", "", "measured", "default");
  fmt::print("  {:<24}{:>9.2f} us{:>9.2f} us\n", "latency of a hop", measured.hop_seconds * 1e6,
             link.hop_seconds * 1e6);
  fmt::print("  {:<24}{:>9.2f} us{:>9.2f} us\n", "overhead of a message", measured.message_seconds * 1e6,
             twice.by_default.medium.message_seconds * 1e6);
  fmt::print("  {:<24}{:>7.3g} Gb/s{:>7.3g} Gb/s\n\n", "rate of a NIC", measured.bytes_per_s * 8e-9,
             link.bytes_per_s * 8e-9);
  fmt::print("  {:>8}  {:<24}{:>12}   {:<24}{:>12}\n", "size", "plan, as measured", "us", "plan by defaults",
             "us");
  for (const std::uint64_t bytes : sizes_of_tables()) {
    const auto& here = twice.measured.of(bytes);
    const auto& there = twice.by_default.of(bytes);
    fmt::print("  {:>8}  {:<24}{:>12.1f}   {:<24}{:>12.1f}\n", size_text(bytes), here.name,
               1e6 * cost::expected_seconds(cost::with_constants(twice.topology, measured),
                                            twice.measured.medium, here, bytes),
               there.name,
               1e6 * cost::expected_seconds(twice.topology, twice.by_default.medium, there, bytes));
  }
  fmt::print(
      "\nTimes are estimates of an allreduce with one rank on each node. Communicators between nodes measure the same when the"
      "\nfirst of them is made, and choose by it; HIPS_REPRODUCIBLE=run and any keep to the defaults.\n");
}

void print_json(const SelectedTwice& twice) {
  const cost::Constants& measured = twice.constants;
  const DefaultLink link = default_link(twice.topology);
  nlohmann::ordered_json json = {{"topology", twice.topology.spec},
                                 {"nodes", twice.topology.num_servers()},
                                 {"measured",
                                  {{"hop_seconds", measured.hop_seconds},
                                   {"message_seconds", measured.message_seconds},
                                   {"nic_bytes_per_s", measured.bytes_per_s}}},
                                 {"default",
                                  {{"hop_seconds", link.hop_seconds},
                                   {"message_seconds", twice.by_default.medium.message_seconds},
                                   {"nic_bytes_per_s", link.bytes_per_s}}},
                                 {"sizes", nlohmann::ordered_json::array()}};
  for (const std::uint64_t bytes : sizes_of_tables()) {
    const auto& here = twice.measured.of(bytes);
    const auto& there = twice.by_default.of(bytes);
    json["sizes"].push_back(
        {{"bytes", bytes},
         {"measured",
          {{"plan", here.name},
           {"seconds", cost::expected_seconds(cost::with_constants(twice.topology, measured),
                                              twice.measured.medium, here, bytes)}}},
         {"default",
          {{"plan", there.name},
           {"seconds", cost::expected_seconds(twice.topology, twice.by_default.medium, there, bytes)}}}});
  }
  write_stdout(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

struct MeasuredNetwork {
  std::optional<cost::Constants> constants;  ///< none if there is nothing between nodes to measure
  cost::Medium medium{};
};

Result<MeasuredNetwork> measure(comm::TcpRendezvous rendezvous, const JobSelectOptions& options) {
  auto bootstrap = comm::make_tcp_bootstrap(rendezvous);
  if (!bootstrap) return fail(bootstrap.error());
  comm::CommunicatorOptions made_as;
  made_as.topology = options.topology;
  made_as.name = "hips info select";
  auto communicator = comm::Communicator::create(**bootstrap, made_as);
  if (!communicator) return fail(communicator.error());
  const bool sockets = (*communicator)->backend().find("tcp") != std::string::npos;
  return MeasuredNetwork{comm::known_network(), sockets ? cost::Medium::kSockets : cost::Medium::kWires};
}

}  // namespace

std::optional<int> run_select_in_job(const JobSelectOptions& options) {
  const Launcher launcher = detect_launcher([](const char* name) { return std::getenv(name); });
  const Meeting meeting = value_or_throw(find_meeting(kName, settings(), process_environment(), launcher));
  if (meeting.how == Meeting::How::kAlone) return std::nullopt;
  if (meeting.how == Meeting::How::kByPmix) {
    std::vector<std::string> again{"info", "select"};
    again.insert(again.end(), options.topology_words.begin(), options.topology_words.end());
    if (options.transport) again.insert(again.end(), {"--transport", *options.transport});
    if (options.json) again.emplace_back("--json");
    meet_by_pmix(kName, again);
  }
  if (meeting.rendezvous.size < 2) return std::nullopt;
  // The library reads the transport where it reads everything else.
  if (options.transport) setenv("HIPS_TRANSPORT", options.transport->c_str(), 1);
  auto measured = measure(meeting.rendezvous, options);
  if (meeting.rendezvous.rank != 0) return measured ? 0 : 1;
  const auto [constants, medium] = value_or_throw(std::move(measured));
  if (!constants) {
    fmt::print(
        stderr,
        "hips: {}: nothing was measured: no two ranks are on different nodes, or an algorithm, a pattern or "
        "HIPS_REPRODUCIBLE decides; the defaults follow\n",
        kName);
    return std::nullopt;
  }
  const SelectedTwice twice = select_twice(*constants, medium);
  options.json ? print_json(twice) : print_text(twice);
  return 0;
}

}  // namespace hips::cli

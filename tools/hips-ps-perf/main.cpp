// hips-ps-perf: the times of a parameter server's operations.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>

#include <fmt/format.h>
#include <hips/hips.hpp>
#include <nlohmann/json.hpp>

#include "lib/base/os/printed.hpp"
#include "lib/base/result.hpp"
#include "tools/hips-allreduce-perf/launch.hpp"
#include "tools/hips-ps-perf/measure.hpp"
#include "tools/hips-ps-perf/options.hpp"

namespace hips::ps_perf {
namespace {

/// How long calls on rows that never move take, beside those on rows of the node.
void print_comparison(const PsPerfResult& result) {
  for (const Line& classic : result.lines) {
    const auto own = std::ranges::find_if(result.lines, [&](const Line& line) {
      return line.rows == "local" && line.operation == classic.operation && line.keys == classic.keys &&
             line.row_length == classic.row_length && line.outstanding == classic.outstanding;
    });
    if (classic.rows != "classic" || own == result.lines.end()) continue;
    fmt::print("# {} of {} key{} of {} float{}: classic takes {:.1f} times as long as after localize\n",
               classic.operation, classic.keys, classic.keys == 1 ? "" : "s", classic.row_length,
               classic.row_length == 1 ? "" : "s", classic.us_per_call / own->us_per_call);
  }
}

void print(const PsPerfResult& result, const PsPerfOptions& options, const Communicator& comm) {
  fmt::print("# {}\n", comm.describe());
  if (options.model_floats > 0)
    fmt::print(
        "# a model of {} floats, {} ranks; {}, each {} s, medians of {} rounds\n", options.model_floats,
        comm.size(),
        options.num_workers > 0 ? fmt::format("steps of the last {}", options.num_workers) : "steps of all",
        options.seconds, options.rounds);
  else
    fmt::print("# {} keys, {} ranks; {}, medians of {} rounds\n", options.num_keys, comm.size(),
               options.zipf > 0 ? fmt::format("steps of all ranks with Zipf's law, exponent {}", options.zipf)
                                : "rank 0 calls",
               options.rounds);
  if (options.zipf > 0 || options.model_floats > 0) {
    // Rank 0 has no peer of its own.
  } else if (result.peer < 0) {
    fmt::print("# all ranks are on one node: its rows only\n");
  } else if (result.ping_pong_us) {
    fmt::print("# blocking TCP ping-pong of 8 bytes between ranks 0 and {}: {:.1f} us\n", result.peer,
               *result.ping_pong_us);
  } else {
    fmt::print("# rank 0 reaches no address of rank {} by TCP: no ping-pong\n", result.peer);
  }
  fmt::print("#{:>9} {:>9} {:>7} {:>7} {:>6} {:>11} {:>10} {:>12} {:>9}\n", "operation", "rows", "floats",
             "keys", "calls", "us/call", "ping-pongs", "keys/s", "MB/s");
  for (const Line& line : result.lines) {
    const std::string ping_pongs = line.in_ping_pongs > 0 ? fmt::format("{:.2f}", line.in_ping_pongs) : "-";
    fmt::print("{:>10} {:>9} {:>7} {:>7} {:>6} {:>11.3f} {:>10} {:>12.0f} {:>9.1f}\n", line.operation,
               line.rows, line.row_length, line.keys, line.outstanding, line.us_per_call, ping_pongs,
               line.keys_per_s, line.mb_per_s);
  }
  print_comparison(result);
}

nlohmann::ordered_json json_of(const PsPerfResult& result, const Communicator& comm) {
  nlohmann::ordered_json root;
  root["describe"] = comm.describe();
  root["ranks"] = comm.size();
  if (result.ping_pong_us) root["ping_pong_us"] = *result.ping_pong_us;
  root["lines"] = nlohmann::ordered_json::array();
  for (const Line& line : result.lines)
    root["lines"].push_back({{"operation", line.operation},
                             {"rows", line.rows},
                             {"row_length", line.row_length},
                             {"keys", line.keys},
                             {"outstanding", line.outstanding},
                             {"us_per_call", line.us_per_call},
                             {"keys_per_s", line.keys_per_s},
                             {"mb_per_s", line.mb_per_s}});
  return root;
}

int run(perf::PerfLaunch& launch, const PsPerfOptions& options) {
  const hips_comm_config_t config = HIPS_COMM_CONFIG_INIT;
  hips_comm_t made = nullptr;
  throw_if_failed(launch.create(config, &made));
  Communicator comm = Communicator::adopt(made);
  const PsPerfResult result = measure(comm, options);
  if (comm.rank() != 0) return 0;
  print(result, options, comm);
  if (options.json_file.empty()) return 0;
  std::ofstream file(options.json_file);
  file << json_of(result, comm).dump(2) << '\n';
  file.flush();
  if (file.good()) return 0;
  fmt::print(stderr, "hips-ps-perf: cannot write {}\n", options.json_file);
  return 1;
}

}  // namespace
}  // namespace hips::ps_perf

int main(int argc, char** argv) {
  const auto parsed = hips::ps_perf::parse_options(argc, argv);
  if (parsed.message) {
    if (hips::perf::PerfLaunch::reports())
      std::fputs(parsed.message->c_str(), parsed.exit_status == 0 ? stdout : stderr);
    return parsed.exit_status;
  }
  try {
    const auto launch = hips::value_or_throw(hips::perf::PerfLaunch::detect(&argc, &argv));
    const int exit_status = hips::ps_perf::run(*launch, parsed.options);
    launch->finish();
    if (exit_status != 0) return exit_status;
    const hips::Status status = hips::printed();
    if (status.ok()) return 0;
    std::fprintf(stderr, "hips-ps-perf: %s\n", status.message.c_str());
  } catch (const hips::Error& error) {
    std::fprintf(stderr, "hips-ps-perf: %s\n", error.what());
    if (error.status().code == hips::Code::kInvalidArgument ||
        error.status().code == hips::Code::kUnsupported)
      return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hips-ps-perf: %s\n", error.what());
  }
  return 1;
}

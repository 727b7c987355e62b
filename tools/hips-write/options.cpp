#include "tools/hips-write/options.hpp"

#include <hips/hips.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "lib/base/config/config.hpp"
#include "tools/common/unknown_argument.hpp"

namespace hips::write {
namespace {

constexpr std::uint64_t kMaxIterationsWithPeak = 20000;
constexpr std::uint64_t kMaxModeratedBytes = 8192;
constexpr unsigned kLargestPower = 23;
constexpr std::uint32_t kDefaultModeration = 100;
/// The limit of the transport. Bare requests have that of the device.
constexpr std::uint32_t kMaxStripes = 8;

std::uint64_t bytes_of(const std::string& flag, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes == 0 || *bytes > std::uint64_t{1} << 30U)
    throw CLI::ValidationError(flag, "invalid size \"" + text + "\" (valid: 1 to 1G, such as 64, 64K or 8M)");
  return *bytes;
}

Output output_of(WriteProgram program, const std::string& text) {
  if (program == WriteProgram::kLatency && text == "latency") return Output::kLatency;
  if (program == WriteProgram::kBandwidth && text == "bandwidth") return Output::kBandwidth;
  if (program == WriteProgram::kBandwidth && text == "message_rate") return Output::kMessageRate;
  throw CLI::ValidationError(
      "--output", "invalid figure \"" + text + "\" (valid: " +
                      (program == WriteProgram::kLatency ? "latency)" : "bandwidth, message_rate)"));
}

void add_run_options(CLI::App& app, WriteOptions& options) {
  app.add_option("host", options.host, "host name or address of the server; without it this is the server")
      ->type_name("HOST");
  app.add_flag("-a,--all", options.all_sizes, "run all powers of two from 2 to 2^23 bytes");
  app.add_option("-d,--ib-dev", options.device, "RDMA device (default: the first one)")->type_name("DEV");
  app.add_option("-i,--ib-port", options.ib_port, "port of the device (default 1)")
      ->type_name("PORT")
      ->check(CLI::Range(1, 255));
  app.add_option("-x,--gid-index", options.gid_index,
                 "GID index (default: one of RoCE v2 over IPv4, if there is any)")
      ->type_name("N")
      ->check(CLI::Range(0, 255));
  app.add_option("-p,--port", options.port, "TCP port to listen on or connect to (default 18515)")
      ->type_name("PORT")
      ->check(CLI::Range(1, 65535));
  app.add_flag("-R,--rdma_cm", options.rdma_cm, "connect queue pairs with rdma_cm; not with --raw");
  app.add_option_function<std::string>(
         "-s,--size", [&options](const std::string& text) { options.bytes = bytes_of("-s", text); },
         options.program == WriteProgram::kLatency ? "bytes of a message (default 2)"
                                                   : "bytes of a message (default 65536)")
      ->type_name("SIZE");
  app.add_option("-n,--iters", options.iterations,
                 options.program == WriteProgram::kLatency
                     ? "exchanges, at least 5 (default 1000)"
                     : "messages of each queue pair, at least 5 (default 5000)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{5}, std::uint64_t{100'000'000}));
  app.add_option("-D,--duration", options.duration_s, "run for this time, whatever the number of messages")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("-f,--margin", options.margin_s,
                 "time ignored at the start and at the end of -D (default: a quarter of -D, rounded down)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("-I,--inline_size", options.inline_bytes, "largest message sent inline")
      ->type_name("BYTES")
      ->check(CLI::Range(0, 4096));
}

void add_connection_options(CLI::App& app, WriteOptions& options) {
  app.add_option("-m,--mtu", options.mtu, "MTU, 256 to 4096 (default: that of the port)")
      ->type_name("BYTES")
      ->check(CLI::IsMember({256, 512, 1024, 2048, 4096}));
  app.add_option("-S,--sl", options.service_level, "service level (default 0)")
      ->type_name("SL")
      ->check(CLI::Range(0, 15));
  app.add_option("-T,--tos,--tclass", options.traffic_class, "traffic class (default 0)")
      ->type_name("TOS")
      ->check(CLI::Range(0, 255));
  app.add_option("-u,--qp-timeout", options.timeout,
                 "a packet without acknowledgement is sent again after 4 usec * 2^N (default 14)")
      ->type_name("N")
      ->check(CLI::Range(1, 31));
  app.add_option("--retry_count", options.retry_count, "how often a packet is sent again (default 7)")
      ->type_name("N")
      ->check(CLI::Range(0, 7));
  app.add_option_function<std::string>(
         "-c,--connection",
         [](const std::string& text) {
           if (text != "RC")
             throw CLI::ValidationError("-c", "unsupported connection type \"" + text + "\" (valid: RC)");
         },
         "connection type; only RC is supported")
      ->type_name("RC");
}

void add_output_options(CLI::App& app, WriteOptions& options) {
  app.add_flag("-F,--CPU-freq", options.accepted,
               "ignored, for compatibility with perftest: times do not depend on the CPU's frequency");
  app.add_flag("--disable_pcie_relaxed", options.accepted,
               "ignored, for compatibility with perftest: relaxed ordering is never requested");
  app.add_flag("--out_json", options.json, "also save the report as JSON");
  app.add_option("--out_json_file", options.json_file, "file of --out_json (default perftest_out.json)")
      ->type_name("FILE");
  app.add_option_function<std::string>(
         "--output",
         [&options](const std::string& text) { options.output = output_of(options.program, text); },
         options.program == WriteProgram::kLatency ? "print only one figure: latency (the average)"
                                                   : "print only one figure: bandwidth or message_rate")
      ->type_name("FIGURE");
  app.add_flag("--write_with_imm", options.with_immediate,
               "with --raw: write with immediate data, as the notified put always does");
  app.add_flag("--data_validation", options.validate,
               "check every byte at the receiver after each run; exit with 1 if any is wrong");
  app.add_option("-r,--rx-depth", options.rx_depth,
                 "receives posted with --raw --write_with_imm (default 512)")
      ->type_name("N")
      ->check(CLI::Range(1, 16384));
  app.add_flag("--raw", options.raw, "post bare work requests, as perftest does, instead of notified puts");
  app.add_flag("--price", options.overhead,
               "time bare work requests and notified puts alternately; print the transport's overhead");
  app.add_option_function<int>(
         "--perftest-format",
         [&options](int version) { options.format = version == 6 ? Format::kNewer : Format::kDebian; },
         "layout of perftest 4.5 (4, default) or of perftest 6")
      ->type_name("4|6")
      ->check(CLI::IsMember({4, 6}));
}

void add_bandwidth(CLI::App& app, WriteOptions& options) {
  app.add_flag("-b,--bidirectional", options.bidirectional, "send in both directions");
  app.add_flag("--report-both", options.report_both, "with -b: also print each direction");
  app.add_flag("--report_gbits", options.report_gbits,
               "print Gb/sec (10^9 bits) instead of MB/sec (2^20 bytes)");
  app.add_option("-t,--tx-depth", options.tx_depth,
                 "outstanding messages of each queue pair, at most (default 128)")
      ->type_name("N")
      ->check(CLI::Range(1, 16384));
  app.add_option("-q,--qp", options.queue_pairs, "number of queue pairs, at most 8 without --raw (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_option("-Q,--cq-mod", options.cq_moderation,
                 "messages per completion (default 100; 1 for messages above 8192 bytes)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_option("-l,--post_list", options.post_list, "messages posted at once (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 64));
  app.add_flag("-N,--noPeak", options.no_peak, "do not compute the peak (default above 20000 messages)");
  app.add_flag("--perform_warm_up", options.warm_up, "send some messages before the timed ones");
}

void add_latency(CLI::App& app, WriteOptions& options) {
  app.add_flag("-C,--report-cycles", options.cycles, "print times in CPU cycles");
  app.add_flag("-H,--report-histogram", options.histogram, "print all times, sorted");
  app.add_flag("-U,--report-unsorted", options.unsorted, "print all times in the order of measurement");
}

void check_combinations(const WriteOptions& options) {
  if (options.raw && options.overhead)
    throw CLI::ValidationError("--price", "includes --raw; remove one of them");
  if ((options.raw || options.overhead) && options.rdma_cm)
    throw CLI::ValidationError("-R",
                               "is not supported with bare work requests; remove -R, or --raw and --price");
  if (!options.raw && options.queue_pairs > kMaxStripes)
    throw CLI::ValidationError(
        "-q", std::to_string(options.queue_pairs) + " queue pairs need --raw; notified puts use at most 8");
  if (options.report_both && !options.bidirectional) throw CLI::ValidationError("--report-both", "needs -b");
  if (options.overhead && options.bidirectional)
    throw CLI::ValidationError("--price", "measures one direction only; remove -b");
  if (options.overhead && options.json)
    throw CLI::ValidationError("--price", "is not written as JSON; remove --out_json");
  if (options.overhead && options.output != Output::kFull)
    throw CLI::ValidationError("--price", "prints several figures; remove --output");
  if (options.post_list > 1 && options.cq_moderation > 1 && options.cq_moderation != options.post_list)
    throw CLI::ValidationError("-Q", "must equal -l, because a list has one completion; change or remove it");
}

/// Computes the settings that depend on others.
void derive_settings(WriteOptions& options) {
  if (options.margin_s < 0) options.margin_s = static_cast<std::int32_t>(options.duration_s / 4);
  if (options.duration_s > 0 && 2 * static_cast<std::uint32_t>(options.margin_s) >= options.duration_s)
    throw CLI::ValidationError("-f", "two margins of " + std::to_string(options.margin_s) +
                                         " s leave nothing of the " + std::to_string(options.duration_s) +
                                         " s of -D; give a longer -D or a shorter -f");
  if (options.program == WriteProgram::kLatency) {
    options.tx_depth = options.cq_moderation = 1;
    return;
  }
  if (options.post_list > 1) {
    options.cq_moderation = options.post_list;
    options.tx_depth = std::max(options.tx_depth / options.post_list, 1U) * options.post_list;
    options.iterations = (options.iterations + options.post_list - 1) / options.post_list * options.post_list;
    return;
  }
  if (options.duration_s == 0)
    options.tx_depth =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(options.tx_depth, options.iterations));
  if (options.cq_moderation == 0)
    options.cq_moderation = !options.all_sizes && options.bytes > kMaxModeratedBytes ? 1 : kDefaultModeration;
  options.cq_moderation = std::min(options.cq_moderation, options.tx_depth);
}

}  // namespace

const char* WriteOptions::name() const {
  return program == WriteProgram::kBandwidth ? "hips-write-bw" : "hips-write-lat";
}

std::vector<std::uint64_t> WriteOptions::sizes() const {
  if (!all_sizes) return {bytes};
  std::vector<std::uint64_t> sizes;
  for (unsigned power = 1; power <= kLargestPower; ++power) sizes.push_back(std::uint64_t{1} << power);
  return sizes;
}

bool WriteOptions::wants_peak() const {
  return duration_s == 0 && !no_peak && iterations * queue_pairs <= kMaxIterationsWithPeak;
}

ParsedWriteOptions parse_options(WriteProgram program, int argc, const char* const* argv) {
  ParsedWriteOptions parsed;
  WriteOptions& options = parsed.options;
  options.program = program;
  const bool latency = program == WriteProgram::kLatency;
  if (latency) {
    options.bytes = 2;
    options.iterations = 1000;
  }
  const std::string name = options.name();
  CLI::App app{std::string("Times the notified put of HiPS over RDMA verbs between two processes, with the "
                           "flags and columns of ") +
                   (latency ? "ib_write_lat" : "ib_write_bw") + ".\nStart \"" + name +
                   "\" on one node, the server, and \"" + name + " HOST\" with the same flags on another.",
               name};
  app.footer(
      std::string(latency ? "Latencies are half a round trip. " : "Each queue pair sends all messages. ") +
      "Exit status: 0, success; 1, the other end was lost, data was\nwrong or the output could not be "
      "written; "
      "2, invalid flags, no such device, or different flags\nat the two ends. Each error is one line on "
      "stderr.");
  app.set_version_flag("-V,--version", [name] { return name + " " + hips_version(); });
  add_run_options(app, options);
  add_connection_options(app, options);
  add_output_options(app, options);
  if (latency) {
    add_latency(app, options);
  } else {
    add_bandwidth(app, options);
  }
  try {
    app.parse(argc, const_cast<char**>(argv));
    check_combinations(options);
    derive_settings(options);
  } catch (const CLI::ExtrasError&) {
    parsed.stop = true;
    parsed.exit_status = 2;
    parsed.message = name + ": " + cli::unknown_argument(app) + " (--help lists the options)\n";
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int status = app.exit(error, out, err);
    parsed.stop = true;
    parsed.exit_status = status == 0 ? 0 : 2;
    parsed.message = status == 0 ? out.str() : name + ": " + error.what() + "\n";
  }
  return parsed;
}

}  // namespace hips::write

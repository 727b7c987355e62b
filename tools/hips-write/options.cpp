#include "tools/hips-write/options.hpp"

#include <hips/hips.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "lib/base/config.hpp"

namespace hips::write {
namespace {

constexpr std::uint64_t kMostIterationsWithPeak = 20000;
constexpr std::uint64_t kMostModeratedBytes = 8192;
constexpr unsigned kLargestPower = 23;
constexpr std::uint32_t kDefaultModeration = 100;
/// The transport's limit; bare requests have that of the device.
constexpr std::uint32_t kMostStripes = 8;

std::uint64_t bytes_of(const std::string& flag, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes == 0 || *bytes > std::uint64_t{1} << 30U)
    throw CLI::ValidationError(flag, "\"" + text + "\" is no size; write 64, 64K or 8M, at most 1G");
  return *bytes;
}

Output output_of(Program program, const std::string& text) {
  if (program == Program::kLatency && text == "latency") return Output::kLatency;
  if (program == Program::kBandwidth && text == "bandwidth") return Output::kBandwidth;
  if (program == Program::kBandwidth && text == "message_rate") return Output::kMessageRate;
  throw CLI::ValidationError("--output",
                             "\"" + text + "\" is not printed by this program; write " +
                                 (program == Program::kLatency ? "latency" : "bandwidth or message_rate"));
}

void add_common(CLI::App& app, Options& options) {
  const CLI::Range byte(0, 255);
  app.add_option("host", options.host, "the server; without it this is the server")->type_name("HOST");
  app.add_flag("-a,--all", options.all_sizes, "run sizes from 2 till 2^23");
  app.add_option("-d,--ib-dev", options.device, "RDMA device (default: the first one)")->type_name("DEV");
  app.add_option("-i,--ib-port", options.ib_port, "port of the device (default 1)")
      ->type_name("PORT")
      ->check(CLI::Range(1, 255));
  app.add_option("-x,--gid-index", options.gid_index,
                 "GID index (default: RoCE v2 over IPv4 where there is one)")
      ->type_name("N")
      ->check(byte);
  app.add_option("-p,--port", options.port, "TCP port to listen on or connect to (default 18515)")
      ->type_name("PORT")
      ->check(CLI::Range(1, 65535));
  app.add_flag("-R,--rdma_cm", options.rdma_cm, "connect queue pairs with rdma_cm; not with --raw");
  app.add_option_function<std::string>(
         "-s,--size", [&options](const std::string& text) { options.bytes = bytes_of("-s", text); },
         options.program == Program::kLatency ? "bytes of a message (default 2)"
                                              : "bytes of a message (default 65536)")
      ->type_name("SIZE");
  app.add_option("-n,--iters", options.iterations,
                 options.program == Program::kLatency
                     ? "exchanges, at least 5 (default 1000)"
                     : "messages of each queue pair, at least 5 (default 5000)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{5}, std::uint64_t{100'000'000}));
  app.add_option("-D,--duration", options.duration_s, "run for so many seconds instead")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("-f,--margin", options.margin_s,
                 "seconds of -D left out at both ends (default: a quarter of -D, rounded down)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("-I,--inline_size", options.inline_bytes, "most bytes sent inline")
      ->type_name("BYTES")
      ->check(CLI::Range(0, 4096));
  app.add_option("-m,--mtu", options.mtu, "MTU: 256 to 4096 (default: that of the port)")
      ->type_name("BYTES")
      ->check(CLI::IsMember({256, 512, 1024, 2048, 4096}));
  app.add_option("-S,--sl", options.service_level, "service level (default 0)")
      ->type_name("SL")
      ->check(CLI::Range(0, 15));
  app.add_option("-T,--tos,--tclass", options.traffic_class, "traffic class (default 0)")
      ->type_name("TOS")
      ->check(byte);
  app.add_option("-u,--qp-timeout", options.timeout, "4 usec * 2^N until a packet is sent again (default 14)")
      ->type_name("N")
      ->check(CLI::Range(1, 31));
  app.add_option("--retry_count", options.retry_count, "times that a packet is sent again (default 7)")
      ->type_name("N")
      ->check(CLI::Range(0, 7));
  app.add_option_function<std::string>(
         "-c,--connection",
         [](const std::string& text) {
           if (text != "RC")
             throw CLI::ValidationError("-c", "\"" + text + "\" connections are not offered; only RC is");
         },
         "RC, the only kind")
      ->type_name("RC");
  app.add_flag("-F,--CPU-freq", options.accepted,
               "accepted for perftest's sake: times are not taken from the CPU's frequency");
  app.add_flag("--disable_pcie_relaxed", options.accepted,
               "accepted for perftest's sake: relaxed ordering is never asked for");
  app.add_flag("--out_json", options.json, "save the report in a JSON file, too");
  app.add_option("--out_json_file", options.json_file, "its name (default perftest_out.json)")
      ->type_name("FILE");
  app.add_option_function<std::string>(
         "--output",
         [&options](const std::string& text) { options.output = output_of(options.program, text); },
         options.program == Program::kLatency ? "print only one figure: latency (the average)"
                                              : "print only one figure: bandwidth or message_rate")
      ->type_name("FIGURE");
  app.add_flag("--write_with_imm", options.with_immediate,
               "--raw writes with immediate data, as the transport's notified put always does");
  app.add_flag("--data_validation", options.validate,
               "compare what lies at the receiver after each run, byte by byte; exit 1 where one is wrong");
  app.add_option("-r,--rx-depth", options.rx_depth,
                 "receives posted for --raw --write_with_imm (default 512)")
      ->type_name("N")
      ->check(CLI::Range(1, 16384));
  app.add_flag("--raw", options.raw, "post bare work requests, as perftest does, instead of notified puts");
  app.add_flag("--price", options.price, "run both alternately and print what the transport adds");
  app.add_option_function<int>(
         "--perftest-format",
         [&options](int version) { options.format = version == 6 ? Format::kNewer : Format::kDebian; },
         "layout of perftest 4 (Debian's 4.5, default) or 6")
      ->type_name("4|6")
      ->check(CLI::IsMember({4, 6}));
}

void add_bandwidth(CLI::App& app, Options& options) {
  app.add_flag("-b,--bidirectional", options.bidirectional, "both ends send");
  app.add_flag("--report-both", options.report_both, "with -b: print both directions, too");
  app.add_flag("--report_gbits", options.report_gbits, "Gb/sec (10^9 bits) instead of MB/sec (2^20 bytes)");
  app.add_option("-t,--tx-depth", options.tx_depth, "messages in flight on each queue pair (default 128)")
      ->type_name("N")
      ->check(CLI::Range(1, 16384));
  app.add_option("-q,--qp", options.queue_pairs, "queue pairs, at most 8 without --raw (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_option("-Q,--cq-mod", options.cq_moderation,
                 "messages for each completion (default 100; 1 above 8192 bytes)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_option("-l,--post_list", options.post_list, "post so many messages at one time")
      ->type_name("N")
      ->check(CLI::Range(1, 64));
  app.add_flag("-N,--noPeak", options.no_peak, "do not look for the peak (default above 20000 messages)");
  app.add_flag("--perform_warm_up", options.warm_up, "send some messages before those that are measured");
}

void add_latency(CLI::App& app, Options& options) {
  app.add_flag("-C,--report-cycles", options.cycles, "times in CPU cycles");
  app.add_flag("-H,--report-histogram", options.histogram, "print all results, sorted");
  app.add_flag("-U,--report-unsorted", options.unsorted, "print all results as they came");
}

/// What follows from what was given.
void settle(Options& options) {
  if (options.raw && options.price)
    throw CLI::ValidationError("--price", "it runs --raw by itself; leave one out");
  if ((options.raw || options.price) && options.rdma_cm)
    throw CLI::ValidationError(
        "-R", "bare work requests connect by exchanged addresses; leave out -R or --raw and --price");
  if (!options.raw && options.queue_pairs > kMostStripes)
    throw CLI::ValidationError("-q", std::to_string(options.queue_pairs) +
                                         " queue pairs without --raw; the transport has at most 8");
  if (options.report_both && !options.bidirectional)
    throw CLI::ValidationError("--report-both", "it needs -b");
  if (options.price && options.bidirectional)
    throw CLI::ValidationError("--price", "it goes one way; leave out -b");
  if (options.price && options.output != Output::kFull)
    throw CLI::ValidationError("--price", "it has several figures; leave out --output");
  if (options.margin_s < 0) options.margin_s = static_cast<std::int32_t>(options.duration_s / 4);
  if (options.duration_s > 0 && 2 * static_cast<std::uint32_t>(options.margin_s) >= options.duration_s)
    throw CLI::ValidationError("-f", "two margins of " + std::to_string(options.margin_s) +
                                         " s leave nothing of " + std::to_string(options.duration_s) +
                                         " s; give a longer -D");
  if (options.program == Program::kLatency) {
    options.tx_depth = options.cq_moderation = 1;
    return;
  }
  if (options.post_list > 1) {
    if (options.cq_moderation > 1 && options.cq_moderation != options.post_list)
      throw CLI::ValidationError("-Q", "a list has one completion; give -Q as -l, or leave it out");
    options.cq_moderation = options.post_list;
    options.tx_depth = std::max(options.tx_depth / options.post_list, 1U) * options.post_list;
    options.iterations = (options.iterations + options.post_list - 1) / options.post_list * options.post_list;
    return;
  }
  if (options.duration_s == 0)
    options.tx_depth =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(options.tx_depth, options.iterations));
  if (options.cq_moderation == 0)
    options.cq_moderation =
        !options.all_sizes && options.bytes > kMostModeratedBytes ? 1 : kDefaultModeration;
  options.cq_moderation = std::min(options.cq_moderation, options.tx_depth);
}

}  // namespace

const char* Options::name() const {
  return program == Program::kBandwidth ? "hips-write-bw" : "hips-write-lat";
}

std::vector<std::uint64_t> Options::sizes() const {
  if (!all_sizes) return {bytes};
  std::vector<std::uint64_t> sizes;
  for (unsigned power = 1; power <= kLargestPower; ++power) sizes.push_back(std::uint64_t{1} << power);
  return sizes;
}

bool Options::wants_peak() const {
  return duration_s == 0 && !no_peak && iterations * queue_pairs <= kMostIterationsWithPeak;
}

Parsed parse_options(Program program, int argc, const char* const* argv) {
  Parsed parsed;
  Options& options = parsed.options;
  options.program = program;
  const bool latency = program == Program::kLatency;
  if (latency) {
    options.bytes = 2;
    options.iterations = 1000;
  }
  const std::string name = options.name();
  CLI::App app{std::string("Times the notified put of HiPS over RDMA verbs between two processes, with the "
                           "flags and columns of ") +
                   (latency ? "ib_write_lat" : "ib_write_bw") + ".\nStart \"" + name +
                   "\" on one host and \"" + name + " HOST\" with the same flags on another.",
               name};
  app.footer(
      std::string(latency ? "Latencies are half a round trip. " : "Each queue pair sends all messages. ") +
      "Exit status: 0, all went well; 1, the other end was lost or data was\nwrong; 2, flags or devices are "
      "wrong, or "
      "both ends were not started alike. One line on stderr says what and why.");
  app.set_version_flag("-V,--version", [name] { return name + " " + hips_version(); });
  add_common(app, options);
  if (latency) {
    add_latency(app, options);
  } else {
    add_bandwidth(app, options);
  }
  try {
    app.parse(argc, const_cast<char**>(argv));
    settle(options);
  } catch (const CLI::ExtrasError&) {
    parsed.stop = true;
    parsed.exit_status = 2;
    const auto extras = app.remaining();
    parsed.message = name + ": " + (extras.empty() ? "an argument" : extras.front()) +
                     " is not offered here; see --help for the flags of perftest that are\n";
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

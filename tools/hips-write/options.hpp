#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hips::write {

/// Which of the two programs it is.
enum class Program : std::uint8_t { kBandwidth, kLatency };

/// Whose layout is printed.
enum class Format : std::uint8_t {
  kDebian,  ///< 4.5, as Debian 12 has it: MB/sec
  kNewer,   ///< 6: MiB/sec, and valid JSON
};

/// What is printed; the values of --output.
enum class Output : std::uint8_t { kFull, kBandwidth, kMessageRate, kLatency };

/// The command line; names and defaults of perftest.
struct Options {
  Program program = Program::kBandwidth;
  std::string host;  ///< of the server; empty: this is the server
  std::string device;
  std::int32_t ib_port = 1;
  std::int32_t gid_index = -1;  ///< -1: the best one
  std::int32_t port = 18515;
  bool rdma_cm = false;
  std::uint64_t bytes = 65536;
  bool all_sizes = false;
  std::uint64_t iterations = 5000;
  std::uint32_t duration_s = 0;  ///< above 0: instead of iterations
  std::int32_t margin_s = -1;    ///< -1: a quarter of the duration
  std::uint32_t tx_depth = 128;
  std::uint32_t cq_moderation = 0;  ///< 0: not given
  std::uint32_t post_list = 1;
  std::uint32_t rx_depth = 512;  ///< --raw --write_with_imm
  std::uint32_t queue_pairs = 1;
  std::int32_t inline_bytes = -1;  ///< -1: not given
  std::uint32_t mtu = 0;           ///< 0: that of the port
  std::uint32_t service_level = 0;
  std::uint32_t traffic_class = 0;
  std::uint32_t timeout = 14;
  std::uint32_t retry_count = 7;
  bool bidirectional = false;
  bool report_both = false;
  bool report_gbits = false;
  bool no_peak = false;
  bool warm_up = false;
  bool cycles = false;
  bool histogram = false, unsorted = false;
  bool json = false;
  std::string json_file = "perftest_out.json";
  Output output = Output::kFull;
  Format format = Format::kDebian;
  bool raw = false;    ///< bare work requests instead of the transport
  bool price = false;  ///< both, alternately
  bool with_immediate = false;
  bool validate = false;
  bool accepted = false;  ///< flags that change nothing

  [[nodiscard]] bool is_server() const { return host.empty(); }
  /// "hips-write-bw"
  [[nodiscard]] const char* name() const;
  /// What -a stands for, or the one size.
  [[nodiscard]] std::vector<std::uint64_t> sizes() const;
  /// The largest of sizes().
  [[nodiscard]] std::uint64_t most_bytes() const { return sizes().back(); }
  /// Peaks are looked for in so few messages only, as perftest does.
  [[nodiscard]] bool wants_peak() const;
};

/// What main() does after parsing.
struct Parsed {
  Options options;
  bool stop = false;    ///< --help, --version or a mistake
  int exit_status = 0;  ///< where it stops
  std::string message;  ///< what to print then: on stdout for status 0, else on stderr
};

/// Reads the command line and settles what follows from it: depths that more than the messages make no sense,
/// completion moderation off above 8 KiB. Pure.
Parsed parse_options(Program program, int argc, const char* const* argv);

}  // namespace hips::write

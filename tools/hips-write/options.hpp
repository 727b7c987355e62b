#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hips::write {

/// The two programs.
enum class WriteProgram : std::uint8_t { kBandwidth, kLatency };

/// The perftest version of the layout.
enum class Format : std::uint8_t {
  kDebian,  ///< 4.5, the version of Debian 12: MB/sec
  kNewer,   ///< 6: MiB/sec, and valid JSON
};

/// What is printed: the whole report, or one figure given with --output.
enum class Output : std::uint8_t { kFull, kBandwidth, kMessageRate, kLatency };

/// The command line, with the names and defaults of perftest.
struct WriteOptions {
  WriteProgram program = WriteProgram::kBandwidth;
  std::string host;  ///< of the server; empty: this is the server
  std::string device;
  std::int32_t ib_port = 1;
  std::int32_t gid_index = -1;  ///< -1: the best one
  std::int32_t port = 18515;
  bool rdma_cm = false;
  std::uint64_t bytes = 65536;
  bool all_sizes = false;
  std::uint64_t iterations = 5000;
  std::uint32_t duration_s = 0;  ///< above 0: replaces iterations
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
  bool raw = false;       ///< bare work requests instead of the transport
  bool overhead = false;  ///< --price: both, alternately
  bool with_immediate = false;
  bool validate = false;
  bool accepted = false;  ///< flags that change nothing

  [[nodiscard]] bool is_server() const { return host.empty(); }
  /// "hips-write-bw"
  [[nodiscard]] const char* name() const;
  /// The sizes of -a, or the one size.
  [[nodiscard]] std::vector<std::uint64_t> sizes() const;
  /// The largest of sizes().
  [[nodiscard]] std::uint64_t max_bytes() const { return sizes().back(); }
  /// Whether the peak is computed: as in perftest, only for few messages.
  [[nodiscard]] bool wants_peak() const;
};

/// The result of parsing.
struct ParsedWriteOptions {
  WriteOptions options;
  bool stop = false;    ///< after --help, --version or an error
  int exit_status = 0;  ///< if stop
  std::string message;  ///< if stop: for stdout if exit_status is 0, else for stderr
};

/// Parses the command line and derives settings from it: no depth above the number of messages, no completion
/// moderation above 8 KiB. Pure.
ParsedWriteOptions parse_options(WriteProgram program, int argc, const char* const* argv);

}  // namespace hips::write

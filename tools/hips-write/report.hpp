#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/hips-write/options.hpp"
#include "tools/hips-write/samples.hpp"

namespace hips::write {

/// What the banner says of a port.
struct PortWords {
  std::string device;
  std::string transport_type = "IB";   ///< "IB" or "IW"
  std::string link_type = "Ethernet";  ///< "Ethernet" or "IB"
  std::uint32_t mtu = 0;
  std::uint32_t gid_index = 0;
  std::uint32_t inline_bytes = 0;
};

/// One end of the connection for the address lines.
struct EndWords {
  struct Pair {
    std::uint32_t number = 0, packet_number = 0;
  };
  std::uint16_t lid = 0;
  std::vector<Pair> pairs;
  std::uint32_t key = 0;
  std::vector<std::uint64_t> addresses;  ///< of each pair's memory
  std::array<std::uint8_t, 16> gid{};
};

// perftest's lines, each with its newline, byte for byte those of the version that options.format names.
std::string waiting_text();
std::string rule_text();
std::string banner_text(const Options& options, const PortWords& port);
std::string address_text(const Options& options, std::string_view whose, const EndWords& end);
std::string header_text(const Options& options);
std::string row_text(const Options& options, const Bandwidth& row);
std::string row_text(const Options& options, const Latency& row);
std::string row_text(const Options& options, const LatencyOverTime& row);
/// --report-both: what each end sent.
std::string directions_text(const Options& options, const Bandwidth& mine, const Bandwidth& theirs);
/// All trips, for -H and -U.
std::string trips_text(const Options& options, const std::vector<double>& trips);

// --price
std::string price_header_text(const Options& options);
/// `raw` and `put`: averages in MB/sec or Gb/sec, or typical latencies.
std::string price_row_text(const Options& options, std::uint64_t bytes, std::uint64_t count, double raw,
                           double put);

// --out_json: perftest 4.5 writes its keys without quotes and a comma too many; 6 writes JSON.
std::string json_text(const Options& options, const PortWords& port, const Bandwidth& row);
std::string json_text(const Options& options, const PortWords& port, const Latency& row);
std::string json_text(const Options& options, const PortWords& port, const LatencyOverTime& row);

}  // namespace hips::write

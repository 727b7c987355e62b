#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/hips-write/options.hpp"
#include "tools/hips-write/samples.hpp"

namespace hips::write {

/// A port, as the banner prints it.
struct PortDescription {
  std::string device;
  std::string transport_type = "IB";   ///< "IB" or "IW"
  std::string link_type = "Ethernet";  ///< "Ethernet" or "IB"
  std::uint32_t mtu = 0;
  std::uint32_t gid_index = 0;
  std::uint32_t inline_bytes = 0;
};

/// One end of the connection, as the address lines print it.
struct EndDescription {
  struct Pair {
    std::uint32_t number = 0, packet_number = 0;
  };
  std::uint16_t lid = 0;
  std::vector<Pair> pairs;
  std::uint32_t key = 0;
  std::vector<std::uint64_t> addresses;  ///< of the memory of each pair
  std::array<std::uint8_t, 16> gid{};
};

// The lines of perftest, each with its newline, byte for byte as in the version options.format.
std::string waiting_text();
std::string rule_text();
std::string banner_text(const WriteOptions& options, const PortDescription& port);
std::string address_text(const WriteOptions& options, std::string_view whose, const EndDescription& end);
std::string header_text(const WriteOptions& options);
std::string row_text(const WriteOptions& options, const Bandwidth& row);
std::string row_text(const WriteOptions& options, const Latency& row);
std::string row_text(const WriteOptions& options, const LatencyOverTime& row);
/// --report-both: the messages sent by each end.
std::string directions_text(const WriteOptions& options, const Bandwidth& mine, const Bandwidth& theirs);
/// All round trips, for -H and -U.
std::string round_trips_text(const WriteOptions& options, const std::vector<double>& trips);

// --price
std::string overhead_header_text(const WriteOptions& options);
/// `raw` and `put`: averages in MB/sec or Gb/sec, or typical latencies.
std::string overhead_row_text(const WriteOptions& options, std::uint64_t bytes, std::uint64_t count,
                              double raw, double put);

// --out_json: perftest 4.5 writes keys without quotes and commas before closing braces; 6 writes JSON.
std::string json_text(const WriteOptions& options, const PortDescription& port, const Bandwidth& row);
std::string json_text(const WriteOptions& options, const PortDescription& port, const Latency& row);
std::string json_text(const WriteOptions& options, const PortDescription& port, const LatencyOverTime& row);

}  // namespace hips::write

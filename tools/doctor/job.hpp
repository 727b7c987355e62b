#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hips/status.hpp>
#include <nlohmann/json.hpp>

#include "lib/base/config.hpp"
#include "lib/base/result.hpp"
#include "tools/doctor/finding.hpp"
#include "tools/doctor/host.hpp"
#include "tools/doctor/rails.hpp"

namespace hips::doctor {

/// What the other ranks need to know of a rail.
struct RailReport {
  std::string name{};        ///< "rxe0:1"
  std::string address{};     ///< "10.0.0.1"
  std::string kind{};        ///< "RoCE v2"
  std::string interface {};  ///< "nic0"; empty where there is none
  std::int32_t mtu = 0;      ///< of the port, in bytes; 0: not known
  bool software = false;     ///< as Device::software
  friend bool operator==(const RailReport&, const RailReport&) = default;
};

/// What one rank of a job tells all others.
struct RankReport {
  Rank rank = 0;
  std::int32_t pid = 0;
  std::string host, host_key, version;
  std::string transport;  ///< HIPS_TRANSPORT
  std::string topology;   ///< HIPS_TOPO, or empty
  std::string wiring;     ///< of a file: path and topology, or why this rank cannot read it
  std::optional<std::uint64_t> locked_bytes;  ///< RLIMIT_MEMLOCK as it counts; nothing: unlimited
  std::string cpus;
  std::int32_t num_online_cpus = 0;
  std::vector<RailReport> rails;
  std::string no_rails;  ///< why there are none, or why the transport over them cannot be made
  Findings findings;
  nlohmann::ordered_json details;  ///< host_json()
};

/// Does a topology's spec name a file, which hosts may have in different versions?
bool names_file(std::string_view spec);

RankReport report_of(Rank rank, const Host& host, const Config& config, const RailChoice& rails);

/// To bytes and back.
///
/// Errors   kMismatch: the bytes are no report; another version of hips made them.
std::string encode(const RankReport& report);
Result<RankReport> decode_report(const std::string& text);

/// A way between two ranks: a NIC at each end, or shared memory (kNoRail at both).
struct Way {
  Rank a = 0, b = 0;  ///< a < b
  Rail a_rail = kNoRail, b_rail = kNoRail;
  [[nodiscard]] bool shm() const { return a_rail == kNoRail; }
  friend bool operator==(const Way&, const Way&) = default;
};

/// A way, and how it went at one of its ends.
struct Trial {
  Way way;
  Rank from = 0;          ///< whose view it is
  double rtt_us = 0;      ///< the least round trip of an empty message, where one was answered
  bool small_ok = false;  ///< empty messages were answered
  bool large_ok = false;  ///< kLargeBytes in one message, too
  std::string error;      ///< where one was not
  [[nodiscard]] bool ok() const { return small_ok && large_ok; }
};

/// The ways that HiPS would use: shared memory inside a host, unless HIPS_TRANSPORT=verbs; between hosts the
/// NICs that the topology joins, or without one those of equal number. `all_nics`: every NIC with every
/// other, too. Above 32 ranks only the first of each host stands for it.
///
/// Threads  pure; the same on all ranks.
std::vector<Way> ways_to_try(std::span<const RankReport> reports, bool all_nics);

/// The ways in rounds, in which each rank has one partner.
std::vector<std::vector<Way>> in_rounds(std::span<const Way> ways, Rank num_ranks);

/// Compares the ranks' versions, settings and NICs, and names the odd ones. Pure.
Findings compare_ranks(std::span<const RankReport> reports);

/// What the trials of all ranks say: who is reached by nobody, which ways are broken, and over which NICs.
///
/// `untried`: ways for which no time was left.
Findings judge_reach(std::span<const RankReport> reports, std::span<const Trial> trials, std::size_t untried);

/// Findings of all ranks as one list: equal ones once, with the ranks that have them; of what is in order
/// only rank 0's.
Findings merge_findings(std::span<const RankReport> reports);

/// Ranks, their NICs, and a matrix of round trips for each pair of NICs.
std::string job_text(std::span<const RankReport> reports, std::span<const Trial> trials);
nlohmann::ordered_json trials_json(std::span<const RankReport> reports, std::span<const Trial> trials);

}  // namespace hips::doctor

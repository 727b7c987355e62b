#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hips/status.hpp>
#include <nlohmann/json.hpp>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"
#include "tools/doctor/finding.hpp"
#include "tools/doctor/node.hpp"
#include "tools/doctor/rails.hpp"

namespace hips::doctor {

/// The facts about a rail that the other ranks need.
struct RailReport {
  std::string name{};        ///< "rxe0:1"
  std::string address{};     ///< "10.0.0.1"
  std::string kind{};        ///< "RoCE v2"
  std::string interface {};  ///< "nic0"; empty if there is none
  std::int32_t mtu = 0;      ///< of the port, in bytes; 0: unknown
  bool software = false;     ///< as Device::software
  friend bool operator==(const RailReport&, const RailReport&) = default;
};

/// The report of one rank, which all ranks exchange.
struct RankReport {
  Rank rank = 0;
  std::int32_t pid = 0;
  std::string host, node_key, version;
  std::string transport;  ///< HIPS_TRANSPORT
  std::string topology;   ///< HIPS_TOPO, or empty
  std::string wiring;     ///< for a topology file: path and topology, or why this rank cannot read it
  std::optional<std::uint64_t> locked_bytes;  ///< RLIMIT_MEMLOCK if it applies; nullopt: unlimited
  std::string cpus;
  std::int32_t num_online_cpus = 0;
  std::vector<RailReport> rails;
  std::string no_rails;  ///< why there are none, or why their transport cannot be created
  Findings findings;
  nlohmann::ordered_json details;  ///< node_json()
};

/// Does a topology's spec name a file, of which nodes may have different versions?
bool names_file(std::string_view spec);

RankReport report_of(Rank rank, const NodeFacts& node, const Config& config, const RailChoice& rails);

/// Serialise and parse a report.
///
/// Errors   kMismatch: malformed bytes, made by another version of hips.
std::string encode(const RankReport& report);
Result<RankReport> decode_report(const std::string& text);

/// A path between two ranks: a NIC at each end, or shared memory (kNoRail at both).
struct ProbePath {
  Rank a = 0, b = 0;  ///< a < b
  Rail a_rail = kNoRail, b_rail = kNoRail;
  [[nodiscard]] bool shm() const { return a_rail == kNoRail; }
  friend bool operator==(const ProbePath&, const ProbePath&) = default;
};

/// The result of probing a path, as seen from one end.
struct Trial {
  ProbePath path;
  Rank from = 0;          ///< the rank of this end
  double rtt_us = 0;      ///< shortest round trip of an empty message; 0 if none was answered
  bool small_ok = false;  ///< empty messages were answered
  bool large_ok = false;  ///< a message of kLargeBytes was answered, too
  std::string error;      ///< empty if ok()
  [[nodiscard]] bool ok() const { return small_ok && large_ok; }
};

/// The paths that HiPS would use: shared memory inside a node, unless HIPS_TRANSPORT=verbs; between nodes the
/// NICs that the topology connects, or without a topology those of equal number. `all_nics` adds every NIC
/// with every other. Above 32 ranks only the first rank of each node is tried between nodes.
///
/// Threads  pure; the same on all ranks.
std::vector<ProbePath> paths_to_try(std::span<const RankReport> reports, bool all_nics);

/// Splits paths into rounds in which each rank has one partner.
std::vector<std::vector<ProbePath>> in_rounds(std::span<const ProbePath> paths, Rank num_ranks);

/// Compares the versions, settings and NICs of ranks, and names the mismatching ones. Pure.
Findings compare_ranks(std::span<const RankReport> reports);

/// Judges the trials of all ranks: which ranks and NICs are unreachable, and which paths are broken.
///
/// `untried`: number of paths for which no time was left.
Findings judge_reach(std::span<const RankReport> reports, std::span<const Trial> trials, std::size_t untried);

/// Merges the findings of all ranks: equal ones are listed once with their ranks; of findings that are no
/// problem only rank 0's are kept.
Findings merge_findings(std::span<const RankReport> reports);

/// Text for people: ranks, their NICs, and a matrix of round trips for each pair of NICs.
std::string job_text(std::span<const RankReport> reports, std::span<const Trial> trials);
nlohmann::ordered_json trials_json(std::span<const RankReport> reports, std::span<const Trial> trials);

}  // namespace hips::doctor

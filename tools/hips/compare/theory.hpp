#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::compare {

/// The parameters of the table.
struct TheoryInput {
  std::int64_t radix = 3;                 ///< n: of every level, or side of a torus
  std::int64_t nics = 2;                  ///< K: levels of the BCube; dimensions of the torus
  std::optional<std::int64_t> servers{};  ///< N; default n^K
  std::int64_t leaders = 1;               ///< P: dedicated servers of the flat PS
  double bytes = 574'680'000;             ///< W: VGG-19 in float32
  double bytes_per_s = 12.5e9;            ///< B: of one NIC, one direction
  double hop_seconds = 1e-6;              ///< alpha: of one step
};

/// A scheme of the table.
struct TheoryRow {
  std::string scheme;
  std::int64_t steps = 0;
  std::string formula;           ///< of the bandwidth term
  double barrier_seconds = 0;    ///< bandwidth term: the sum over stages of the busiest NIC direction
  double bandwidth_seconds = 0;  ///< the same with overlapping stages: the busiest NIC direction
  bool at_most = false;          ///< `bandwidth_seconds` is an upper limit
  double gst_seconds = 0;        ///< steps * alpha + barrier_seconds
};

struct Theory {
  TheoryInput input;
  std::int64_t servers = 0;
  std::vector<TheoryRow> rows;
};

/// Computes the table.
///
/// Units    bytes, bytes/s, seconds.
/// Errors   kInvalidArgument: n below 2, K below 1, N other than n^K or beyond 2^31, P outside 1..N, sizes or
///          rates that are not positive; names the flag, the value and the valid values.
/// Source   HiPS (NetAI 2018), BML (NeurIPS 2018).
Result<Theory> make_theory(const TheoryInput& input);

/// The table, the gain of HiPS over the flat schemes, and the figures that the papers publish.
std::string theory_text(const Theory& theory);
/// The same as JSON; the footer of `hips compare --help` documents its keys.
std::string theory_json(const Theory& theory);

}  // namespace hips::compare

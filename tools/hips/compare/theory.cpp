#include "tools/hips/compare/theory.hpp"

#include <cmath>

#include <fmt/format.h>

namespace hips::compare {
namespace {

constexpr std::int64_t kMostServers = 2'147'483'647;

/// n^K; nullopt if it exceeds the largest rank number.
std::optional<std::int64_t> power(std::int64_t radix, std::int64_t levels) {
  std::int64_t product = 1;
  for (std::int64_t level = 0; level < levels; ++level) {
    if (product > kMostServers / radix) return std::nullopt;
    product *= radix;
  }
  return product;
}

/// Checks the parameters and returns N.
Result<std::int64_t> servers_of(const TheoryInput& input) {
  const auto refuse = [](std::string_view flag, auto value, std::string_view why) {
    return fail(Code::kInvalidArgument, fmt::format("{}: {} {}", flag, value, why));
  };
  if (input.radix < 2) return refuse("--radix", input.radix, "is too small; give 2 or more");
  if (input.nics < 1 || input.nics > 30) return refuse("--nics", input.nics, "is out of range [1, 30]");
  const auto servers = power(input.radix, input.nics);
  if (!servers) {
    return refuse(
        "--nics", input.nics,
        fmt::format("levels of radix {} have more than {} servers; give fewer", input.radix, kMostServers));
  }
  if (input.servers && *input.servers != *servers) {
    return refuse(
        "--servers", *input.servers,
        fmt::format("is not n^K; --radix {} and --nics {} give {}", input.radix, input.nics, *servers));
  }
  if (input.leaders < 1 || input.leaders > *servers)
    return refuse("--leaders", input.leaders, fmt::format("is out of range [1, {}]", *servers));
  if (!(input.bytes > 0)) return refuse("--bytes", input.bytes, "is too small; give 4 or more");
  if (!(input.bytes_per_s > 0))
    return refuse("--rate", input.bytes_per_s, "is too small; give 25Gb or 100Mb");
  if (!(input.hop_seconds >= 0) || !std::isfinite(input.hop_seconds))
    return refuse("--latency", input.hop_seconds * 1e6, "is no time; give 0 us or more");
  return *servers;
}

}  // namespace

Result<Theory> make_theory(const TheoryInput& input) {
  const auto servers = servers_of(input);
  if (!servers) return fail(servers.error());
  Theory theory{.input = input, .servers = *servers, .rows = {}};
  const auto N = static_cast<double>(*servers);
  const auto n = static_cast<double>(input.radix);
  const auto K = static_cast<double>(input.nics);
  const auto P = static_cast<double>(input.leaders);
  const double unit = input.bytes / input.bytes_per_s;  // W/B

  const auto add = [&](std::string scheme, std::int64_t steps, std::string formula, double barrier,
                       double overlapped, bool at_most = false) {
    theory.rows.push_back({.scheme = std::move(scheme),
                           .steps = steps,
                           .formula = std::move(formula),
                           .barrier_seconds = barrier * unit,
                           .bandwidth_seconds = overlapped * unit,
                           .at_most = at_most,
                           .gst_seconds = static_cast<double>(steps) * input.hop_seconds + barrier * unit});
  };
  const double one_nic = 2 * (N - 1) / N;
  const std::int64_t all_steps = 2 * (*servers - 1), levels = 2 * input.nics;
  const std::int64_t ring_steps = levels * (input.radix - 1);
  add(fmt::format("flat PS, {} dedicated server{}", input.leaders, input.leaders == 1 ? "" : "s"), 2,
      "2NW/(PB)", 2 * N / P, N / P);
  add("flat PS, one co-located server", 2, "2(N-1)W/B", 2 * (N - 1), N - 1);
  add("flat mesh (P2P)", 2, "2(N-1)W/(NB)", one_nic, one_nic);
  add("flat ring, 1 NIC", all_steps, "2(N-1)W/(NB)", one_nic, one_nic);
  add("flat ring, all K NICs", all_steps, "2(N-1)W/(NKB)", one_nic / K, one_nic / K);
  add("HiPS BCube, mesh per level", levels, "2(N-1)W/(NKB)", one_nic / K, one_nic / K);
  add("HiPS BCube, ring per level", ring_steps, "2(N-1)W/(NKB)", one_nic / K, one_nic / K);
  add("HiPS BCube, one PS leader per group", levels, "2(n-1)W/B", 2 * (n - 1), n - 1, true);
  // When pipelined, the first level's NIC is the busiest: it scatters and gathers all of W.
  add("HiPS BCube, one lane only", levels, "2(N-1)W/(NB)", one_nic, 2 * (1 - 1 / n));
  add("HiPS torus, one direction", ring_steps, "2(N-1)W/(NdB)", one_nic / K, one_nic / K);
  add("HiPS torus, both directions", ring_steps, "2(N-1)W/(N2dB)", one_nic / (2 * K), one_nic / (2 * K));
  // A message travels at most half the ring. On an even side the messages to the opposite server use both
  // directions.
  const bool even = input.radix % 2 == 0;
  const double detour = even ? n * n / (4 * (n - 1)) : (n + 1) / 4;
  add("mesh inside a torus ring", levels * (input.radix / 2),
      fmt::format("{} * 2(N-1)W/(N2dB)", even ? "n^2/(4(n-1))" : "(n+1)/4"), detour * one_nic / (2 * K),
      detour * one_nic / (2 * K));
  return theory;
}

}  // namespace hips::compare

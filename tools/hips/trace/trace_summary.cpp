#include "tools/hips/trace/trace_summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

namespace hips::trace {
namespace {

using Interval = std::pair<std::int64_t, std::int64_t>;

/// Length of the union of intervals.
std::int64_t covered_ns(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::int64_t covered = 0;
  std::int64_t end = INT64_MIN;
  for (const auto& [from, to] : intervals) {
    if (to <= end) continue;
    covered += to - std::max(from, end);
    end = to;
  }
  return covered;
}

/// The upper median, which is one of the values.
std::int64_t median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

RankUse rank_use(const RankTrace& trace) {
  std::map<TraceEvent::Kind, std::vector<Interval>> spans;
  for (const TraceEvent& event : trace.events) spans[event.kind].emplace_back(event.begin_ns, event.end_ns);
  RankUse use;
  use.rank = trace.rank;
  use.host = trace.host;
  use.operation_ns = covered_ns(spans[TraceEvent::Kind::kOperation]);
  use.wait_ns = covered_ns(spans[TraceEvent::Kind::kWait]);
  use.wire_ns = covered_ns(spans[TraceEvent::Kind::kWire]);
  use.reduce_ns = covered_ns(spans[TraceEvent::Kind::kReduce]);
  return use;
}

std::vector<LinkUse> link_uses(std::span<const RankTrace> traces) {
  struct Seen {
    std::int64_t bytes = 0;
    std::vector<Interval> busy;
  };
  std::map<std::tuple<Rank, Rank, Rail>, Seen> seen;
  for (const RankTrace& trace : traces) {
    for (const TraceEvent& event : trace.events) {
      if (event.kind != TraceEvent::Kind::kWire) continue;
      Seen& link = seen[{trace.rank, event.peer, event.rail}];
      link.bytes += event.bytes;
      link.busy.emplace_back(event.begin_ns, event.end_ns);
    }
  }
  std::vector<LinkUse> links;
  std::vector<std::int64_t> bytes;
  for (const auto& [key, link] : seen) {
    const auto& [sender, receiver, rail] = key;
    links.push_back({sender, receiver, rail, link.bytes, covered_ns(link.busy)});
    bytes.push_back(link.bytes);
  }
  const std::int64_t typical = median(bytes);
  std::stable_sort(links.begin(), links.end(), [&](const LinkUse& a, const LinkUse& b) {
    return std::tuple(2 * a.bytes < typical, a.bytes_per_s()) <
           std::tuple(2 * b.bytes < typical, b.bytes_per_s());
  });
  return links;
}

/// Fills in the delays of each rank; returns the number of operations that all ranks have entered.
std::int64_t compare_entries(std::span<const RankTrace> traces, bool wall_clock, std::vector<RankUse>& ranks,
                             std::int64_t& num_operations) {
  // Operation -> time at which each rank, by index in `traces`, entered it.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::map<std::size_t, std::int64_t>> entries;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const std::int64_t offset_ns = wall_clock ? traces[i].wall_offset_ns : 0;
    for (const TraceEvent& event : traces[i].events) {
      if (event.kind != TraceEvent::Kind::kOperation) continue;
      entries[{event.communicator, event.sequence}].emplace(i, event.begin_ns + offset_ns);
    }
  }
  num_operations = static_cast<std::int64_t>(entries.size());
  std::int64_t compared = 0;
  std::vector<std::vector<std::int64_t>> late(traces.size());
  for (const auto& [operation, by_rank] : entries) {
    if (by_rank.size() < traces.size() || traces.size() < 2) continue;
    ++compared;
    const auto earlier = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto [first, last] = std::minmax_element(by_rank.begin(), by_rank.end(), earlier);
    for (const auto& [i, entered_ns] : by_rank) late[i].push_back(entered_ns - first->second);
    if (last->second > first->second) ++ranks[last->first].times_last;
  }
  for (std::size_t i = 0; i < traces.size(); ++i) {
    ranks[i].median_late_ns = median(late[i]);
    if (!late[i].empty()) ranks[i].max_late_ns = *std::max_element(late[i].begin(), late[i].end());
  }
  return compared;
}

std::vector<ShardUse> shard_uses(std::span<const RankTrace> traces) {
  struct Seen {
    ShardUse use;
    std::set<std::uint64_t> groups;
    std::vector<std::int64_t> times_ns;
  };
  std::map<std::pair<std::uint64_t, std::int32_t>, Seen> seen;
  for (const RankTrace& trace : traces) {
    for (const TraceEvent& event : trace.events) {
      const bool is_update = event.kind == TraceEvent::Kind::kUpdate;
      if (!is_update && event.kind != TraceEvent::Kind::kValues) continue;
      Seen& shard = seen[{event.communicator, event.shard}];
      if (!is_update) {
        ++shard.use.num_chains;
        shard.use.num_nodes += event.members;
      } else if (event.members == 0) {
        ++shard.use.num_handed_back;
      } else {
        ++shard.use.num_applied;
        shard.groups.insert(event.sequence);
        shard.times_ns.push_back(event.end_ns - event.begin_ns);
        shard.use.longest_delay = std::max(shard.use.longest_delay, event.delay);
      }
    }
  }
  std::vector<ShardUse> uses;
  for (const auto& [key, shard] : seen) {
    ShardUse use = shard.use;
    std::tie(use.model, use.shard) = key;
    use.num_groups = static_cast<std::int64_t>(shard.groups.size());
    use.median_ns = median(shard.times_ns);
    uses.push_back(use);
  }
  return uses;
}

std::vector<std::string> notes_on(std::span<const RankTrace> traces, const std::set<std::string>& hosts) {
  std::vector<std::string> notes;
  std::set<Rank> present;
  Rank num_ranks = 0;
  for (const RankTrace& trace : traces) {
    present.insert(trace.rank);
    num_ranks = std::max(num_ranks, trace.num_ranks);
    if (trace.truncated) {
      notes.push_back(fmt::format("rank {} did not close its trace; its end may be missing", trace.rank));
    }
  }
  const auto num_missing =
      num_ranks - std::ranges::count_if(present, [&](Rank rank) { return rank >= 0 && rank < num_ranks; });
  constexpr std::size_t kMostShown = 16;
  std::vector<Rank> missing;
  for (Rank rank = 0; rank < num_ranks && missing.size() < kMostShown; ++rank)
    if (!present.contains(rank)) missing.push_back(rank);
  if (!missing.empty()) {
    const auto more = num_missing - static_cast<std::ptrdiff_t>(missing.size());
    notes.push_back(fmt::format("missing traces: rank {}{} of {}", fmt::join(missing, ", "),
                                more > 0 ? fmt::format(" and {} more", more) : "", num_ranks));
  }
  if (hosts.size() > 1) {
    notes.push_back(
        fmt::format("{} nodes: delays are only as exact as their wall clocks agree", hosts.size()));
  }
  return notes;
}

std::string rail_name(Rail rail) {
  return rail == kNoRail ? "local" : fmt::format("{}", rail);
}

double share(std::int64_t part_ns, std::int64_t whole_ns) {
  return whole_ns > 0 ? static_cast<double>(part_ns) / static_cast<double>(whole_ns) : 0;
}

double us(std::int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

nlohmann::json link_json(const LinkUse& link) {
  return {{"sender", link.sender}, {"receiver", link.receiver}, {"rail", link.rail},
          {"bytes", link.bytes},   {"busy_ns", link.busy_ns},   {"bytes_per_s", link.bytes_per_s()}};
}

nlohmann::json shard_json(const ShardUse& shard) {
  return {{"model", fmt::format("{:#x}", shard.model)},
          {"shard", shard.shard},
          {"num_applied", shard.num_applied},
          {"num_handed_back", shard.num_handed_back},
          {"num_groups", shard.num_groups},
          {"median_ns", shard.median_ns},
          {"longest_delay", shard.longest_delay},
          {"num_chains", shard.num_chains},
          {"num_nodes", shard.num_nodes}};
}

void put_shards(std::string& text, std::span<const ShardUse> shards) {
  if (shards.empty()) return;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "Updates of models that were scheduled, and the values that went back:\n\n");
  fmt::format_to(out, "{:>6}  {:>8}  {:>10}  {:>12}  {:>11}  {:>13}  {:>7}  {:>9}\n", "shard", "applied",
                 "in groups", "handed back", "median (ms)", "longest delay", "values", "to nodes");
  for (const ShardUse& shard : shards)
    fmt::format_to(out, "{:>6}  {:>8}  {:>10}  {:>12}  {:>11.3f}  {:>13}  {:>7}  {:>9}\n", shard.shard,
                   shard.num_applied, shard.num_groups, shard.num_handed_back, us(shard.median_ns) / 1e3,
                   shard.longest_delay, shard.num_chains, shard.num_nodes);
  fmt::format_to(out, "\n");
}

nlohmann::json rank_json(const RankUse& rank) {
  return {{"rank", rank.rank},
          {"host", rank.host},
          {"operation_ns", rank.operation_ns},
          {"wait_ns", rank.wait_ns},
          {"wire_ns", rank.wire_ns},
          {"reduce_ns", rank.reduce_ns},
          {"times_last", rank.times_last},
          {"median_late_ns", rank.median_late_ns},
          {"max_late_ns", rank.max_late_ns}};
}

}  // namespace

Summary summarize(std::span<const RankTrace> traces) {
  Summary summary;
  std::set<std::string> hosts;
  for (const RankTrace& trace : traces) {
    if (!trace.host.empty()) hosts.insert(trace.host);
    summary.ranks.push_back(rank_use(trace));
  }
  summary.links = link_uses(traces);
  if (!summary.links.empty()) summary.slowest_link = 0;
  summary.shards = shard_uses(traces);
  summary.num_compared_operations =
      compare_entries(traces, hosts.size() > 1, summary.ranks, summary.num_operations);
  if (summary.num_compared_operations > 0) {
    const auto latest =
        std::max_element(summary.ranks.begin(), summary.ranks.end(), [](const RankUse& a, const RankUse& b) {
          return std::tie(a.median_late_ns, a.times_last) < std::tie(b.median_late_ns, b.times_last);
        });
    // If all ranks enter at the same time, none is late.
    if (latest->max_late_ns > 0) {
      summary.latest_rank = static_cast<std::size_t>(std::distance(summary.ranks.begin(), latest));
    }
  }
  summary.notes = notes_on(traces, hosts);
  return summary;
}

std::string to_text(const Summary& summary) {
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{} ranks, {} operations\n\n", summary.ranks.size(), summary.num_operations);
  fmt::format_to(out, "{:>6}  {:>12}  {:>6}  {:>6}  {:>6}  {:>10}  {:>12}  {:>12}\n", "rank", "in ops (ms)",
                 "wait", "wire", "reduce", "last", "median late", "max late");
  fmt::format_to(out, "{:>6}  {:>12}  {:>6}  {:>6}  {:>6}  {:>10}  {:>12}  {:>12}\n", "", "", "(%)", "(%)",
                 "(%)", "(times)", "(us)", "(us)");
  for (const RankUse& rank : summary.ranks) {
    fmt::format_to(out, "{:>6}  {:>12.3f}  {:>6.1f}  {:>6.1f}  {:>6.1f}  {:>10}  {:>12.1f}  {:>12.1f}\n",
                   rank.rank, us(rank.operation_ns) / 1e3, 100 * share(rank.wait_ns, rank.operation_ns),
                   100 * share(rank.wire_ns, rank.operation_ns),
                   100 * share(rank.reduce_ns, rank.operation_ns), rank.times_last, us(rank.median_late_ns),
                   us(rank.max_late_ns));
  }
  fmt::format_to(out, "\nThe shares overlap, because a rank sends, reduces and waits at the same time.\n\n");

  constexpr std::size_t kMaxLinks = 10;
  const std::size_t shown = std::min(summary.links.size(), kMaxLinks);
  if (shown > 0) {
    fmt::format_to(out, "{:>6}  {:>6}  {:>6}  {:>14}  {:>12}  {:>8}\n", "from", "to", "rail", "bytes",
                   "busy (ms)", "GB/s");
    for (const LinkUse& link : std::span(summary.links).first(shown)) {
      fmt::format_to(out, "{:>6}  {:>6}  {:>6}  {:>14}  {:>12.3f}  {:>8.3f}\n", link.sender, link.receiver,
                     rail_name(link.rail), link.bytes, us(link.busy_ns) / 1e3, link.bytes_per_s() / 1e9);
    }
    if (shown < summary.links.size())
      fmt::format_to(out, "({} faster links)\n", summary.links.size() - shown);
    fmt::format_to(out, "\n");
  }

  put_shards(text, summary.shards);
  if (summary.slowest_link) {
    const LinkUse& link = summary.links[*summary.slowest_link];
    fmt::format_to(out, "slowest link: rank {} -> rank {}, rail {}: {:.3f} GB/s\n", link.sender,
                   link.receiver, rail_name(link.rail), link.bytes_per_s() / 1e9);
  } else {
    fmt::format_to(out, "slowest link: none, no data was sent\n");
  }
  if (summary.latest_rank) {
    const RankUse& rank = summary.ranks[*summary.latest_rank];
    fmt::format_to(
        out, "latest rank: {}: median delay of {:.1f} us after the first rank, last in {} of {} operations\n",
        rank.rank, us(rank.median_late_ns), rank.times_last, summary.num_compared_operations);
  } else {
    fmt::format_to(out, "latest rank: none\n");
  }
  for (const std::string& note : summary.notes) fmt::format_to(out, "note: {}\n", note);
  return text;
}

nlohmann::json to_json(const Summary& summary) {
  nlohmann::json json = {{"num_operations", summary.num_operations},
                         {"num_compared_operations", summary.num_compared_operations},
                         {"ranks", nlohmann::json::array()},
                         {"links", nlohmann::json::array()},
                         {"shards", nlohmann::json::array()},
                         {"slowest_link", nullptr},
                         {"latest_rank", nullptr},
                         {"notes", summary.notes}};
  for (const RankUse& rank : summary.ranks) json["ranks"].push_back(rank_json(rank));
  for (const LinkUse& link : summary.links) json["links"].push_back(link_json(link));
  for (const ShardUse& shard : summary.shards) json["shards"].push_back(shard_json(shard));
  if (summary.slowest_link) json["slowest_link"] = json["links"][*summary.slowest_link];
  if (summary.latest_rank) json["latest_rank"] = json["ranks"][*summary.latest_rank];
  return json;
}

}  // namespace hips::trace

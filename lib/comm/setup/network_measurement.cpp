#include "lib/comm/setup/network_measurement.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/reach.hpp"
#include "lib/comm/setup/team_maker.hpp"
#include "lib/cost/estimate.hpp"
#include "topology/formats/parse.hpp"
#include "topology/tiers.hpp"

namespace hips::comm {
namespace {

/// Elements for each block of a plan, so that every message has some; few, so that bytes hardly matter.
constexpr std::uint64_t kOfABlock = 2;
/// Plans are told apart in steps, each with more calls of fewer plans: those that took up to so many times as long as the fastest.
constexpr std::size_t kFewCalls = 3;
constexpr double kFarOff = 4, kOff = 2.5, kClose = 1.5, kCloser = 1.25;
constexpr std::size_t kMiddleRounds = 3;
/// Small calls are tried again for this long each, when ranks have learnt to wait.
constexpr double kAgainSeconds = 3e-3;
constexpr std::size_t kMostSmallCalls = 63, kCallsOfARound = 3, kLeastCallsOfRounds = 9;
/// Calls of the middle size by a plan that take longer in all are left out.
constexpr double kMostMiddleSeconds = 12e-3;
/// Plans of longer chains are left to the model: rings of many servers take long, and win for large vectors only.
constexpr double kMostHops = 64;
constexpr std::uint64_t kFirstBytes = 64U << 10U, kMostBytes = 4U << 20U;
/// Vectors longer than kLargeBytes are tried only where one of that size took less than kFastSeconds: on slower links it shows the
/// rate, and memory that is touched for the first time is dear.
constexpr std::uint64_t kLargeBytes = 1U << 20U;
constexpr double kFastSeconds = 0.5e-3;
/// A call this long ends the search for the rate.
constexpr double kLongSeconds = 10e-3;
/// Calls after one this short cost little, and are taken several times.
constexpr double kShortSeconds = 1e-3;
/// Calls so many times as long as small ones take as long as the links do.
constexpr double kManySmall = 3;
/// Two sizes that give rates closer than this show the rate, and not what buffers on the path hold.
constexpr double kSameRate = 1.25;
constexpr std::int64_t kMostWaitNs = 5'000'000'000;

class KnownNetwork {
 public:
  std::optional<cost::Constants> get() {
    const std::lock_guard lock(mutex_);
    return constants_;
  }
  void set(const cost::Constants& constants) {
    const std::lock_guard lock(mutex_);
    if (!constants_ || constants.num_nodes >= constants_->num_nodes) constants_ = constants;
  }
  static KnownNetwork& instance() {
    static KnownNetwork known;
    return known;
  }

 private:
  std::mutex mutex_;
  std::optional<cost::Constants> constants_;
};

/// The first ranks of the nodes, in the order of the nodes.
std::vector<Rank> first_ranks(const std::vector<ProcessInfo>& processes) {
  std::vector<Rank> ranks;
  std::map<std::string_view, bool> seen;
  for (std::size_t r = 0; r < processes.size(); ++r)
    if (seen.emplace(processes[r].node_key, true).second) ranks.push_back(static_cast<Rank>(r));
  return ranks;
}

/// The topology between the nodes; none if the ranks of a server are on several nodes, or the nodes are not the servers.
std::optional<Topology> topology_between(const Design& design, std::size_t nodes) {
  if (design.wiring) return design.wiring->nodes;
  Topology topology = design.topology_named && design.topology.ranks_per_server > 1
                          ? topology::without_node_level(design.topology)
                      : design.topology_named ? design.topology
                                              : parse_topology(fmt::format("switch:{}", nodes));
  if (static_cast<std::size_t>(topology.num_servers()) != nodes) return std::nullopt;
  return topology;
}

/// The calls of one of the first ranks.
class TimedTeam {
 public:
  TimedTeam(const MeasurementOrder& order, std::vector<Rank> members, Rank self, Topology topology)
      : members_(std::move(members)), self_(self), topology_(std::move(topology)) {
    for (const Rank member : members_) {
      processes_.push_back(order.processes[static_cast<std::size_t>(member)]);
      if (order.design.wiring) nics_.push_back(order.design.wiring->nics[static_cast<std::size_t>(member)]);
    }
  }

  Result<Outbound> make(const MeasurementOrder& order) {
    auto candidates = cost::candidates(topology_, true);
    if (!candidates) return fail(candidates.error());
    candidates_ = *std::move(candidates);
    std::vector<Design::Choice> choices;
    for (const cost::Candidate& candidate : candidates_)
      choices.push_back(
          {.shape = std::make_shared<PlanShape>(candidate.builder->shape()),
           .program = [builder = candidate.builder.get(), rank = self_] { return builder->program(rank); }});
    // The trace of this process is named by its rank in the communicator, not in this team.
    const Rank rank = members_[static_cast<std::size_t>(self_)];
    auto engine =
        process_engine({.clock = order.clock,
                        .spin = spin_limits(order.processes, order.processes[static_cast<std::size_t>(rank)]),
                        .rank = rank,
                        .size = static_cast<Rank>(order.processes.size()),
                        .trace_dir = order.config.trace_dir});
    if (!engine) return fail(engine.error());
    auto made = make_team({.config = order.config,
                           .clock = order.clock,
                           .rank = self_,
                           .id = ~order.id,
                           .topology = topology_,
                           .processes = processes_,
                           .nics = order.design.wiring ? &nics_ : nullptr,
                           .choices = choices,
                           .on_error = {},
                           .traced = false});
    if (!made) return fail(made.error());
    made_ = *std::move(made);
    return to_members(made_.team->offer());
  }
  Result<Outbound> allocate(const Inbound& offers) {
    auto addresses = made_.team->allocate(of_members(offers));
    return addresses ? to_members(*std::move(addresses)) : std::move(addresses);
  }
  Status connect(const Inbound& addresses) { return made_.team->connect(of_members(addresses)); }

  Result<cost::Constants> measure() {
    deadline_ns_ = clock().now_ns() + kMostWaitNs;
    std::int64_t blocks = 1;
    for (const cost::Candidate& candidate : candidates_)
      blocks = std::max<std::int64_t>(blocks, candidate.builder->shape().blocks.num_blocks);
    const std::uint64_t small =
        std::min<std::uint64_t>(kOfABlock * static_cast<std::uint64_t>(blocks), kMostBytes / sizeof(float));
    std::vector<cost::SmallCall> calls(candidates_.size());
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      calls[i] = cost::small_call(topology_, candidates_[i]);
      if (i > 0 && calls[i].num_hops > kMostHops) continue;
      auto seconds = seconds_of(i, small, 1, 1);
      if (!seconds) return fail(seconds.error());
      calls[i].seconds = *seconds;
      if (calls[i].seconds < calls[quick_].seconds) quick_ = i;
    }
    if (Status status = try_again(small, calls, kFarOff, kFewCalls); !status.ok())
      return fail(std::move(status));
    auto rate = rate_above(calls.front().seconds);
    if (!rate) return fail(rate.error());
    const auto most_calls = static_cast<std::size_t>(kAgainSeconds / calls[quick_].seconds);
    if (most_calls > kFewCalls) {
      Status status = try_again(small, calls, kClose, std::min(most_calls, kMostSmallCalls));
      if (!status.ok()) return fail(std::move(status));
    }
    log_calls(calls);
    std::vector<cost::SmallCall> corrected = calls;
    if (members_.size() == 2) cost::correct_between_two(corrected);
    std::vector<cost::TriedTimes> tried;
    for (const cost::SmallCall& one : corrected) tried.push_back({.small_seconds = one.seconds});
    std::erase_if(calls, [](const cost::SmallCall& one) { return one.seconds <= 0; });
    cost::Constants constants = cost::fit_small(calls);
    constants.bytes_per_s = *rate;
    constants.spec = topology_.spec;
    constants.tried = std::move(tried);
    if (Status status = try_middle(constants); !status.ok()) return fail(std::move(status));
    return constants;
  }

 private:
  /// A disturbance seldom lasts for all rounds, so the least time of a plan counts.
  static std::size_t rounds_of(std::size_t num_calls) { return num_calls >= kLeastCallsOfRounds ? 3 : 1; }

  /// Tries small calls of the plans that took up to `factor` times as long as the fastest again, so many of them. Of the others
  /// one more in case that something else took the first one's time.
  Status try_again(std::uint64_t small, std::vector<cost::SmallCall>& calls, double factor,
                   std::size_t num_calls) {
    const double most = factor * calls[quick_].seconds;
    const std::vector<cost::SmallCall> before = calls;
    const std::size_t num_rounds = rounds_of(num_calls);
    for (std::size_t round = 0; round < num_rounds; ++round) {
      for (std::size_t i = 0; i < calls.size(); ++i) {
        if (before[i].seconds <= 0) continue;
        // Between two nodes an exchange is the fastest plan, even if something disturbed its first calls.
        const bool is_exchange = members_.size() == 2 && before[i].num_hops <= 1 &&
                                 before[i].num_messages <= 1 && before[i].seconds <= kAgainSeconds;
        if (before[i].seconds > most && factor < kFarOff && !is_exchange) continue;
        const bool is_far = before[i].seconds > most && !(is_exchange && factor < kFarOff);
        // What is lost and sent again takes this long once; where every call does, that is the network.
        if (is_far && before[i].seconds > kLongSeconds && before[quick_].seconds > kShortSeconds) continue;
        auto seconds = is_far ? seconds_of(i, small, 0, 1) : seconds_of(i, small, 1, num_calls / num_rounds);
        if (!seconds) return seconds.error();
        calls[i].seconds = is_far || round > 0 ? std::min(calls[i].seconds, *seconds) : *seconds;
      }
    }
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (calls[i].seconds > 0 && calls[i].seconds < calls[quick_].seconds) quick_ = i;
    return Status::success();
  }

  void log_calls(const std::vector<cost::SmallCall>& calls) const {
    if (self_ != 0) return;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].seconds <= 0) continue;
      log::debug(log::Subsystem::kComm, "measured: {:.4g} us for a small call by {} ({} hops, {} messages)",
                 calls[i].seconds * 1e6, candidates_[i].builder->shape().description, calls[i].num_hops,
                 calls[i].num_messages);
    }
  }

  /// Tries calls of the middle size by the plans that may be the fastest there.
  Status try_middle(cost::Constants& constants) {
    constexpr std::uint64_t kCount = cost::kMiddleBytes / sizeof(float);
    constexpr double kNever = std::numeric_limits<double>::infinity();
    const Topology measured = cost::with_constants(topology_, constants);
    std::vector<double> seconds(candidates_.size(), kNever);
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      candidates_[i].tried = constants.tried[i];
      if (constants.tried[i].small_seconds > 0)
        seconds[i] = cost::expected_seconds(measured, {}, candidates_[i], cost::kMiddleBytes);
    }
    const std::vector<double> expected = seconds;
    double factor = kOff;
    // One call of each plan, then rounds of several of those that are close. A disturbance seldom lasts for all rounds, so from then
    // on the least time of a plan counts.
    for (std::size_t round = 0; round <= kMiddleRounds; ++round) {
      const std::size_t num_calls = round == 0 ? 1 : kCallsOfARound;
      const double least = *std::ranges::min_element(seconds);
      const std::size_t calls_in_all = round <= 1 ? num_calls : kMiddleRounds * kCallsOfARound;
      if (static_cast<double>(calls_in_all) * least > kMostMiddleSeconds) break;
      for (double& one : seconds)
        if (one > factor * least) one = kNever;
      if (round > 1 && std::ranges::count(seconds, kNever) + 1 == std::ssize(seconds)) break;
      for (std::size_t i = 0; i < candidates_.size(); ++i) {
        if (seconds[i] == kNever) continue;
        auto tried = seconds_of(i, kCount, round == 0 ? 1 : 0, num_calls);
        if (tried && round == 0 && *tried > kClose * expected[i] && expected[i] < kLongSeconds) {
          auto again = seconds_of(i, kCount, 0, 1);
          if (!again || *again < *tried) tried = again;
        }
        if (!tried) return tried.error();
        seconds[i] = round > 1 ? std::min(seconds[i], *tried) : *tried;
        constants.tried[i].middle_seconds = seconds[i];
      }
      factor = round <= 1 ? kClose : kCloser;
    }
    return Status::success();
  }

  [[nodiscard]] Clock& clock() const { return made_.engine->engine.clock(); }

  // The team numbers its members, and the exchange all ranks.
  [[nodiscard]] Outbound to_members(Outbound outgoing) const {
    for (PeerBlob& one : outgoing.to_peers) one.peer = members_[static_cast<std::size_t>(one.peer)];
    return outgoing;
  }
  [[nodiscard]] Inbound of_members(const Inbound& all) const {
    Inbound incoming;
    for (const Rank member : members_)
      incoming.from_all.push_back(all.from_all[static_cast<std::size_t>(member)]);
    for (const PeerBlob& one : all.from_peers)
      incoming.from_peers.push_back(
          {static_cast<Rank>(std::ranges::find(members_, one.peer) - members_.begin()), one.blob});
    return incoming;
  }

  Status call(std::size_t candidate, std::uint64_t count, void* vector, DataType type) {
    auto* const bytes = static_cast<std::byte*>(vector);
    const auto operation = made_.team->start({.program = static_cast<std::int32_t>(candidate),
                                              .in = bytes,
                                              .out = bytes,
                                              .count = count,
                                              .type = type,
                                              .op = ReduceOp::kSum});
    Status status = made_.engine->engine.wait(*operation, {.deadline_ns = deadline_ns_});
    if (operation->done()) return operation->status();
    made_.team->fail(status);
    return status;
  }

  /// The median time of some calls, after some that do not count; the mean of all ranks.
  Result<double> seconds_of(std::size_t candidate, std::uint64_t count, int uncounted, std::size_t calls) {
    // Grown as calls do: each page that is touched for the first time costs as much as a small call.
    if (vector_.size() < count) vector_ = std::vector<float>(count);
    std::vector<std::int64_t> times;
    for (int i = -uncounted; times.size() < calls; ++i) {
      const std::int64_t begin_ns = clock().now_ns();
      if (Status status = call(candidate, count, vector_.data(), DataType::kFloat32); !status.ok())
        return fail(std::move(status));
      if (i >= 0) times.push_back(std::max<std::int64_t>(1, clock().now_ns() - begin_ns));
    }
    std::ranges::sort(times);
    agreed_ = static_cast<double>(times[times.size() / 2]) / 1e9;
    if (Status status = call(quick_, 1, &agreed_, DataType::kFloat64); !status.ok())
      return fail(std::move(status));
    return agreed_ / static_cast<double>(members_.size());
  }

  /// The rate of a NIC, in bytes/s, by vectors of growing size and the plan that uses all NICs. The first call of each size fills
  /// what buffers on the path and limits of the rate take at once.
  Result<double> rate_above(double small_seconds) {
    double rate = 0, seconds_before = small_seconds;
    for (std::uint64_t bytes = kFirstBytes; bytes <= kMostBytes; bytes *= 4) {
      auto seconds = seconds_of(0, bytes / sizeof(float), 1, seconds_before < kShortSeconds ? kFewCalls : 1);
      if (!seconds) return seconds;
      // Four times the bytes take four times as long. What took far longer was disturbed: something was lost, and sent again.
      if (bytes > kFirstBytes && *seconds > kFarOff * kSameRate * seconds_before) {
        auto again = seconds_of(0, bytes / sizeof(float), 0, 1);
        if (!again || *again < *seconds) seconds = again;
        if (!seconds) return seconds;
      }
      seconds_before = *seconds;
      const cost::Volume volume{.count = static_cast<std::int64_t>(bytes / sizeof(float)),
                                .element_bytes = sizeof(float)};
      const auto& first = candidates_.front();
      const double at_its_rate =
          first.uplinks_to_nics *
          cost::estimate(topology_, first.builder->shape(), first.programs, volume).bandwidth_seconds;
      // Messages of long calls are handled while others are on the links.
      const bool is_long = *seconds > kManySmall * small_seconds;
      const double on_links = is_long ? *seconds : std::max(*seconds - small_seconds, *seconds / 10);
      const double before = std::exchange(rate, fastest_rate() * at_its_rate / on_links);
      const bool has_fallen = before > kSameRate * rate, has_risen = rate > kSameRate * before;
      if (*seconds - small_seconds > kLongSeconds || (is_long && !has_fallen && !has_risen)) break;
      if (bytes >= kLargeBytes && *seconds > kFastSeconds && !has_fallen) break;
    }
    return rate;
  }

  /// Of the NICs; levels above them may be faster.
  [[nodiscard]] double fastest_rate() const {
    const std::vector<double> nics = topology::rail_bandwidths(topology_);
    return nics.empty() ? 0 : std::ranges::max(nics);
  }

  std::vector<Rank> members_;
  Rank self_;
  Topology topology_;
  std::vector<ProcessInfo> processes_;
  std::vector<std::vector<std::uint32_t>> nics_;
  std::vector<cost::Candidate> candidates_;
  std::vector<float> vector_;
  double agreed_ = 0;      ///< a member: after a deadline the call may still use it
  std::size_t quick_ = 0;  ///< the candidate that was the fastest so far
  MadeTeam made_;
  std::int64_t deadline_ns_ = 0;
};

/// An exchange of a step's outcome: what all ranks pass, or none if any rank failed.
Result<std::optional<Inbound>> exchange_outcomes(Bootstrap& bootstrap, Result<Outbound> mine) {
  const std::byte succeeds{mine ? std::uint8_t{1} : std::uint8_t{0}};
  Outbound outgoing = mine ? *std::move(mine) : Outbound();
  outgoing.to_all.insert(outgoing.to_all.begin(), succeeds);
  auto all = bootstrap.exchange(outgoing);
  if (!all) return fail(all.error());
  bool good = true;
  for (Blob& one : all->from_all) {
    good = good && !one.empty() && one.front() != std::byte{0};
    if (!one.empty()) one.erase(one.begin());
  }
  if (!good) return std::optional<Inbound>();
  return std::optional(*std::move(all));
}

}  // namespace

std::optional<cost::Constants> known_network() {
  return KnownNetwork::instance().get();
}

void remember_network(const cost::Constants& constants) {
  KnownNetwork::instance().set(constants);
}

bool is_enough_for(const std::vector<ProcessInfo>& processes, const cost::Constants& measured) {
  constexpr std::size_t kFarMore = 4;
  const std::size_t num_nodes = first_ranks(processes).size(), known = measured.num_nodes;
  return known <= 2 ? num_nodes <= 2 : num_nodes < kFarMore * known;
}

bool wants_measurement(const Design& design, const Config& config,
                       const std::vector<ProcessInfo>& processes) {
  const bool is_left =
      design.choices.empty() || std::ranges::any_of(design.choices, &Design::Choice::automatic);
  return is_left && config.reproducible == Reproducible::kOff && !all_on_one_node(processes) &&
         topology_between(design, first_ranks(processes).size()).has_value();
}

Result<Measurement> measure_network(Bootstrap& bootstrap, const MeasurementOrder& order) {
  std::vector<Rank> members = first_ranks(order.processes);
  const auto place = std::ranges::find(members, bootstrap.rank());
  std::shared_ptr<TimedTeam> team;
  if (place != members.end()) {
    auto topology = topology_between(order.design, members.size());
    team = std::make_shared<TimedTeam>(order, members, static_cast<Rank>(place - members.begin()),
                                       *std::move(topology));
  }
  auto offers = exchange_outcomes(bootstrap, team ? team->make(order) : Result<Outbound>(Outbound()));
  if (!offers || !*offers) return offers ? Result<Measurement>(Measurement()) : fail(offers.error());
  auto addresses =
      exchange_outcomes(bootstrap, team ? team->allocate(**offers) : Result<Outbound>(Outbound()));
  if (!addresses || !*addresses)
    return addresses ? Result<Measurement>(Measurement()) : fail(addresses.error());
  // Ranks that could connect do not wait for those that could not.
  Status connected = team ? team->connect(**addresses) : Status::success();
  auto joined = exchange_outcomes(
      bootstrap, connected.ok() ? Result<Outbound>(Outbound()) : Result<Outbound>(fail(connected)));
  if (!joined || !*joined) return joined ? Result<Measurement>(Measurement()) : fail(joined.error());
  Result<Outbound> mine{Outbound()};
  if (team) {
    auto measured = team->measure();
    ByteWriter writer;
    if (measured) put_constants(writer, *measured);
    mine =
        measured ? Result<Outbound>(Outbound{writer.take(), {}}) : Result<Outbound>(fail(measured.error()));
  }
  auto all = exchange_outcomes(bootstrap, mine);
  if (!all || !*all) return all ? Result<Measurement>(Measurement()) : fail(all.error());
  ByteReader reader((*all)->from_all[static_cast<std::size_t>(members.front())]);
  cost::Constants constants = get_constants(reader);
  if (!reader.ok() || !(constants.bytes_per_s > 0)) return Measurement();
  constants.num_nodes = static_cast<std::uint32_t>(members.size());
  return Measurement{.constants = constants, .connections = std::move(team)};
}

}  // namespace hips::comm

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "lib/base/wait/clock.hpp"
#include "lib/ps/model/model_agent.hpp"
#include "lib/ps/model/model_client.hpp"

namespace hips::ps::test {

/// Nodes with one NIC each around a switch that is never full. A NIC sends and receives one batch at a time, at its rate;
/// batches from one rank to another stay in order. Time passes from event to event.
class SimulatedNics {
 public:
  struct Nic {
    double rate = 1;  ///< bytes per ns, in each direction
    std::int64_t sends_until_ns = 0, receives_until_ns = 0;
  };
  using Deliver = std::function<void(Rank from, Rank to, std::span<const std::byte>)>;

  SimulatedNics(std::vector<std::int32_t> node_of, std::int32_t num_nodes, double rate,
                std::int64_t latency_ns)
      : node_of_(std::move(node_of)), nics_(static_cast<std::size_t>(num_nodes)), latency_ns_(latency_ns) {
    for (Nic& nic : nics_) nic.rate = rate;
  }

  Nic& nic(std::size_t node) { return nics_[node]; }
  [[nodiscard]] const Clock& clock() const { return clock_; }
  [[nodiscard]] std::int64_t now_ns() const { return clock_.now_ns(); }
  /// So many batches may be on their way from one rank to another.
  void set_window(std::size_t batches) { window_ = batches; }
  /// Up to so much is added to the latency of each batch.
  void set_jitter(std::int64_t ns, std::uint64_t seed) {
    jitter_ns_ = ns;
    random_.seed(seed);
  }

  void at(std::int64_t ns, std::function<void()> what) { events_.push({ns, num_events_++, std::move(what)}); }
  void after(std::int64_t ns, std::function<void()> what) { at(now_ns() + ns, std::move(what)); }

  [[nodiscard]] bool has_room(Rank from, Rank to) const {
    const auto at = on_the_way_.find({from, to});
    return at == on_the_way_.end() || at->second < window_;
  }
  void send(Rank from, Rank to, std::vector<std::byte> batch, const Deliver& deliver,
            const std::function<void(Rank)>& has_room_again) {
    const auto size = static_cast<double>(batch.size());
    auto shared = std::make_shared<std::vector<std::byte>>(std::move(batch));
    const bool is_local = node(from) == node(to);
    Nic& out = nics_[node(from)];
    std::int64_t begin_ns = now_ns(), sent_ns = now_ns();
    if (!is_local) {
      begin_ns = std::max(now_ns(), out.sends_until_ns);
      sent_ns = out.sends_until_ns = begin_ns + time_ns(size, out.rate);
    }
    const std::int64_t jitter_ns =
        jitter_ns_ == 0 ? 0 : static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(jitter_ns_));
    const std::int64_t delay_ns = (is_local ? 0 : latency_ns_) + jitter_ns;
    // The first byte may be there before the last one has left.
    std::int64_t& last_ns = last_arrival_ns_[{from, to}];
    last_ns = std::max(last_ns, begin_ns + delay_ns);
    const std::int64_t least_ns = sent_ns + delay_ns;
    ++on_the_way_[{from, to}];
    const auto arrive = [this, from, to, shared, deliver, has_room_again] {
      --on_the_way_[{from, to}];
      deliver(from, to, *shared);
      after(latency_ns_, [has_room_again, from] { has_room_again(from); });
    };
    if (is_local) return at(last_ns, arrive);
    at(last_ns, [this, to, size, arrive, least_ns] {
      Nic& in = nics_[node(to)];
      in.receives_until_ns =
          std::max(least_ns, std::max(now_ns(), in.receives_until_ns) + time_ns(size, in.rate));
      at(in.receives_until_ns, arrive);
    });
  }

  /// Until then, or until nothing happens any more: false.
  bool run_until(std::int64_t end_ns) {
    while (!events_.empty() && events_.top().ns <= end_ns) {
      const Event event = events_.top();
      events_.pop();
      clock_.advance_ns(event.ns - now_ns());
      event.what();
    }
    return !events_.empty();
  }

 private:
  struct Event {
    std::int64_t ns;
    std::uint64_t number;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return ns != other.ns ? ns > other.ns : number > other.number;
    }
  };
  [[nodiscard]] std::size_t node(Rank rank) const {
    return static_cast<std::size_t>(node_of_[static_cast<std::size_t>(rank)]);
  }
  static std::int64_t time_ns(double bytes, double rate) { return static_cast<std::int64_t>(bytes / rate); }

  std::vector<std::int32_t> node_of_;
  std::vector<Nic> nics_;
  std::int64_t latency_ns_, jitter_ns_ = 0;
  std::size_t window_ = 4;
  std::mt19937_64 random_;
  ManualClock clock_;
  std::uint64_t num_events_ = 0;
  std::priority_queue<Event> events_;
  std::map<std::pair<Rank, Rank>, std::size_t> on_the_way_;
  std::map<std::pair<Rank, Rank>, std::int64_t> last_arrival_ns_;
};

/// A rank's mail between simulated NICs.
class NicMail final : public Mail {
 public:
  using Send = std::function<void(Rank to, std::vector<std::byte>)>;
  NicMail(SimulatedNics& nics, Rank rank, Send send) : nics_(nics), rank_(rank), send_(std::move(send)) {}
  std::byte* begin(Rank /*to*/, std::size_t bytes) override {
    return batch_.assign(bytes, {}), batch_.data();
  }
  void end(Rank to, std::size_t bytes) override {
    batch_.resize(bytes);
    if (bytes > 0) send_(to, std::move(batch_));
  }
  [[nodiscard]] std::size_t most_bytes() const override { return 32U << 10U; }
  [[nodiscard]] bool has_room(Rank to) const override { return nics_.has_room(rank_, to); }

 private:
  SimulatedNics& nics_;
  Rank rank_;
  Send send_;
  std::vector<std::byte> batch_;
};

/// A model of several nodes and ranks in one process.
class SimulatedModel {
 public:
  struct Options {
    std::int32_t num_nodes = 1, ranks_per_node = 1;
    std::uint64_t count = 1;  ///< int64 elements
    std::uint16_t num_shards = 1;
    std::uint64_t delay_max = UINT64_MAX;
    bool schedules = true;
    double divergence_max = -1;  ///< negative: no replicas
    double rate = 0.001;         ///< bytes per ns
    std::int64_t latency_ns = 100'000;
    TraceSink* trace = nullptr;
  };

  explicit SimulatedModel(const Options& options)
      : shards_{.count = options.count, .type = DataType::kInt64, .num = options.num_shards},
        places_(make_places(options)),
        nics_(places_.node_of, options.num_nodes, options.rate, options.latency_ns),
        divergence_max_(options.divergence_max),
        versions_(options.num_shards) {
    for (Rank rank = 0; rank < num_ranks(); ++rank) {
      mails_.push_back(
          std::make_unique<NicMail>(nics_, rank, [this, rank](Rank to, std::vector<std::byte> batch) {
            if (is_dead(rank) || is_dead(to)) return;
            nics_.send(
                rank, to, std::move(batch),
                [this](Rank from, Rank at, std::span<const std::byte> bytes) { receive(from, at, bytes); },
                [this](Rank sender) { advance(sender); });
          }));
      const Rank service = places_.service_at(rank);
      clients_.push_back(std::make_unique<ModelClient>(rank, service, shards_, *mails_.back()));
      agents_.push_back(nullptr);
      if (service == rank)
        agents_.back() = std::make_unique<ModelAgent>(
            ModelAgent::Options{.rank = rank,
                                .places = places_,
                                .shards = shards_,
                                .delay_max = options.delay_max,
                                .least_scheduled_bytes = options.schedules ? 0 : UINT64_MAX,
                                .first = {},
                                .divergence_max = options.divergence_max,
                                .trace = options.trace},
            *mails_.back(), nics_.clock());
    }
  }

  [[nodiscard]] Rank num_ranks() const { return static_cast<Rank>(places_.node_of.size()); }
  [[nodiscard]] const Shards& shards() const { return shards_; }
  ModelClient& client(Rank rank) { return *clients_[static_cast<std::size_t>(rank)]; }
  SimulatedNics& nics() { return nics_; }
  /// The ranks of a node die, with what they have sent and nobody has yet. The others have not heard of it, and go on.
  void kill(std::int32_t node) { dead_node_ = node; }

  /// What agents keep until something else comes.
  [[nodiscard]] std::size_t num_held() const {
    std::size_t num = 0;
    for (const auto& agent : agents_) num += agent ? agent->num_held() : 0;
    return num;
  }

  /// The largest distance of a shard from its replica when a group was applied; and whether an agent counted less.
  [[nodiscard]] double longest_distance() const { return longest_distance_; }
  [[nodiscard]] bool counted_less() const { return counted_less_; }
  /// What is left of a shard whose node is gone.
  [[nodiscard]] std::vector<std::int64_t> recovered(std::uint16_t shard) const {
    const auto node = static_cast<std::size_t>(replica_node(places_, shards_, shard));
    const ShardReplica& replica = *agents_[static_cast<std::size_t>(places_.service_of[node])]->replica();
    std::vector<std::byte> values = replica.values();
    for (Rank rank = 0; rank < num_ranks(); ++rank) {
      const auto& agent = agents_[static_cast<std::size_t>(rank)];
      if (!agent || is_dead(rank)) continue;
      const auto stored = replica.stored().find(rank);
      agent->sent().add_missing(values, shards_.type, shard,
                                stored == replica.stored().end() ? 0 : stored->second);
    }
    std::vector<std::int64_t> numbers(values.size() / sizeof(std::int64_t));
    std::memcpy(numbers.data(), values.data(), values.size());
    return numbers;
  }
  [[nodiscard]] std::int32_t dead_node() const { return dead_node_; }
  [[nodiscard]] const RankPlaces& places() const { return places_; }

  /// Calls done() when a call of a rank has ended.
  void fetch(Rank rank, ModelCall& call, std::function<void()> done) {
    client(rank).fetch(call);
    begin(rank, call, std::move(done));
  }
  void push(Rank rank, ModelCall& call, std::function<void()> done) {
    client(rank).push(call);
    begin(rank, call, std::move(done));
  }

 private:
  static RankPlaces make_places(const Options& options) {
    RankPlaces places;
    for (std::int32_t node = 0; node < options.num_nodes; ++node) {
      places.service_of.push_back(node * options.ranks_per_node);
      for (std::int32_t local = 0; local < options.ranks_per_node; ++local) places.node_of.push_back(node);
    }
    return places;
  }
  void begin(Rank rank, ModelCall& call, std::function<void()> done) {
    outstanding_[rank].push_back({&call, std::move(done)});
    advance(rank);
  }
  [[nodiscard]] bool is_dead(Rank rank) const {
    return places_.node_of[static_cast<std::size_t>(rank)] == dead_node_;
  }
  void advance(Rank rank) {
    if (is_dead(rank)) return;
    const auto r = static_cast<std::size_t>(rank);
    while (clients_[r]->advance() | (agents_[r] && agents_[r]->advance())) {
    }
  }
  void receive(Rank from, Rank at, std::span<const std::byte> bytes) {
    if (is_dead(from) || is_dead(at)) return;
    const auto r = static_cast<std::size_t>(at);
    const ModelMessage message = value_or_throw(ModelMessage::take(bytes));
    const bool answers = is_answer(message.head.kind);
    if (const Status status = answers ? clients_[r]->on_mail(message) : agents_[r]->on_mail(message);
        !status.ok())
      throw Error(status);
    measure_distance(at);
    auto& calls = outstanding_[at];
    for (std::size_t i = 0; i < calls.size();) {
      if (!calls[i].call->done.load()) {
        ++i;
        continue;
      }
      const auto done = std::move(calls[i].done);
      calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(i));
      done();
    }
    advance(at);
  }

  /// At each commit.
  void measure_distance(Rank rank) {
    const auto node = static_cast<std::size_t>(places_.node_of[static_cast<std::size_t>(rank)]);
    const bool serves = agents_[static_cast<std::size_t>(rank)] != nullptr;
    if (divergence_max_ < 0 || node >= shards_.num || !serves) return;
    const ModelAgent& agent = *agents_[static_cast<std::size_t>(rank)];
    if (std::exchange(versions_[node], agent.version()) == agent.version()) return;
    const auto shard = static_cast<std::uint16_t>(node);
    const std::int32_t with_replica = replica_node(places_, shards_, shard);
    if (with_replica < 0 || with_replica == dead_node_) return;
    const auto& replica =
        *agents_[static_cast<std::size_t>(places_.service_of[static_cast<std::size_t>(with_replica)])]
             ->replica();
    double sum = 0;
    for (std::size_t at = 0; at < replica.values().size(); at += sizeof(std::int64_t)) {
      std::int64_t here = 0, there = 0;
      std::memcpy(&here, agent.values().data() + at, sizeof here);
      std::memcpy(&there, replica.values().data() + at, sizeof there);
      sum += static_cast<double>((here - there) * (here - there));
    }
    longest_distance_ = std::max(longest_distance_, std::sqrt(sum));
    counted_less_ = counted_less_ || std::sqrt(sum) > agent.divergence() * (1 + 1e-9);
  }

  struct Outstanding {
    ModelCall* call;
    std::function<void()> done;
  };
  Shards shards_;
  RankPlaces places_;
  SimulatedNics nics_;
  std::vector<std::unique_ptr<NicMail>> mails_;
  std::vector<std::unique_ptr<ModelClient>> clients_;
  std::vector<std::unique_ptr<ModelAgent>> agents_;
  std::map<Rank, std::vector<Outstanding>> outstanding_;
  std::int32_t dead_node_ = -1;
  double divergence_max_ = -1, longest_distance_ = 0;
  bool counted_less_ = false;
  std::vector<std::uint64_t> versions_;  ///< by shard
};

}  // namespace hips::ps::test

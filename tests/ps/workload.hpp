#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/choices.hpp"
#include "tests/ps/history.hpp"
#include "tests/ps/simulated_table.hpp"

namespace hips::ps::test {

/// Rows with a counter for each worker.
constexpr RowType counters(std::uint32_t num) {
  return {.type = DataType::kUint64, .count = num};
}

/// Workers of a simulated table that access random keys of few, so that many meet.
class Workload {
 public:
  struct Shape {
    std::int32_t nodes = 2, ranks_per_node = 1;
    Key num_keys = 4;
    std::size_t outstanding = 1;  ///< calls of a worker; 1: each is waited for
    int calls = 60;               ///< of a worker
    double localize = 0.2;        ///< of the calls
    double intent = 0;            ///< of the calls; as often a clock ends
    bool kills = false;           ///< a node dies; the others go on without knowing of it
    bool faulty = false;          ///< mail as real tables have it, over NICs with faults
  };

  Workload(Shape shape, std::uint64_t seed)
      : shape_(shape),
        random_(seed),
        num_ranks_(static_cast<std::size_t>(shape.nodes) * static_cast<std::size_t>(shape.ranks_per_node)),
        type_(counters(static_cast<std::uint32_t>(num_ranks_))),
        table_(shape.nodes, shape.ranks_per_node, type_, 64,
               sizeof(BatchHead) + (1 + seed % 3) * record_bytes(MailKind::kPush, type_.bytes()), false,
               shape.faulty ? std::optional(seed) : std::nullopt),
        history_(num_ranks_),
        workers_(num_ranks_) {
    while (keys_.size() < shape.num_keys) {
      // Of every other seed, those that share an entry of the routes of requests.
      const Key key = keys_.empty() ? seed % 1000 : keys_.back() + 1;
      keys_.push_back(seed % 2 == 0 ? key : next_alike(key));
    }
    if (shape.kills) killed_at_ = random_() % (2 * num_ranks_ * static_cast<std::size_t>(shape.calls));
  }

  /// Runs all calls to their end; nothing, or what was broken.
  std::optional<std::string> run() {
    std::vector<std::size_t> ready;
    while (true) {
      if (now_ >= killed_at_ && dead_node_ < 0) kill();
      ready.clear();
      for (std::size_t w = 0; w < num_ranks_; ++w) {
        collect(w);
        if (is_alive(w) && workers_[w].calls_left(shape_.calls) &&
            workers_[w].outstanding.size() < shape_.outstanding)
          ready.push_back(w);
      }
      if (table_.idle() && ready.empty()) {
        if (now_ == 0 || ended_ || shape_.intent == 0) break;
        end_intents();
        continue;
      }
      if (!ready.empty() && (table_.idle() || random_() % 2 == 0)) {
        start(ready[random_() % ready.size()]);
      } else {
        table_.deliver(random_);
      }
      ++now_;
    }
    for (Worker& worker : workers_) {
      if (!worker.outstanding.empty() && dead_node_ < 0) return "a call was never answered";
      for (const auto& call : worker.outstanding) keep(*call);
    }
    return end_state();
  }
  [[nodiscard]] SimulatedTable& table() { return table_; }

 private:
  struct Outstanding {
    TableCall call;
    std::vector<Key> keys;
    std::vector<std::byte> rows;
    std::vector<History::Access> accesses;
  };
  struct Worker {
    int started = 0;
    std::uint64_t clock = 0;
    std::deque<std::unique_ptr<Outstanding>> outstanding;
    std::map<Key, std::uint64_t> pushes;
    [[nodiscard]] bool calls_left(int calls) const { return started < calls; }
  };

  static Key next_alike(Key key) {
    while (mixed(key) % RequestRoutes::kEntries != 5) ++key;
    return key;
  }
  Key any_key() { return keys_[random_() % keys_.size()]; }

  void kill() {
    dead_node_ = static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(shape_.nodes));
    table_.kill(dead_node_, random_);
  }
  [[nodiscard]] bool is_alive(std::size_t w) const { return table_.places().node_of[w] != dead_node_; }
  /// Of a call that has not ended: its pushes may have taken place.
  void keep(const Outstanding& call) {
    for (const History::Access& access : call.accesses)
      if (access.is_push || access.end != UINT64_MAX) history_.add(access);
  }

  /// All intents have ended, so that nothing may be left of them.
  void end_intents() {
    ended_ = true;
    for (std::size_t w = 0; w < num_ranks_; ++w)
      if (is_alive(w)) table_.client(static_cast<Rank>(w)).tell_clock(1000);
  }

  /// Tells an intent, right or wrong, or ends a clock; false: neither.
  bool plan_ahead(std::size_t w) {
    if (shape_.intent == 0) return false;
    Worker& worker = workers_[w];
    Client& client = table_.client(static_cast<Rank>(w));
    const double what = std::uniform_real_distribution<>(0, 1)(random_) / shape_.intent;
    if (what < 1) {
      std::vector<Key> keys;
      for (const Key key : keys_)
        if (random_() % 2 == 0) keys.push_back(key);
      const std::uint64_t start = worker.clock + random_() % 5;
      client.tell_intent(keys, start, start + random_() % 5);
      return true;
    }
    if (what > 2 || !worker.outstanding.empty()) return false;
    client.tell_clock(++worker.clock);
    return true;
  }

  void start(std::size_t w) {
    Worker& worker = workers_[w];
    ++worker.started;
    if (plan_ahead(w)) return;
    auto made = std::make_unique<Outstanding>();
    const std::size_t num = 1 + random_() % 4;
    for (std::size_t i = 0; i < num; ++i) made->keys.push_back(any_key());
    made->rows.resize(num * type_.bytes());
    Client& client = table_.client(static_cast<Rank>(w));
    const bool localizes = std::uniform_real_distribution<>(0, 1)(random_) < shape_.localize;
    made->call.kind = localizes            ? MailKind::kLocalize
                      : random_() % 2 == 0 ? MailKind::kPush
                                           : MailKind::kPull;
    made->call.num_keys = num;
    made->call.out = made->rows.data();
    if (made->call.kind == MailKind::kPush)
      for (std::size_t i = 0; i < num; ++i) counter(*made, i, w) = 1;
    std::vector<std::uint32_t> remote;
    for (std::uint32_t i = 0; i < num; ++i) {
      const Key key = made->keys[i];
      std::byte* const row = made->rows.data() + i * type_.bytes();
      if (!localizes) {
        // The keys of a call take place in their order, so a pushed one counts for the next.
        made->accesses.push_back({.worker = w,
                                  .key = key,
                                  .begin = ++now_,
                                  .end = UINT64_MAX,
                                  .is_push = made->call.kind == MailKind::kPush,
                                  .own_before = worker.pushes[key]});
        if (made->call.kind == MailKind::kPush) ++worker.pushes[key];
      }
      if (table_.use(static_cast<Rank>(w), made->call.kind, key, row) == Found::kAbsent) {
        remote.push_back(i);
      } else if (!localizes) {
        finish(*made, i);
      }
    }
    if (!remote.empty()) client.ask(made->call, made->keys, remote, made->rows.data());
    worker.outstanding.push_back(std::move(made));
  }

  std::uint64_t& counter(Outstanding& made, std::size_t i, std::size_t worker) {
    return reinterpret_cast<std::uint64_t*>(made.rows.data())[i * num_ranks_ + worker];
  }
  void finish(Outstanding& made, std::size_t i) {
    History::Access& access = made.accesses[i];
    if (access.end != UINT64_MAX) return;
    access.end = ++now_;
    if (access.is_push) return;
    for (std::size_t w = 0; w < num_ranks_; ++w) access.row.push_back(counter(made, i, w));
  }
  void collect(std::size_t w) {
    auto& outstanding = workers_[w].outstanding;
    for (auto it = outstanding.begin(); it != outstanding.end();) {
      if (!(*it)->call.done) {
        ++it;
        continue;
      }
      for (std::size_t i = 0; i < (*it)->accesses.size(); ++i) {
        finish(**it, i);
        history_.add((*it)->accesses[i]);
      }
      it = outstanding.erase(it);
    }
  }

  /// Each row is in one place, every push is in it once, nothing is left on its way. What a dead node had is lost.
  std::optional<std::string> end_state() {
    if (auto broken = history_.broken()) return broken;
    for (std::int32_t node = 0; node < shape_.nodes && dead_node_ < 0; ++node) {
      if (table_.service(node).num_coming() != 0) return "a row is still waited for";
      if (table_.service(node).num_wanted() != 0) return "an intent is left";
    }
    for (const Key key : keys_) {
      std::vector<std::uint64_t> found(num_ranks_);
      int places = 0;
      for (std::int32_t node = 0; node < shape_.nodes; ++node)
        if (node != dead_node_ && table_.store(node).with(key, [&](std::byte* row) {
              std::memcpy(found.data(), row, type_.bytes());
            }) == Found::kHere)
          ++places;
      if (places > 1) return "a row is in two places";
      if (places == 0 && dead_node_ >= 0) continue;
      for (std::size_t w = 0; w < num_ranks_; ++w) {
        const std::uint64_t most = workers_[w].pushes[key],
                            least = most - history_.num_unended_pushes(w, key);
        if (found[w] < least || found[w] > most)
          return "counter " + std::to_string(w) + " of key " + std::to_string(key) + " is " +
                 std::to_string(found[w]) + " after " + std::to_string(least) + " to " +
                 std::to_string(most) + " pushes";
      }
    }
    return std::nullopt;
  }

  Shape shape_;
  std::mt19937_64 random_;
  std::size_t num_ranks_;
  RowType type_;
  SimulatedTable table_;
  History history_;
  std::vector<Worker> workers_;
  std::vector<Key> keys_;
  std::uint64_t now_ = 0;
  bool ended_ = false;
  std::uint64_t killed_at_ = UINT64_MAX;
  std::int32_t dead_node_ = -1;
};

inline std::uint64_t num_seeds() {
  return hips::test::runs_everything() ? 100'000 : hips::test::runs_a_sample() ? 100 : 1000;
}

}  // namespace hips::ps::test

#pragma once

/// Downpour: a rank's own copy of some rows, which meets the table every few steps only.

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <hips/ps.hpp>

namespace hips::ps {

/// How often the copy meets the table, in steps; at least 1.
struct DownpourOptions {
  std::uint64_t fetch_every = 1;
  std::uint64_t push_every = 1;
};

/// Asynchronous training with fewer messages, for tables whose update is a sum. Rows are taken from the table every `fetch_every`
/// steps; changes are added up and pushed every `push_every` steps, while the program computes on.
///
///     hips::ps::Downpour<float> downpour(table, keys, {.fetch_every = 10, .push_every = 5});
///     for (...) {
///       const std::span<const float> rows = downpour.fetch();
///       ...
///       downpour.step(changes);  // -rate * gradient
///     }
///     downpour.flush();
///
/// With 1 and 1, one rank does what it would do alone, bit for bit. With more, what a rank sees is up to push_every steps of the others
/// and fetch_every of its own old, and so are the rows of its gradients. It pays where a step computes for less time than a pull and
/// a push take, and keys stay the same for many steps. For bounded lateness use `staleness` of the table. Without flush() the changes
/// since the last push are lost.
///
/// Shapes   rows and changes: keys.size() * row_length elements, one row after the other. Keys may not repeat.
/// Owns     copies of the keys and rows. The table outlives it.
/// Threads  one at a time.
/// Errors   those of the table; std::invalid_argument: a number of steps is 0.
/// Source   DistBelief (Dean et al., NeurIPS 2012), section 4.1.
template <Element T>
class Downpour {
 public:
  Downpour(Table<T>& table, std::vector<Key> keys, const DownpourOptions& options = {})
      : table_(&table),
        keys_(std::move(keys)),
        options_(options),
        rows_(keys_.size() * table.row_length()),
        changes_(rows_.size()) {
    if (options.fetch_every == 0 || options.push_every == 0)
      throw std::invalid_argument("Downpour: fetch_every and push_every are numbers of steps from 1 on");
  }

  /// The rows for the next step: those of the table where it is time to fetch, otherwise those of the last step; with the rank's own changes
  /// in both cases.
  std::span<const T> fetch() {
    if (steps_ % options_.fetch_every == 0) {
      table_->pull(keys_, rows_);
      for (std::size_t i = 0; has_changes_ && i < rows_.size(); ++i) rows_[i] += changes_[i];
    }
    return rows_;
  }

  /// Ends a step: adds its changes to the rank's rows, and to what the next push sends.
  void step(std::span<const T> changes) {
    if (changes.size() != rows_.size())
      throw std::invalid_argument("Downpour: step() needs as many changes as its rows have elements");
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      rows_[i] += changes[i];
      changes_[i] += changes[i];
    }
    has_changes_ = true;
    if (++steps_ % options_.push_every == 0) send();
  }

  /// Pushes what has not been pushed, and waits until the table has all of it.
  void flush() {
    send();
    push_.wait();
  }

 private:
  /// One push is on its way at a time.
  void send() {
    if (!has_changes_) return;
    push_.wait();
    push_ = table_->ipush(keys_, changes_);
    changes_.assign(changes_.size(), T{});
    has_changes_ = false;
  }

  Table<T>* table_;
  std::vector<Key> keys_;
  DownpourOptions options_;
  std::vector<T> rows_, changes_;
  Request push_;
  std::uint64_t steps_ = 0;
  bool has_changes_ = false;
};

}  // namespace hips::ps

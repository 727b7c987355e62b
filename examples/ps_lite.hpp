#pragma once

/// The part of ps-lite's interface that most of its workers use, on a table of HiPS, to try HiPS in a program of ps-lite: copy this
/// file, include it instead of "ps/ps.h", say in Start() which rows there are, leave the servers out, and build with
/// `pkg-config --cflags --libs hips`.
///
///     ps::Start({.num_keys = 1'000'000, .row_length = 64});
///     ps::KVWorker<float> kv(0, 0);
///     kv.Wait(kv.Push(keys, vals));     // vals: 64 floats for each key
///     kv.Wait(kv.Pull(keys, &vals));
///     ps::Finalize();
///
/// What differs: every rank is a worker, and HiPS serves beside it, so there are no processes of servers or a scheduler and nothing to
/// start for them: no KVServer and no request handle. A push adds, as KVServerDefaultHandle does. Keys are below num_keys, in any
/// order, repeated ones allowed. All rows have one length, so `lens` may only say that. There is one table; app and customer ids, groups
/// and `cmd` are ignored. Lists are std::vector; there is no SArray, and no ZPush and ZPull. A callback runs in the Wait() of its
/// call. Threads: any number; one of them waits for a call. Errors: hips::Error, on all ranks when one has died.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <hips/hips.hpp>
#include <hips/ps.hpp>

namespace ps {

using Key = hips::ps::Key;
using Callback = std::function<void()>;

/// All keys and rows of the program; the same on all ranks.
struct Rows {
  std::uint64_t num_keys = 0;
  std::size_t row_length = 1;
};

namespace detail {
struct StartedApp {
  hips::Communicator comm = hips::Communicator::from_environment();
  Rows rows;
};
inline std::unique_ptr<StartedApp>& app() {
  static std::unique_ptr<StartedApp> one;
  return one;
}
inline StartedApp& started() {
  if (!app()) throw std::logic_error("ps: call ps::Start() first");
  return *app();
}
}  // namespace detail

/// Collective, as Finalize().
inline void Start(const Rows& rows) {
  detail::app() = std::make_unique<detail::StartedApp>();
  detail::app()->rows = rows;
}
/// Destroy the KVWorkers first, on all ranks.
inline void Finalize(bool do_barrier = true) {
  if (do_barrier) detail::started().comm.barrier();
  detail::app().reset();
}

inline int NumWorkers() {
  return detail::started().comm.size();
}
inline int NumServers() {
  return NumWorkers();
}
inline int MyRank() {
  return detail::started().comm.rank();
}
inline bool IsWorker() {
  return true;
}
inline bool IsServer() {
  return true;
}
inline bool IsScheduler() {
  return false;
}
inline void Barrier() {
  detail::started().comm.barrier();
}

/// Pushes and pulls of this rank. Made by all ranks together, and destroyed so.
template <typename Val>
class KVWorker {
 public:
  explicit KVWorker(int /*app_id*/ = 0, int /*customer_id*/ = 0)
      : row_length_(detail::started().rows.row_length),
        table_(detail::started().comm, {.num_keys = detail::started().rows.num_keys,
                                        .row_length = detail::started().rows.row_length}) {}

  /// Starts row += vals, for each key. Keys and vals may be used again at once. The result is for Wait().
  int Push(const std::vector<Key>& keys, const std::vector<Val>& vals, const std::vector<int>& lens = {},
           int /*cmd*/ = 0, Callback callback = {}) {
    check_lengths(lens);
    return keep(table_.ipush(keys, vals), std::move(callback));
  }
  /// Starts *vals = the rows of the keys; *vals gets its size now, and has its values when Wait() has returned.
  int Pull(const std::vector<Key>& keys, std::vector<Val>* vals, std::vector<int>* lens = nullptr,
           int /*cmd*/ = 0, Callback callback = {}) {
    vals->resize(keys.size() * row_length_);
    if (lens != nullptr) lens->assign(keys.size(), static_cast<int>(row_length_));
    return keep(table_.ipull(keys, *vals), std::move(callback));
  }
  /// A push, and a pull of what it made of the rows: calls of one rank on one key keep their order.
  int PushPull(const std::vector<Key>& keys, const std::vector<Val>& vals, std::vector<Val>* outs,
               std::vector<int>* lens = nullptr, int cmd = 0, Callback callback = {}) {
    (void)Push(keys, vals);
    return Pull(keys, outs, lens, cmd, std::move(callback));
  }
  /// Waits for a call, and runs its callback. One that has been waited for is not waited for again.
  void Wait(int timestamp) {
    std::unique_lock lock(mutex_);
    const auto found = outstanding_.find(timestamp);
    if (found == outstanding_.end()) return;
    Outstanding call = std::move(found->second);
    outstanding_.erase(found);
    lock.unlock();
    call.request.wait();
    if (call.callback) call.callback();
  }

  /// HiPS' own calls: localize() above all.
  hips::ps::Table<Val>& table() { return table_; }

 private:
  struct Outstanding {
    hips::Request request;
    Callback callback;
  };

  /// Keeps what has not ended, or has a callback to run. Programs need not wait for their pushes: those that have ended go.
  int keep(hips::Request request, Callback callback) {
    const std::lock_guard lock(mutex_);
    while (!outstanding_.empty() && !outstanding_.begin()->second.callback &&
           outstanding_.begin()->second.request.test())
      outstanding_.erase(outstanding_.begin());
    outstanding_[next_] = {std::move(request), std::move(callback)};
    return next_++;
  }
  void check_lengths(const std::vector<int>& lens) const {
    for (const int length : lens)
      if (static_cast<std::size_t>(length) != row_length_)
        throw std::invalid_argument("ps: a row of " + std::to_string(length) + " values; all rows have " +
                                    std::to_string(row_length_));
  }

  std::size_t row_length_;
  hips::ps::Table<Val> table_;
  std::mutex mutex_;
  std::map<int, Outstanding> outstanding_;
  int next_ = 0;
};

}  // namespace ps

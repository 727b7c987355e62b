#include "lib/ps/recovery.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/ps/mail_setup.hpp"
#include "lib/ps/ranks_left.hpp"

namespace hips::ps {
namespace {

using comm::Blob;
using comm::ByteReader;
using comm::ByteWriter;

template <typename T>
Blob blob_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <typename T>
std::vector<T> values_of(const Blob& blob) {
  std::vector<T> values(blob.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), blob.data(), values.size() * sizeof(T));
  return values;
}

/// Sets or pushes rows of a table, many in a call. What is set comes to this node.
template <MailKind kKind>
class RowWriter {
 public:
  explicit RowWriter(RowTable& table) : table_(table), row_bytes_(table.options().type.bytes()) {}

  Status add(Key key, const std::byte* row) {
    keys_.push_back(key);
    rows_.insert(rows_.end(), row, row + row_bytes_);
    return keys_.size() == kMostKeys || rows_.size() >= kMostBytes ? flush() : Status::success();
  }
  Status flush() {
    Status status = kKind == MailKind::kSet ? run(MailKind::kLocalize, nullptr) : Status::success();
    if (status.ok()) status = run(kKind, rows_.data());
    keys_.clear();
    rows_.clear();
    return status;
  }

 private:
  static constexpr std::size_t kMostKeys = 1024, kMostBytes = 1 << 20;

  Status run(MailKind kind, const std::byte* rows) {
    std::unique_ptr<TableCall> call;
    Status status = table_.start(call, kind, keys_, rows, nullptr);
    return status.ok() && call ? table_.wait(std::move(call)) : status;
  }

  RowTable& table_;
  std::size_t row_bytes_;
  std::vector<Key> keys_;
  std::vector<std::byte> rows_;
};

/// A rank's part of the recovery. Nodes are those of the failed table; the lowest rank that is left of each sets its rows.
class Recovery {
 public:
  Recovery(comm::Communicator& members, comm::SetUpExchanges& exchanges, RowTable& failed, RowTable& made)
      : members_(members), exchanges_(exchanges), failed_(failed), setter_(made), pusher_(made) {}

  Result<std::uint64_t> run() {
    if (Status status = meet(); !status.ok()) return fail(std::move(status));
    if (Status status = exchanges_.agree(sets_ ? set_own() : Status::success()); !status.ok())
      return fail(std::move(status));
    if (Status status = find_others(); !status.ok()) return fail(std::move(status));
    if (Status status = exchanges_.agree(set_replicas()); !status.ok()) return fail(std::move(status));
    if (Status status = exchanges_.agree(push_deltas()); !status.ok()) return fail(std::move(status));
    return count_lost();
  }

 private:
  [[nodiscard]] const RankPlaces& places() const { return failed_.places(); }
  [[nodiscard]] std::int32_t node() const {
    return places().node_of[static_cast<std::size_t>(failed_.members().rank())];
  }
  /// Whether what the node knew is still known.
  [[nodiscard]] bool serves(std::int32_t node) const { return served_.contains(node); }

  Result<std::vector<Blob>> gather(const Blob& mine) { return exchanges_.allgather(mine); }

  /// Who is left of the failed table.
  Status meet() {
    const auto ranks = ranks_left(exchanges_, failed_.members(), failed_.id(), "table");
    if (!ranks) return ranks.error();
    const std::set<Rank> in_order(ranks->begin(), ranks->end());
    std::map<std::int32_t, Rank> first;
    for (const Rank rank : in_order) {
      const std::int32_t of = places().node_of[static_cast<std::size_t>(rank)];
      first.emplace(of, rank);  // the lowest
      if (places().serves(rank)) served_.insert(of);
    }
    sets_ = first.at(node()) == failed_.members().rank();
    return Status::success();
  }

  /// The rows of this node.
  Status set_own() {
    Status status;
    const auto set = [&](Key key, const std::byte* row) {
      if (!status.ok() || key >= failed_.options().num_keys) return;
      status = setter_.add(key, row);
      note_found(key);
    };
    failed_.store().for_each(set);
    if (failed_.service() != nullptr)
      failed_.service()->for_each_recalled([&](Key key, const std::byte* row) {
        if (failed_.store().row_at_rest(key) != nullptr) return;
        recalled_.insert(key);
        set(key, row);
      });
    return status.ok() ? setter_.flush() : status;
  }

  void note_found(Key key) {
    if (!serves(places().home_of(key))) ++num_found_of_unknown_;
  }

  /// Finds out of keys that this node cannot be sure of whether a node that is left has their rows.
  Status find_others() {
    std::vector<Key> replicas, missing;
    if (sets_ && failed_.replicas() != nullptr)
      failed_.replicas()->for_each([&](Key key, const std::byte*, const std::byte*) {
        if (key < failed_.options().num_keys) replicas.push_back(key);
      });
    if (failed_.service() != nullptr) {
      const auto note = [&](Key key) {
        if (serves(places().home_of(key))) missing.push_back(key);
      };
      failed_.service()->for_each_moved([&](Key key, std::int32_t owner) {
        if (!serves(owner)) note(key);
      });
      failed_.service()->for_each_coming(note);
    }
    const auto all_replicas = gather(blob_of(replicas));
    if (!all_replicas) return all_replicas.error();
    const auto all_missing = gather(blob_of(missing));
    if (!all_missing) return all_missing.error();
    for (std::size_t r = 0; r < all_replicas->size(); ++r) {
      const auto rank = static_cast<Rank>(r);
      for (const Key key : values_of<Key>((*all_replicas)[r])) {
        // They come to many nodes where many have them.
        const auto weight = [&](Rank source) { return mixed(key + static_cast<std::uint64_t>(source)); };
        Rank& source = others_[key].source;
        if (source < 0 || weight(rank) < weight(source)) source = rank;
      }
    }
    for (const Blob& of_rank : *all_missing)
      for (const Key key : values_of<Key>(of_rank)) others_[key].is_missing = true;
    // Which of them this node has, in the order of their keys.
    std::vector<std::uint8_t> here;
    for (const auto& [key, other] : others_)
      here.push_back(sets_ && (failed_.store().row_at_rest(key) != nullptr || recalled_.contains(key)) ? 1
                                                                                                       : 0);
    const auto everywhere = gather(blob_of(here));
    if (!everywhere) return everywhere.error();
    for (const Blob& of_rank : *everywhere) {
      if (of_rank.size() != others_.size())
        return Status::error(Code::kInternal, "table: ranks count the rows that are left differently");
      std::size_t i = 0;
      for (auto& [key, other] : others_) other.is_found |= of_rank[i++] != std::byte{0};
    }
    return Status::success();
  }

  /// Replicas of rows that no node has. One of the ranks with one sets it.
  Status set_replicas() {
    if (!sets_ || failed_.replicas() == nullptr) return Status::success();
    Status status;
    failed_.replicas()->for_each([&](Key key, const std::byte* value, const std::byte*) {
      if (!status.ok() || !stands_in(key)) return;
      note_found(key);
      status = setter_.add(key, value);
    });
    return status.ok() ? setter_.flush() : status;
  }
  /// Whether this rank's replica becomes the row.
  [[nodiscard]] bool stands_in(Key key) const {
    const auto known = others_.find(key);
    return known != others_.end() && !known->second.is_found && known->second.source == members_.rank();
  }
  /// What ranks of this node have pushed to replicas, and no other node has heard of.
  Status push_deltas() {
    if (!sets_ || failed_.replicas() == nullptr) return Status::success();
    Status status;
    failed_.replicas()->for_each([&](Key key, const std::byte*, const std::byte* delta) {
      if (status.ok() && delta != nullptr && others_.contains(key) && !stands_in(key))
        status = pusher_.add(key, delta);
    });
    return status.ok() ? pusher_.flush() : status;
  }

  Result<std::uint64_t> count_lost() {
    std::uint64_t known = 0;
    for (const auto& [key, other] : others_)
      known += other.is_missing && !other.is_found && other.source < 0 ? 1 : 0;
    // Keys of homes that nobody knows of any more, a part on each rank.
    std::uint64_t num_unknown = 0;
    if (static_cast<std::int32_t>(served_.size()) != places().num_nodes()) num_unknown = count_unknown();
    const auto counts = gather(blob_of(std::vector<std::uint64_t>{num_unknown, num_found_of_unknown_}));
    if (!counts) return fail(counts.error());
    std::uint64_t unknown = 0, found = 0;
    for (const Blob& of_rank : *counts) {
      const auto both = values_of<std::uint64_t>(of_rank);
      if (both.size() != 2)
        return fail(Code::kInternal, "table: ranks count the rows that are lost differently");
      unknown += both[0];
      found += both[1];
    }
    return known + unknown - std::min(unknown, found);
  }

  /// Keys whose home nobody knows of any more, of this rank's part of all.
  [[nodiscard]] std::uint64_t count_unknown() const {
    constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 32U;
    const std::uint64_t num_keys = failed_.options().num_keys;
    if (num_keys > kMostCounted) return members_.rank() == 0 ? num_keys : 0;  // at most
    const auto size = static_cast<std::uint64_t>(members_.size());
    std::uint64_t num = 0;
    for (Key key = static_cast<Key>(members_.rank()); key < num_keys; key += size)
      num += serves(places().home_of(key)) ? 0 : 1;
    return num;
  }

  /// A key of which a replica is left, or whose row may be gone.
  struct Other {
    Rank source = -1;         ///< whose replica becomes the row if there is none; -1: there is no replica
    bool is_missing = false;  ///< by what its home knew
    bool is_found = false;
  };

  comm::Communicator& members_;
  comm::SetUpExchanges& exchanges_;
  RowTable& failed_;
  RowWriter<MailKind::kSet> setter_;
  RowWriter<MailKind::kPush> pusher_;
  std::set<std::int32_t> served_;           ///< nodes whose serving ranks are left
  bool sets_ = false;                       ///< this rank, the rows of its node
  std::uint64_t num_found_of_unknown_ = 0;  ///< rows set by this rank whose home nobody knows of any more
  std::set<Key> recalled_;
  std::map<Key, Other> others_;
};

Status recover(comm::Communicator& members, RowTable& failed, Recovered& recovered) {
  RowTableOptions options = failed.options();
  // Where there are fewer nodes, each may get more rows.
  if (options.rows_per_node != 0)
    options.rows_per_node =
        std::min({options.num_keys, RowStore::kMostRows,
                  options.rows_per_node * static_cast<std::uint64_t>(failed.places().num_nodes())});
  auto made = RowTable::create(members, std::move(options));
  if (!made) return made.error();
  recovered.table = std::move(*made);
  return set_up_together(members, [&](comm::SetUpExchanges& exchanges) {
    auto lost = Recovery(members, exchanges, failed, *recovered.table).run();
    if (!lost) return lost.error();
    recovered.num_lost = *lost;
    return Status::success();
  });
}

}  // namespace

Result<Recovered> recover(comm::Communicator& members, RowTable& failed) {
  if (const Status ended = failed.end(); !ended.ok()) return fail(members.fail_all(ended));
  Recovered recovered;
  Status status = attempt_together(members, "table", [&] { return recover(members, failed, recovered); });
  if (!status.ok()) return fail(std::move(status));
  if (members.rank() == 0)
    log::info(log::Subsystem::kComm, "table: recovered; the rows of at most {} of {} keys are lost",
              recovered.num_lost, failed.options().num_keys);
  return recovered;
}

}  // namespace hips::ps

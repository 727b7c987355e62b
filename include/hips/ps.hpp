#pragma once

/// Tables of rows by key, for sparse models: the C++ API. <hips/ps.h> says what a table is and what it guarantees.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hips/ps.h>
#include <hips/communicator.hpp>
#include <hips/last_error.hpp>
#include <hips/request.hpp>
#include <hips/types.hpp>

namespace hips::ps {

using Key = std::uint64_t;

/// How a table is made; the same on all ranks.
template <Element T>
struct TableOptions {
  std::uint64_t num_keys = 0;           ///< keys are 0 to num_keys - 1
  std::size_t row_length = 1;           ///< elements of a row; 1 MiB at most
  ReduceOp update = ReduceOp::kSum;     ///< a push does row = pushed op row
  std::vector<T> first_row{};           ///< of a key that nobody has changed; empty: zeros
  std::uint64_t rows_per_node = 0;      ///< that a node may have at a time; 0: num_keys
  std::uint64_t staleness = 0;          ///< clocks that a rank may be ahead of another: advance_clock()
  std::uint64_t replicas_per_node = 0;  ///< copies of rows that several nodes have intents for: intent()
};

/// A table of rows of `T`, by key, for all ranks of a communicator. Each row is on one node at a time and moves by localize().
///
///     hips::ps::Table<float> table(comm, {.num_keys = 1'000'000, .row_length = 64});
///     table.localize(keys);            // local until another node takes them
///     table.pull(keys, rows);
///     table.push(keys, gradients);     // row += gradient
///
/// Shapes   `keys`: n keys, in any order, repeated ones allowed; `rows`: n * row_length elements, one row after the other.
/// Owns     the table; it keeps the communicator. The destructor is collective, and waits for all ranks, but where an
///          exception unwinds the stack.
/// Threads  any number at once; making and destroying: as calls of the communicator.
/// Errors   throws Error: kInvalidArgument where a key is out of range, or `rows` has another size; nothing took place then.
///          Anything else has failed the table and its communicator, on all ranks.
template <Element T>
class Table {
 public:
  /// Collective.
  Table(const Communicator& comm, const TableOptions<T>& options) : row_length_(options.row_length) {
    hips_ps_config_t config = HIPS_PS_CONFIG_INIT;
    config.num_keys = options.num_keys;
    config.type = static_cast<hips_type_t>(data_type_of<T>());
    config.count = static_cast<std::uint32_t>(std::min<std::size_t>(options.row_length, UINT32_MAX));
    config.update = static_cast<hips_op_t>(options.update);
    config.rows_per_node = options.rows_per_node;
    config.staleness = options.staleness;
    config.replicas_per_node = options.replicas_per_node;
    if (!options.first_row.empty()) {
      check_rows(1, options.first_row.size());
      config.first_row = options.first_row.data();
    }
    throw_if_failed(hips_ps_table_create(comm.handle(), &config, &table_));
  }
  Table(Table&& other) noexcept
      : table_(std::exchange(other.table_, nullptr)), row_length_(other.row_length_) {}
  Table& operator=(Table&& other) noexcept {
    Table taken(std::move(other));
    std::swap(table_, taken.table_);
    std::swap(row_length_, taken.row_length_);
    return *this;
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  /// While an exception unwinds the stack this rank may never meet the others, so it aborts the communicator.
  ~Table() {
    if (std::uncaught_exceptions() > exceptions_)
      (void)hips_ps_table_abort(table_, "an exception ended the use of its table");
    else
      (void)hips_ps_table_destroy(table_);
  }

  /// After a rank has died: a table on `comm`, of ranks that are left of this one's (Communicator::shrink()), with the rows that
  /// are left. Collective over them. This table has failed then, if it had not before.
  ///
  /// Rows stay on their nodes. In place of a row that is gone with its node comes a replica, else the first row: it is lost.
  /// `num_lost`: how many are, at most. A push that had ended is in its row, unless that is lost or replaced; one to a replica may
  /// be missing if its clock had not ended. Clocks begin at 0. Errors: kPeerLost, on all ranks, where another one has died: shrink
  /// again.
  [[nodiscard]] Table recover(const Communicator& comm, std::uint64_t* num_lost = nullptr) {
    hips_ps_table_t made = nullptr;
    throw_if_failed(hips_ps_table_recover(comm.handle(), table_, &made, num_lost));
    return Table(made, row_length_);
  }

  /// rows = those of `keys`.
  void pull(std::span<const Key> keys, std::span<T> rows) const {
    check_rows(keys.size(), rows.size());
    throw_if_failed(hips_ps_pull(table_, keys.data(), keys.size(), rows.data()));
  }
  /// row = pushed op row, for each key.
  void push(std::span<const Key> keys, std::span<const T> rows) {
    check_rows(keys.size(), rows.size());
    throw_if_failed(hips_ps_push(table_, keys.data(), keys.size(), rows.data()));
  }
  void set(std::span<const Key> keys, std::span<const T> rows) {
    check_rows(keys.size(), rows.size());
    throw_if_failed(hips_ps_set(table_, keys.data(), keys.size(), rows.data()));
  }
  /// Brings the rows to this node.
  void localize(std::span<const Key> keys) {
    throw_if_failed(hips_ps_localize(table_, keys.data(), keys.size()));
  }
  /// Copies the rows that this node has; here[i] says whether rows[i] is one.
  void pull_if_local(std::span<const Key> keys, std::span<T> rows, std::span<unsigned char> here) const {
    check_rows(keys.size(), rows.size());
    if (here.size() != keys.size()) throw_invalid("here", keys.size(), here.size());
    throw_if_failed(hips_ps_pull_if_local(table_, keys.data(), keys.size(), rows.data(), here.data()));
  }

  /// This rank is going to use the rows while its clock, the number of its calls of advance_clock(), is in [start, end). A hint
  /// that returns at once: rows that no other node wants come to this one, in the background; with replicas_per_node, copies
  /// of those that others want, too.
  void intent(std::span<const Key> keys, std::uint64_t start, std::uint64_t end) {
    throw_if_failed(hips_ps_intent(table_, keys.data(), keys.size(), start, end));
  }

  /// Ends a clock of this rank; waits for ranks that are more than `staleness` clocks behind.
  void advance_clock() { throw_if_failed(hips_ps_advance_clock(table_)); }

  // Non-blocking. The request is empty where the call has ended already. Keys, and rows that are pushed or set, are copied; those of
  // ipull() belong to the request until it has ended.
  [[nodiscard]] Request ipull(std::span<const Key> keys, std::span<T> rows) const {
    check_rows(keys.size(), rows.size());
    return started(
        [&](hips_request_t* r) { return hips_ps_ipull(table_, keys.data(), keys.size(), rows.data(), r); });
  }
  [[nodiscard]] Request ipush(std::span<const Key> keys, std::span<const T> rows) {
    check_rows(keys.size(), rows.size());
    return started(
        [&](hips_request_t* r) { return hips_ps_ipush(table_, keys.data(), keys.size(), rows.data(), r); });
  }
  [[nodiscard]] Request iset(std::span<const Key> keys, std::span<const T> rows) {
    check_rows(keys.size(), rows.size());
    return started(
        [&](hips_request_t* r) { return hips_ps_iset(table_, keys.data(), keys.size(), rows.data(), r); });
  }
  [[nodiscard]] Request ilocalize(std::span<const Key> keys) {
    return started([&](hips_request_t* r) { return hips_ps_ilocalize(table_, keys.data(), keys.size(), r); });
  }

  [[nodiscard]] std::size_t row_length() const { return row_length_; }
  /// For calls of the C API; still owned by this object.
  [[nodiscard]] hips_ps_table_t handle() const { return table_; }

 private:
  Table(hips_ps_table_t table, std::size_t row_length) : table_(table), row_length_(row_length) {}
  template <typename Call>
  static Request started(Call call) {
    hips_request_t request = HIPS_REQUEST_NULL;
    throw_if_failed(call(&request));
    return Request::adopt(request);
  }
  void check_rows(std::size_t num_keys, std::size_t num_elements) const {
    if (num_elements != num_keys * row_length_) throw_invalid("rows", num_keys * row_length_, num_elements);
  }
  [[noreturn]] static void throw_invalid(const char* what, std::size_t expected, std::size_t given) {
    throw Error(Status::error(Code::kInvalidArgument, std::string("table: ") + what + " has " +
                                                          std::to_string(given) + " elements; expected " +
                                                          std::to_string(expected)));
  }

  hips_ps_table_t table_ = nullptr;
  std::size_t row_length_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace hips::ps

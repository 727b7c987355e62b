#include "python/hips/src/comm/table.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "python/hips/src/comm/error.hpp"
#include "python/hips/src/comm/without_lock.hpp"

namespace py = pybind11;

namespace hips::python {
namespace {

constexpr const char* kAccessNames[] = {"pull", "push", "set", "localize"};

const std::uint64_t* keys_of(const Array& keys) {
  return static_cast<const std::uint64_t*>(keys.data());
}

}  // namespace

RowsByKey::RowsByKey(const Comm& comm, std::uint64_t num_keys, const py::object& row, hips_op_t update,
                     std::uint64_t rows_per_node, std::uint64_t staleness, std::uint64_t replicas_per_node) {
  const Array first = Array::of(row, "Table: first_row", false);
  hips_ps_config_t config = HIPS_PS_CONFIG_INIT;
  config.num_keys = num_keys;
  config.type = first.type();
  config.count = static_cast<std::uint32_t>(first.count());
  config.update = checked_op("Table", first, update);
  config.first_row = first.data();
  config.rows_per_node = rows_per_node;
  config.staleness = staleness;
  config.replicas_per_node = replicas_per_node;
  type_ = first.type();
  type_name_ = first.type_name();
  row_length_ = first.count();
  hips_comm_t const handle = comm.handle();
  throw_if_failed(without_lock([&] { return hips_ps_table_create(handle, &config, &table_); }));
}

std::pair<std::unique_ptr<RowsByKey>, std::uint64_t> RowsByKey::recover(const Comm& comm) {
  std::unique_ptr<RowsByKey> made(new RowsByKey);
  std::uint64_t num_lost = 0;
  hips_comm_t const ranks = comm.handle();
  hips_ps_table_t const failed = handle();
  throw_if_failed(without_lock([&] { return hips_ps_table_recover(ranks, failed, &made->table_, &num_lost); }));
  made->type_ = type_;
  made->type_name_ = type_name_;
  made->row_length_ = row_length_;
  return {std::move(made), num_lost};
}

hips_status_t RowsByKey::end() {
  hips_ps_table_t const table = std::exchange(table_, nullptr);
  return without_lock([&] { return hips_ps_table_destroy(table); });
}

void RowsByKey::close() {
  throw_if_failed(end());
}

void RowsByKey::advance_clock() {
  hips_ps_table_t const table = handle();
  throw_if_failed(without_lock([&] { return hips_ps_advance_clock(table); }));
}

void RowsByKey::intent(const py::object& keys, std::uint64_t start, std::uint64_t end) {
  const Given given = checked("intent", Access::kIntent, keys, py::none());
  hips_ps_table_t const table = handle();
  throw_if_failed(without_lock([&] { return hips_ps_intent(table, keys_of(given.keys), given.keys.count(), start, end); }));
}

void RowsByKey::abort() {
  hips_ps_table_t const table = std::exchange(table_, nullptr);
  (void)without_lock([&] { return hips_ps_table_abort(table, "an exception ended the use of its table"); });
}

hips_ps_table_t RowsByKey::handle() const {
  if (table_ == nullptr) throw py::value_error("hips: the table is closed");
  return table_;
}

RowsByKey::Given RowsByKey::checked(const char* call, Access access, const py::object& keys, const py::object& rows) const {
  const std::string name = std::string("Table.") + call;
  Given given{.keys = Array::of(keys, name + ": keys", false), .rows = {}};
  if (given.keys.type() != HIPS_UINT64 && given.keys.type() != HIPS_INT64)
    throw py::type_error("hips: " + name + ": keys have type " + given.keys.type_name() + "; expected int64 or uint64");
  if (given.keys.type() == HIPS_INT64) {
    const auto* const first = static_cast<const std::int64_t*>(given.keys.data());
    const auto* const end = first + given.keys.count();
    if (const auto* const below = std::find_if(first, end, [](std::int64_t key) { return key < 0; }); below != end)
      throw py::value_error("hips: " + name + ": key " + std::to_string(*below) + " is negative; expected 0 and above");
  }
  if (access == Access::kLocalize || access == Access::kIntent) return given;
  given.rows = Array::of(rows, name + ": rows", access == Access::kPull);
  if (given.rows.type() != type_)
    throw py::type_error("hips: " + name + ": rows have type " + given.rows.type_name() + "; the table has " + type_name_);
  if (given.rows.count() != given.keys.count() * row_length_)
    throw py::value_error("hips: " + name + ": rows have " + std::to_string(given.rows.count()) + " elements; expected " +
                          std::to_string(given.keys.count()) + " keys times " + std::to_string(row_length_));
  return given;
}

void RowsByKey::run(Access access, const py::object& keys, const py::object& rows) {
  const Given given = checked(kAccessNames[static_cast<int>(access)], access, keys, rows);
  hips_ps_table_t const table = handle();
  const std::uint64_t* const from = keys_of(given.keys);
  const std::size_t num = given.keys.count();
  throw_if_failed(without_lock([&] {
    switch (access) {
      case Access::kPull:
        return hips_ps_pull(table, from, num, given.rows.data());
      case Access::kPush:
        return hips_ps_push(table, from, num, given.rows.data());
      case Access::kSet:
        return hips_ps_set(table, from, num, given.rows.data());
      case Access::kLocalize:
      case Access::kIntent:
        break;
    }
    return hips_ps_localize(table, from, num);
  }));
}

std::unique_ptr<Request> RowsByKey::start(Access access, const py::object& keys, const py::object& rows) {
  Given given = checked(kAccessNames[static_cast<int>(access)], access, keys, rows);
  hips_ps_table_t const table = handle();
  const std::uint64_t* const from = keys_of(given.keys);
  const std::size_t num = given.keys.count();
  hips_request_t request = HIPS_REQUEST_NULL;
  throw_if_failed(without_lock([&] {
    switch (access) {
      case Access::kPull:
        return hips_ps_ipull(table, from, num, given.rows.data(), &request);
      case Access::kPush:
        return hips_ps_ipush(table, from, num, given.rows.data(), &request);
      case Access::kSet:
        return hips_ps_iset(table, from, num, given.rows.data(), &request);
      case Access::kLocalize:
      case Access::kIntent:
        break;
    }
    return hips_ps_ilocalize(table, from, num, &request);
  }));
  return std::make_unique<Request>(request, std::vector<Array>{std::move(given.rows)}, rows, false);
}

void RowsByKey::pull_if_local(const py::object& keys, const py::object& rows, const py::object& here) {
  const Given given = checked("pull_if_local", Access::kPull, keys, rows);
  const Array flags = Array::of(here, "Table.pull_if_local: here", true);
  if (flags.bytes() != given.keys.count())
    throw py::value_error("hips: Table.pull_if_local: here has " + std::to_string(flags.bytes()) + " bytes; expected one for each of " +
                          std::to_string(given.keys.count()) + " keys");
  throw_if_failed(hips_ps_pull_if_local(handle(), keys_of(given.keys), given.keys.count(), given.rows.data(),
                                        static_cast<unsigned char*>(flags.data())));
}

}  // namespace hips::python

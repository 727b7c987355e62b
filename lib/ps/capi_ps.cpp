#include <hips/ps.h>

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/comm/capi/capi.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/ps/call_request.hpp"
#include "lib/ps/recovery.hpp"
#include "lib/ps/table.hpp"
#include "lib/reduce/user_op.hpp"

using hips::Code;
using hips::Status;
using hips::comm::capi::guarded;
using hips::comm::capi::null_argument;
using hips::comm::capi::Shared;
using hips::comm::capi::SharedHold;
using hips::ps::Key;
using hips::ps::MailKind;
using hips::ps::RowTable;
using hips::ps::RowTableOptions;
using hips::ps::TableCall;

struct hips_ps_table : Shared::Kept {
  struct Owned {
    hips::reduce::UserOpHold update;
    std::unique_ptr<RowTable> table;
  };
  void stay() noexcept override { table->stay(); }

  SharedHold comm;  ///< outlives the table
  std::shared_ptr<Owned> owned = std::make_shared<Owned>();
  RowTable* table = nullptr;  ///< the same
};

namespace {

/// For a call that may wait: another thread may abort the table meanwhile, and destroy the communicator.
struct TableHold {
  SharedHold comm;
  std::shared_ptr<RowTable> table;

  explicit TableHold(const hips_ps_table& handle) : comm(*handle.comm), table(handle.owned, handle.table) {}
  RowTable* operator->() const { return table.get(); }
};

struct Access {
  const char* name;
  MailKind kind;
  const std::uint64_t* keys;
  size_t num;
  const void* given;
  void* out;
};

bool is_valid(const Access& access, hips_ps_table_t table) {
  const bool needs_rows = access.kind != MailKind::kLocalize && access.kind != MailKind::kIntent;
  return !hips::comm::in_forked_child() && table != nullptr &&
         (access.num == 0 || (access.keys != nullptr && access.num <= UINT32_MAX &&
                              (!needs_rows || access.given != nullptr || access.out != nullptr)));
}

/// What is wrong with it.
Status why_invalid(const Access& access, hips_ps_table_t table) {
  if (hips::comm::in_forked_child()) return hips::comm::check_not_forked();
  if (table == nullptr) return null_argument(access.name, "table");
  if (access.keys == nullptr) return null_argument(access.name, "keys");
  if (access.num > UINT32_MAX)
    return Status::error(Code::kInvalidArgument, fmt::format("{}: {} keys; at most {} are possible",
                                                             access.name, access.num, UINT32_MAX));
  return null_argument(access.name, "rows");
}

hips_status_t run(const Access& access, hips_ps_table_t handle) {
  return guarded([&]() -> Status {
    const std::span<const Key> keys(access.keys, access.num);
    const auto* given = static_cast<const std::byte*>(access.given);
    auto* out = static_cast<std::byte*>(access.out);
    std::vector<std::uint32_t> remote;
    Status status = is_valid(access, handle) ? handle->table->use(access.kind, keys, given, out, remote)
                                             : why_invalid(access, handle);
    // Most calls have ended. To hold the table would cost them as much as copying a row.
    if (!remote.empty()) {
      const TableHold table(*handle);
      std::unique_ptr<TableCall> call;
      status = table->ask(call, access.kind, keys, given, out, remote);
      if (call) status = table->wait(std::move(call));
    }
    return status;
  });
}

hips_status_t start(const Access& access, hips_ps_table_t handle, hips_request_t* request) {
  return guarded([&]() -> Status {
    if (!is_valid(access, handle)) return why_invalid(access, handle);
    if (request == nullptr) return null_argument(access.name, "request");
    const TableHold table(*handle);
    return hips::ps::start_request<TableCall>(
        table.table, *table.comm, request, [&](std::unique_ptr<TableCall>& call) {
          return table->start(call, access.kind, {access.keys, access.num},
                              static_cast<const std::byte*>(access.given),
                              static_cast<std::byte*>(access.out));
        });
  });
}

hips_ps_table* complete(std::unique_ptr<hips_ps_table> handle, const hips_comm& comm,
                        std::unique_ptr<RowTable> made) {
  handle->comm = SharedHold(*comm.shared);
  handle->table = made.get();
  handle->owned->table = std::move(made);
  return handle.release();
}

}  // namespace

extern "C" {

hips_status_t hips_ps_table_create(hips_comm_t comm, const hips_ps_config_t* config, hips_ps_table_t* table) {
  return guarded([&]() -> Status {
    if (Status status = hips::comm::check_not_forked(); !status.ok()) return status;
    if (comm == nullptr) return null_argument("hips_ps_table_create", "comm");
    if (config == nullptr) return null_argument("hips_ps_table_create", "config");
    if (table == nullptr) return null_argument("hips_ps_table_create", "table");
    if (config->struct_size < sizeof(hips_ps_config_t))
      return Status::error(
          Code::kInvalidArgument,
          fmt::format("hips_ps_table_create: config.struct_size is {}; begin with HIPS_PS_CONFIG_INIT, "
                      "which sets it to {}",
                      config->struct_size, sizeof(hips_ps_config_t)));
    RowTableOptions options{.num_keys = config->num_keys,
                            .type = {.type = static_cast<hips::DataType>(config->type),
                                     .count = config->count,
                                     .update = static_cast<hips::ReduceOp>(config->update)},
                            .rows_per_node = config->rows_per_node,
                            .staleness = config->staleness,
                            .replicas_per_node = config->replicas_per_node};
    auto handle = std::make_unique<hips_ps_table>();
    handle->owned->update = hips::reduce::UserOpHold(options.type.update);
    // What is wrong with the type is reported on all ranks.
    if (config->first_row != nullptr && options.type.problem().empty()) {
      const auto* row = static_cast<const std::byte*>(config->first_row);
      options.first_row.assign(row, row + options.type.bytes());
    }
    auto made = RowTable::create(*comm->shared->communicator, std::move(options));
    if (!made) return made.error();
    *table = complete(std::move(handle), *comm, std::move(*made));
    return Status::success();
  });
}

hips_status_t hips_ps_table_recover(hips_comm_t comm, hips_ps_table_t failed, hips_ps_table_t* table,
                                    uint64_t* num_lost) {
  return guarded([&]() -> Status {
    if (Status status = hips::comm::check_not_forked(); !status.ok()) return status;
    if (comm == nullptr) return null_argument("hips_ps_table_recover", "comm");
    if (failed == nullptr) return null_argument("hips_ps_table_recover", "failed");
    if (table == nullptr) return null_argument("hips_ps_table_recover", "table");
    const TableHold old(*failed);
    auto handle = std::make_unique<hips_ps_table>();
    handle->owned->update = hips::reduce::UserOpHold(old->options().type.update);
    auto made = hips::ps::recover(*comm->shared->communicator, *old.table);
    if (!made) return made.error();
    if (num_lost != nullptr) *num_lost = made->num_lost;
    *table = complete(std::move(handle), *comm, std::move(made->table));
    return Status::success();
  });
}

hips_status_t hips_ps_table_destroy(hips_ps_table_t table) {
  return guarded([&]() -> Status {
    if (table == nullptr) return Status::success();
    // In a forked child the threads and connections are the parent's.
    if (Status status = hips::comm::check_not_forked(); !status.ok()) return status;
    const std::unique_ptr<hips_ps_table> owned(table);
    return owned->table->leave();
  });
}

hips_status_t hips_ps_table_abort(hips_ps_table_t table, const char* text) {
  return guarded([&]() -> Status {
    if (table == nullptr) return Status::success();
    if (hips::comm::in_forked_child()) return hips::comm::check_not_forked();
    const SharedHold comm(*table->comm);
    // Another thread may still be in a call of it.
    comm->keep(std::unique_ptr<hips_ps_table>(table));
    return comm->communicator->abort(text != nullptr ? text : "");
  });
}

// Flattened: most calls end after some tens of nanoseconds, of which calls of functions would be a large part.

[[gnu::flatten]] hips_status_t hips_ps_pull(hips_ps_table_t table, const uint64_t* keys, size_t num,
                                            void* rows) {
  return run({"hips_ps_pull", MailKind::kPull, keys, num, nullptr, rows}, table);
}

[[gnu::flatten]] hips_status_t hips_ps_push(hips_ps_table_t table, const uint64_t* keys, size_t num,
                                            const void* rows) {
  return run({"hips_ps_push", MailKind::kPush, keys, num, rows, nullptr}, table);
}

hips_status_t hips_ps_set(hips_ps_table_t table, const uint64_t* keys, size_t num, const void* rows) {
  return run({"hips_ps_set", MailKind::kSet, keys, num, rows, nullptr}, table);
}

hips_status_t hips_ps_localize(hips_ps_table_t table, const uint64_t* keys, size_t num) {
  return run({"hips_ps_localize", MailKind::kLocalize, keys, num, nullptr, nullptr}, table);
}

hips_status_t hips_ps_pull_if_local(hips_ps_table_t table, const uint64_t* keys, size_t num, void* rows,
                                    unsigned char* here) {
  return guarded([&]() -> Status {
    const Access access{"hips_ps_pull_if_local", MailKind::kPull, keys, num, nullptr, rows};
    if (!is_valid(access, table)) return why_invalid(access, table);
    if (here == nullptr && num > 0) return null_argument(access.name, "here");
    return table->table->pull_if_local({keys, num}, static_cast<std::byte*>(rows), here);
  });
}

hips_status_t hips_ps_intent(hips_ps_table_t table, const uint64_t* keys, size_t num, uint64_t start,
                             uint64_t end) {
  return guarded([&]() -> Status {
    const Access access{"hips_ps_intent", MailKind::kIntent, keys, num, nullptr, nullptr};
    if (!is_valid(access, table)) return why_invalid(access, table);
    return table->table->intent({keys, num}, start, end);
  });
}

hips_status_t hips_ps_advance_clock(hips_ps_table_t table) {
  return guarded([&]() -> Status {
    if (hips::comm::in_forked_child()) return hips::comm::check_not_forked();
    if (table == nullptr) return null_argument("hips_ps_advance_clock", "table");
    const TableHold held(*table);
    return held->advance_clock();
  });
}

hips_status_t hips_ps_ipull(hips_ps_table_t table, const uint64_t* keys, size_t num, void* rows,
                            hips_request_t* request) {
  return start({"hips_ps_ipull", MailKind::kPull, keys, num, nullptr, rows}, table, request);
}

hips_status_t hips_ps_ipush(hips_ps_table_t table, const uint64_t* keys, size_t num, const void* rows,
                            hips_request_t* request) {
  return start({"hips_ps_ipush", MailKind::kPush, keys, num, rows, nullptr}, table, request);
}

hips_status_t hips_ps_iset(hips_ps_table_t table, const uint64_t* keys, size_t num, const void* rows,
                           hips_request_t* request) {
  return start({"hips_ps_iset", MailKind::kSet, keys, num, rows, nullptr}, table, request);
}

hips_status_t hips_ps_ilocalize(hips_ps_table_t table, const uint64_t* keys, size_t num,
                                hips_request_t* request) {
  return start({"hips_ps_ilocalize", MailKind::kLocalize, keys, num, nullptr, nullptr}, table, request);
}

}  // extern "C"

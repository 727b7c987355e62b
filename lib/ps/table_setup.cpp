#include "lib/ps/table_setup.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/ps/mail_setup.hpp"
#include "lib/ps/table.hpp"

namespace hips::ps {
namespace {

using comm::Blob;
using comm::ByteReader;
using comm::ByteWriter;

Status check(const RowTableOptions& options) {
  const auto invalid = [](std::string text) {
    return Status::error(Code::kInvalidArgument, "table: " + std::move(text));
  };
  const RowType& type = options.type;
  if (options.num_keys == 0) return invalid("num_keys is 0; expected the number of keys");
  if (std::string problem = type.problem(); !problem.empty()) return invalid(std::move(problem));
  if (!options.first_row.empty() && options.first_row.size() != type.bytes())
    return invalid(fmt::format("first_row has {} bytes, a row {}", options.first_row.size(), type.bytes()));
  const std::uint64_t rows = options.rows_per_node != 0 ? options.rows_per_node : options.num_keys;
  if (rows > RowStore::kMostRows)
    return invalid(
        fmt::format("a node may get {} rows, and can hold {}; set rows_per_node", rows, RowStore::kMostRows));
  if (options.replicas_per_node > RowStore::kMostRows)
    return invalid(fmt::format("replicas_per_node is {}; a node can hold {}", options.replicas_per_node,
                               RowStore::kMostRows));
  if (options.replicas_per_node != 0 && !ReplicaStore::is_possible(type))
    return invalid(
        fmt::format("replicas_per_node is {}, and update is {}; only rows with update {} can have replicas",
                    options.replicas_per_node, to_string(type.update), to_string(ReduceOp::kSum)));
  return Status::success();
}

/// Of bytes that may be long; the same in all processes.
std::uint64_t digest(std::span<const std::byte> bytes) {
  std::uint64_t digest = bytes.size();
  for (const std::byte byte : bytes) digest = mixed(digest ^ static_cast<std::uint64_t>(byte));
  return digest;
}

comm::Terms terms_of(const RowTableOptions& options) {
  return {
      {"num_keys", fmt::format("{}", options.num_keys)},
      {"rows", fmt::format("{} {}", options.type.count, to_string(options.type.type))},
      // Functions have other values in other processes.
      {"update", is_user(options.type.update) ? "a function" : std::string(to_string(options.type.update))},
      {"rows_per_node", fmt::format("{}", options.rows_per_node)},
      {"staleness", fmt::format("{}", options.staleness)},
      {"replicas_per_node", fmt::format("{}", options.replicas_per_node)},
      {"first_row", fmt::format("digest {:016x}", digest(options.first_row))}};
}

void put_name(ByteWriter& writer, const SharedMemoryName& name) {
  writer.put(name.file.pid);
  writer.put(name.file.fd);
  writer.put(name.file.device);
  writer.put(name.file.inode);
  writer.put(name.token);
  writer.put(name.bytes);
}

SharedMemoryName get_name(ByteReader& reader) {
  SharedMemoryName name;
  name.file.pid = reader.get<std::int32_t>();
  name.file.fd = reader.get<std::int32_t>();
  name.file.device = reader.get<std::uint64_t>();
  name.file.inode = reader.get<std::uint64_t>();
  name.token = reader.get<std::uint64_t>();
  name.bytes = reader.get<std::uint64_t>();
  return name;
}

/// A rank's part of the set-up, a step for each exchange.
class TableSetup {
 public:
  TableSetup(comm::Communicator& members, comm::SetUpExchanges& exchanges, const RowTableOptions& options)
      : rank_(members.rank()), options_(options), setup_(members, exchanges, "table") {}

  Result<TableParts> run(TransportMail::Receive receive) {
    const Status valid = check(options_);
    if (Status status = setup_.announce(valid, valid.ok() ? terms_of(options_) : comm::Terms{}); !status.ok())
      return fail(std::move(status));
    parts_.places = setup_.places();
    parts_.spin = setup_.spin();
    ByteWriter names;
    const Status made = make_stores(names);
    // A slot holds several rows, and a rank's rings stay small.
    const std::size_t longest = 2 * (options_.type.bytes() + sizeof(Record)) + 64;
    const auto opened = setup_.open(made, names.blob(), longest, std::move(receive));
    if (!opened) return fail(opened.error());
    ByteReader first((*opened)[static_cast<std::size_t>(parts_.places.service_of[0])]);
    parts_.id = get_name(first).token;
    auto mail = setup_.connect(attach_stores((*opened)[static_cast<std::size_t>(setup_.service())]));
    if (!mail) return fail(mail.error());
    parts_.mail = std::move(*mail);
    return std::move(parts_);
  }

 private:
  /// A single node has all rows.
  [[nodiscard]] bool has_replicas() const {
    return options_.replicas_per_node != 0 && parts_.places.num_nodes() > 1;
  }

  /// Where this rank serves.
  Status make_stores(ByteWriter& names) {
    SharedMemoryName name, replicas_name;
    if (setup_.service() == rank_) {
      auto store = RowStore::create(options_.type.bytes(),
                                    options_.rows_per_node != 0 ? options_.rows_per_node : options_.num_keys,
                                    options_.type.alignment());
      if (!store) return store.error();
      parts_.store = std::make_unique<RowStore>(std::move(*store));
      name = parts_.store->name();
      if (has_replicas()) {
        auto replicas = ReplicaStore::create(options_.type, options_.replicas_per_node);
        if (!replicas) return replicas.error();
        parts_.replicas = std::make_unique<ReplicaStore>(std::move(*replicas));
        replicas_name = parts_.replicas->name();
      }
    }
    put_name(names, name);
    put_name(names, replicas_name);
    return Status::success();
  }

  /// Where another rank of the node serves.
  Status attach_stores(const Blob& names) {
    if (setup_.service() == rank_) return Status::success();
    ByteReader reader(names);
    const SharedMemoryName name = get_name(reader), replicas_name = get_name(reader);
    if (!reader.ok()) return comm::malformed(setup_.service());
    auto store = RowStore::attach(name);
    if (!store) return store.error();
    parts_.store = std::make_unique<RowStore>(std::move(*store));
    if (!has_replicas()) return Status::success();
    auto replicas = ReplicaStore::attach(options_.type, replicas_name);
    if (!replicas) return replicas.error();
    parts_.replicas = std::make_unique<ReplicaStore>(std::move(*replicas));
    return Status::success();
  }

  Rank rank_;
  const RowTableOptions& options_;
  MailSetup setup_;
  TableParts parts_;
};

}  // namespace

Result<TableParts> set_up_table(comm::Communicator& members, comm::SetUpExchanges& exchanges,
                                const RowTableOptions& options, TransportMail::Receive receive) {
  return TableSetup(members, exchanges, options).run(std::move(receive));
}

}  // namespace hips::ps

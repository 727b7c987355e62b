#include "lib/ps/table_setup.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/comm/process.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/comm/setup/member_exchange.hpp"
#include "lib/comm/setup/transport_registry.hpp"
#include "lib/ps/table.hpp"

namespace hips::ps {
namespace {

using comm::Blob;
using comm::ByteReader;
using comm::ByteWriter;
using comm::ProcessInfo;

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

/// What each rank says first.
struct Announced {
  Status status;
  ProcessInfo process;
  RowTableOptions options;
};

Blob encode(const Announced& mine) {
  ByteWriter writer;
  writer.put_status(mine.status);
  comm::put_process(writer, mine.process);
  writer.put(mine.options.num_keys);
  writer.put(mine.options.rows_per_node);
  writer.put(mine.options.staleness);
  writer.put(mine.options.replicas_per_node);
  writer.put(mine.options.type.type);
  writer.put(mine.options.type.count);
  // Functions have other values in other processes.
  writer.put(is_user(mine.options.type.update) ? ReduceOp{0xfe} : mine.options.type.update);
  writer.put_bytes(mine.options.first_row);
  return writer.take();
}

std::optional<Announced> decode(const Blob& blob) {
  ByteReader reader(blob);
  Announced read;
  read.status = reader.get_status();
  read.process = comm::get_process(reader);
  read.options.num_keys = reader.get<std::uint64_t>();
  read.options.rows_per_node = reader.get<std::uint64_t>();
  read.options.staleness = reader.get<std::uint64_t>();
  read.options.replicas_per_node = reader.get<std::uint64_t>();
  read.options.type.type = reader.get<DataType>();
  read.options.type.count = reader.get<std::uint32_t>();
  read.options.type.update = reader.get<ReduceOp>();
  const auto row = reader.get_bytes();
  read.options.first_row.assign(row.begin(), row.end());
  if (!reader.ok()) return std::nullopt;
  return read;
}

/// The first rank that differs from rank 0, and in what.
Status compare(const std::vector<Announced>& all) {
  const RowTableOptions& first = all[0].options;
  for (std::size_t r = 1; r < all.size(); ++r) {
    const RowTableOptions& other = all[r].options;
    std::string what;
    if (other.num_keys != first.num_keys) {
      what = fmt::format("num_keys {}, rank 0 {}", other.num_keys, first.num_keys);
    } else if (other.type.type != first.type.type || other.type.count != first.type.count) {
      what = fmt::format("rows of {} {}, rank 0 of {} {}", other.type.count, to_string(other.type.type),
                         first.type.count, to_string(first.type.type));
    } else if (other.type.update != first.type.update) {
      what = fmt::format("update {}, rank 0 {}", to_string(other.type.update), to_string(first.type.update));
    } else if (other.rows_per_node != first.rows_per_node) {
      what = fmt::format("rows_per_node {}, rank 0 {}", other.rows_per_node, first.rows_per_node);
    } else if (other.staleness != first.staleness) {
      what = fmt::format("staleness {}, rank 0 {}", other.staleness, first.staleness);
    } else if (other.replicas_per_node != first.replicas_per_node) {
      what = fmt::format("replicas_per_node {}, rank 0 {}", other.replicas_per_node, first.replicas_per_node);
    } else if (other.first_row != first.first_row) {
      what = "another first_row than rank 0";
    }
    if (what.empty()) continue;
    Status status = Status::error(Code::kMismatch, fmt::format("table: rank {} has {}", r, what));
    status.rank = static_cast<Rank>(r);
    return status;
  }
  return Status::success();
}

RankPlaces group(const comm::Communicator& members, const std::vector<Announced>& all) {
  const auto& origin = members.origin();
  const bool by_server = origin.named || origin.topology.ranks_per_server > 1;
  std::map<std::pair<Rank, std::string>, std::int32_t> known;
  RankPlaces places;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const auto server =
        by_server ? static_cast<Rank>(r) / static_cast<Rank>(origin.topology.ranks_per_server) : Rank{0};
    const auto [at, is_new] = known.emplace(std::pair(server, all[r].process.node_key),
                                            static_cast<std::int32_t>(places.service_of.size()));
    if (is_new) places.service_of.push_back(static_cast<Rank>(r));
    places.node_of.push_back(at->second);
  }
  return places;
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

/// The ranks that this one has a connection with: the services, and for a service all ranks.
std::vector<Rank> peers_of(Rank rank, const RankPlaces& places) {
  const auto serves = [&](Rank r) {
    return places.service_of[static_cast<std::size_t>(places.node_of[static_cast<std::size_t>(r)])] == r;
  };
  std::vector<Rank> peers;
  for (Rank r = 0; r < static_cast<Rank>(places.node_of.size()); ++r)
    if (r != rank && (serves(rank) || serves(r))) peers.push_back(r);
  return peers;
}

/// A rank's part of the set-up, a step for each exchange.
class TableSetup {
 public:
  TableSetup(comm::Communicator& members, const RowTableOptions& options)
      : members_(members), options_(options), exchange_(members), loaded_(load_process_config()) {}

  Result<TableParts> run(TransportMail::Receive receive) {
    Announced mine{.status = loaded_.status, .process = comm::this_process(), .options = options_};
    if (mine.status.ok()) mine.status = check(options_);
    if (mine.status.ok()) mine.status = comm::describe_networks(loaded_.config, mine.process);
    auto blobs = exchange_.allgather(encode(mine));
    if (!blobs) return fail(blobs.error());
    std::vector<Status> statuses;
    for (std::size_t r = 0; r < blobs->size(); ++r) {
      auto read = decode((*blobs)[r]);
      if (!read) return fail(comm::malformed(static_cast<Rank>(r)));
      statuses.push_back(read->status);
      all_.push_back(std::move(*read));
    }
    if (Status status = comm::first_failure(statuses); !status.ok()) return fail(std::move(status));
    if (Status status = compare(all_); !status.ok()) return fail(std::move(status));
    parts_.places = group(members_, all_);
    std::vector<ProcessInfo> processes;
    for (const Announced& announced : all_) processes.push_back(announced.process);
    parts_.spin = comm::spin_limits(processes, processes[static_cast<std::size_t>(members_.rank())]);

    Blob introductions;
    Status status = open(std::move(receive), introductions);
    auto opened = exchange_.allgather(with_status(status, introductions));
    if (!opened) return fail(opened.error());
    status = connect(*opened);
    if (Status agreed = comm::agree(exchange_, status); !agreed.ok()) return fail(std::move(agreed));
    return std::move(parts_);
  }

 private:
  static Blob with_status(const Status& status, const Blob& rest) {
    ByteWriter writer;
    writer.put_status(status);
    writer.put_bytes(rest);
    return writer.take();
  }

  /// A single node has all rows.
  [[nodiscard]] bool has_replicas() const {
    return options_.replicas_per_node != 0 && parts_.places.num_nodes() > 1;
  }

  /// Makes the stores, where this rank serves, and an endpoint for each peer.
  Status open(TransportMail::Receive receive, Blob& introductions) {
    const Rank rank = members_.rank();
    const auto node = static_cast<std::size_t>(parts_.places.node_of[static_cast<std::size_t>(rank)]);
    const std::size_t row_bytes = options_.type.bytes();
    ByteWriter writer;
    SharedMemoryName name, replicas_name;
    if (parts_.places.service_of[node] == rank) {
      auto store = RowStore::create(row_bytes,
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
    put_name(writer, name);
    put_name(writer, replicas_name);
    TransportMail::Options options{
        .rank = rank, .peers = peers_of(rank, parts_.places), .service = parts_.places.service_of[node]};
    // A slot holds several rows, and a rank's rings stay small.
    while (options.slot_bytes < 2 * (row_bytes + sizeof(Record)) + 64) options.slot_bytes *= 2;
    auto mail = TransportMail::create(std::move(options), std::move(receive));
    if (!mail) return mail.error();
    parts_.mail = std::move(*mail);
    std::map<std::string_view, std::size_t> transports;
    for (const Rank peer : peers_of(rank, parts_.places)) {
      const ProcessInfo& self = all_[static_cast<std::size_t>(rank)].process;
      const ProcessInfo& other = all_[static_cast<std::size_t>(peer)].process;
      const comm::TransportEntry* entry = comm::transport_between(loaded_.config.transport, self, other);
      if (entry == nullptr)
        return Status::error(Code::kUnsupported,
                             fmt::format("table: no transport between ranks {} and {}: {}", rank, peer,
                                         comm::obstacles_between(loaded_.config.transport, self, other)));
      const auto [at, is_new] = transports.emplace(entry->name, 0);
      if (is_new) {
        auto made = entry->make(loaded_.config);
        if (!made) return made.error();
        auto added = parts_.mail->add(std::move(made->transports[made->by_rail.at(0)]));
        if (!added) return added.error();
        at->second = *added;
      }
      auto introduction = parts_.mail->open(peer, at->second);
      if (!introduction) return introduction.error();
      writer.put(peer);
      writer.put_bytes(*introduction);
    }
    introductions = writer.take();
    return Status::success();
  }

  Status connect(const std::vector<Blob>& opened) {
    const Rank rank = members_.rank();
    const Rank service =
        parts_.places
            .service_of[static_cast<std::size_t>(parts_.places.node_of[static_cast<std::size_t>(rank)])];
    std::vector<Status> statuses;
    std::vector<std::span<const std::byte>> introductions;
    for (std::size_t r = 0; r < opened.size(); ++r) {
      ByteReader reader(opened[r]);
      statuses.push_back(reader.get_status());
      introductions.push_back(reader.get_bytes());
      if (!reader.ok()) return comm::malformed(static_cast<Rank>(r));
    }
    if (Status status = comm::first_failure(statuses); !status.ok()) return status;
    for (std::size_t r = 0; r < opened.size(); ++r) {
      const auto other = static_cast<Rank>(r);
      ByteReader reader(introductions[r]);
      const SharedMemoryName name = get_name(reader), replicas_name = get_name(reader);
      if (other == service && rank != service) {
        auto store = RowStore::attach(name);
        if (!store) return store.error();
        parts_.store = std::make_unique<RowStore>(std::move(*store));
        if (has_replicas()) {
          auto replicas = ReplicaStore::attach(options_.type, replicas_name);
          if (!replicas) return replicas.error();
          parts_.replicas = std::make_unique<ReplicaStore>(std::move(*replicas));
        }
      }
      while (reader.ok() && !reader.rest().empty()) {
        const Rank peer = reader.get<Rank>();
        const auto introduction = reader.get_bytes();
        if (!reader.ok()) return comm::malformed(other);
        if (peer != rank) continue;
        if (Status status = parts_.mail->connect(other, introduction); !status.ok()) return status;
      }
    }
    return Status::success();
  }

  comm::Communicator& members_;
  const RowTableOptions& options_;
  comm::MemberExchange exchange_;
  LoadedConfig loaded_;
  std::vector<Announced> all_;
  TableParts parts_;
};

}  // namespace

Result<TableParts> set_up_table(comm::Communicator& members, const RowTableOptions& options,
                                TransportMail::Receive receive) {
  return TableSetup(members, options).run(std::move(receive));
}

}  // namespace hips::ps

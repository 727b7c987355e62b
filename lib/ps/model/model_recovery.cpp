#include "lib/ps/model/model_recovery.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/ps/mail_setup.hpp"
#include "lib/ps/ranks_left.hpp"

namespace hips::ps {
namespace {

/// A rank's part of the recovery.
class ModelRecovery {
 public:
  ModelRecovery(comm::Communicator& members, comm::SetUpExchanges& exchanges, const SharedModel& failed)
      : members_(members), exchanges_(exchanges), failed_(failed) {}

  /// The values that are left.
  Result<std::vector<std::byte>> run() {
    const auto ranks = ranks_left(exchanges_, failed_.members(), failed_.id(), "model");
    if (!ranks) return fail(ranks.error());
    ranks_ = *ranks;
    std::vector<std::byte> values(failed_.options().count * size_of(failed_.options().type));
    Status status = exchanges_.agree(find_all_shards());
    if (!status.ok()) return fail(std::move(status));
    if (status = hear_what_replicas_have(); !status.ok()) return fail(std::move(status));
    for (std::uint16_t shard = 0; shard < failed_.shards().num; ++shard)
      if (status = gather(shard, values.data() + failed_.shards().begin_byte(shard)); !status.ok())
        return fail(std::move(status));
    return values;
  }

 private:
  /// The rank that had a rank of the failed model; -1: it is gone.
  [[nodiscard]] Rank left(Rank rank) const {
    const auto at = std::ranges::find(ranks_, rank);
    return at == ranks_.end() ? -1 : static_cast<Rank>(at - ranks_.begin());
  }
  [[nodiscard]] Rank server(std::uint16_t shard) const { return left(failed_.places().service_of[shard]); }
  /// The rank with the replica of a shard; -1: there is none.
  [[nodiscard]] Rank replica(std::uint16_t shard) const {
    const std::int32_t node =
        failed_.options().divergence_max >= 0 ? replica_node(failed_.places(), failed_.shards(), shard) : -1;
    return node < 0 ? -1 : left(failed_.places().service_of[static_cast<std::size_t>(node)]);
  }

  [[nodiscard]] Status find_all_shards() const {
    const Shards& shards = failed_.shards();
    for (std::uint16_t shard = 0; shard < shards.num; ++shard) {
      if (server(shard) >= 0 || replica(shard) >= 0) continue;
      const bool has_replicas = failed_.options().divergence_max >= 0 && failed_.places().num_nodes() > 1;
      return Status::error(Code::kPeerLost,
                           fmt::format("model: elements {} to {} are lost: the node of shard {} is gone{}",
                                       shards.begin(shard), shards.begin(shard + 1) - 1, shard,
                                       has_replicas ? ", and so is that of its replica"
                                                    : "; with divergence_max it has a replica"));
    }
    return Status::success();
  }

  /// Which flushes of this rank are in replicas.
  Status hear_what_replicas_have() {
    comm::ByteWriter writer;
    const ShardReplica* const mine = failed_.agent() == nullptr ? nullptr : failed_.agent()->replica();
    if (mine != nullptr)
      for (const auto& [sender, flush] : mine->stored()) {
        writer.put(mine->shard());
        writer.put(sender);
        writer.put(flush);
      }
    const auto told = exchanges_.allgather(writer.blob());
    if (!told) return told.error();
    stored_.assign(failed_.shards().num, 0);
    for (std::size_t r = 0; r < told->size(); ++r) {
      comm::ByteReader reader((*told)[r]);
      while (!reader.rest().empty()) {
        const auto shard = reader.get<std::uint16_t>();
        const auto sender = reader.get<Rank>();
        const auto flush = reader.get<std::uint64_t>();
        if (!reader.ok() || shard >= stored_.size()) return comm::malformed(static_cast<Rank>(r));
        if (sender == failed_.members().rank()) stored_[shard] = flush;
      }
    }
    return Status::success();
  }

  /// The values of a shard on all ranks.
  Status gather(std::uint16_t shard, std::byte* values) {
    const std::size_t bytes = failed_.shards().bytes(shard);
    const std::uint64_t length = failed_.shards().length(shard);
    if (length == 0) return Status::success();
    const DataType type = failed_.options().type;
    const ModelAgent* const agent = failed_.agent();
    if (const Rank root = server(shard); root >= 0) {
      if (members_.rank() == root) std::memcpy(values, agent->values().data(), bytes);
      return members_.call({.collective = Collective::kBcast,
                            .in = values,
                            .out = values,
                            .count = length,
                            .type = type,
                            .root = root});
    }
    std::memset(values, 0, bytes);
    if (members_.rank() == replica(shard)) std::memcpy(values, agent->replica()->values().data(), bytes);
    if (agent != nullptr) agent->sent().add_missing({values, bytes}, type, shard, stored_[shard]);
    return members_.allreduce(values, values, length, type, ReduceOp::kSum);
  }

  comm::Communicator& members_;
  comm::SetUpExchanges& exchanges_;
  const SharedModel& failed_;
  std::vector<Rank> ranks_;            ///< by rank, its rank in the failed model
  std::vector<std::uint64_t> stored_;  ///< by shard: the last flush of this rank that the replica has
};

Status recover(comm::Communicator& members, SharedModel& failed, std::unique_ptr<SharedModel>& recovered) {
  std::vector<std::byte> values;
  Status status = set_up_together(members, [&](comm::SetUpExchanges& exchanges) {
    auto left = ModelRecovery(members, exchanges, failed).run();
    if (!left) return left.error();
    values = std::move(*left);
    return Status::success();
  });
  if (!status.ok()) return status;
  SharedModelOptions options = failed.options();
  options.first = values.data();
  auto made = SharedModel::create(members, options);
  if (!made) return made.error();
  recovered = std::move(*made);
  return Status::success();
}

}  // namespace

Result<std::unique_ptr<SharedModel>> recover_model(comm::Communicator& members, SharedModel& failed) {
  if (const Status ended = failed.end(); !ended.ok()) return fail(members.fail_all(ended));
  std::unique_ptr<SharedModel> recovered;
  Status status = attempt_together(members, "model", [&] { return recover(members, failed, recovered); });
  if (!status.ok()) return fail(std::move(status));
  return recovered;
}

}  // namespace hips::ps

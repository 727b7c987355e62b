#pragma once

#include <memory>

#include "lib/base/result.hpp"
#include "lib/base/wait/wait_policy.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/ps/replica_store.hpp"
#include "lib/ps/row_store.hpp"
#include "lib/ps/service.hpp"
#include "lib/ps/transport_mail.hpp"

namespace hips::ps {

struct RowTableOptions;

/// What a table consists of on one rank.
struct TableParts {
  RankPlaces places;
  std::uint64_t id = 0;                    ///< the same on all ranks
  std::unique_ptr<RowStore> store;         ///< of the node; owned by the rank that serves
  std::unique_ptr<ReplicaStore> replicas;  ///< of the node; null: it can have none
  std::unique_ptr<TransportMail> mail;
  SpinLimits spin;  ///< of a thread that waits
};

/// Connects the ranks, and gives each node a store. Collective.
///
/// Cost     three exchanges of all ranks; the table itself makes another and a greeting on each connection.
/// Errors   the same on all ranks; see RowTable::create().
Result<TableParts> set_up_table(comm::Communicator& members, comm::SetUpExchanges& exchanges,
                                const RowTableOptions& options, TransportMail::Receive receive);

}  // namespace hips::ps

#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/config/config.hpp"
#include "lib/base/exception_status.hpp"
#include "lib/base/result.hpp"
#include "lib/base/wait/wait_policy.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/comm/setup/bootstrap.hpp"
#include "lib/comm/setup/member_exchange.hpp"
#include "lib/comm/setup/transport_registry.hpp"
#include "lib/comm/setup/wiring.hpp"
#include "lib/ps/rank_places.hpp"
#include "lib/ps/transport_mail.hpp"

namespace hips::ps {

/// Calls set_up(exchanges) on all ranks. Where one has no memory for its part, all get that error.
template <typename SetUp>
Status set_up_together(comm::Communicator& members, SetUp&& set_up) {
  comm::MemberExchange exchange(members);
  comm::SetUpExchanges exchanges(exchange);
  try {
    return set_up(exchanges);
  } catch (const std::bad_alloc&) {
    // The others wait in an exchange.
    return exchanges.give_up(status_of_exception());
  }
}

/// Connects the ranks of a communicator for mail: groups them by node, and connects every rank with the services of all nodes.
/// Servers of an emulated topology count as nodes. Between nodes all NICs carry mail that their wiring shows to be for data, as
/// with collectives: see wiring_of(). Each step is collective; what a rank adds to it reaches all others.
///
/// Errors   the same on all ranks. kUnsupported: no transport between two ranks.
class MailSetup {
 public:
  /// `name`: of what is set up, for errors. `exchanges`: of the members.
  MailSetup(comm::Communicator& members, comm::SetUpExchanges& exchanges, std::string name);

  /// First step: finds that `terms` are equal on all ranks, and `status` and this process in order.
  Status announce(Status status, const comm::Terms& terms);
  /// Second step: opens a connection to each peer, if `status` is ok. `longest`: bytes that some slots have to hold at once.
  Result<std::vector<comm::Blob>> open(Status status, const comm::Blob& mine, std::size_t longest,
                                       TransportMail::Receive receive);
  /// Last step: connects, if `status` is ok.
  Result<std::unique_ptr<TransportMail>> connect(Status status);

  // After announce().
  [[nodiscard]] const RankPlaces& places() const { return places_; }
  /// The rank that serves on this one's node.
  [[nodiscard]] Rank service() const { return places_.service_at(members_.rank()); }
  /// Of a thread that waits.
  [[nodiscard]] SpinLimits spin() const;

 private:
  Result<std::vector<comm::Blob>> tell(const Status& status, const comm::Blob& part, const comm::Blob& mine,
                                       std::vector<comm::Blob>& parts);
  [[nodiscard]] std::vector<std::size_t> nics_to(Rank peer, const comm::TransportEntry& entry) const;
  Status open_all(std::size_t longest, TransportMail::Receive receive, comm::ByteWriter& introductions);
  Status connect_all();

  comm::Communicator& members_;
  std::string name_;
  comm::SetUpExchanges& exchanges_;
  LoadedConfig loaded_;
  RankPlaces places_;
  std::vector<comm::ProcessInfo> processes_;  ///< by rank
  std::optional<comm::NodeWiring> wiring_;    ///< between their nodes
  std::vector<comm::Blob> introductions_;     ///< by rank: of its connections
  std::unique_ptr<TransportMail> mail_;
};

}  // namespace hips::ps

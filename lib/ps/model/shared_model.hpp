#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <hips/status.hpp>

#include "lib/comm/communicator.hpp"
#include "lib/ps/mail_driver.hpp"
#include "lib/ps/model/model_agent.hpp"
#include "lib/ps/model/model_client.hpp"
#include "lib/ps/model/shards.hpp"

namespace hips::ps {

struct SharedModelOptions {
  std::uint64_t count = 0;  ///< elements
  DataType type = DataType::kFloat32;
  const std::byte* first = nullptr;      ///< values in the beginning; null: zeros. Used by create()
  std::uint32_t num_shards = 0;          ///< on the first nodes; 0: one on each
  std::uint64_t delay_max = UINT64_MAX;  ///< of an update that is applied
  bool schedules = true;                 ///< false: all is sent at once
  double divergence_max = -1;  ///< norm of what the replica of a shard may lack; negative: no replicas
};

/// A vector that all ranks of a communicator fetch and add updates to, in shards on several nodes. Each update is applied or
/// handed back.
///
/// Owns     connections of its own to the other nodes.
/// Threads  any number at once.
/// Errors   a failure of the communicator is one of the model. It stays failed.
class SharedModel {
 public:
  /// Collective over the communicator, which outlives the model.
  ///
  /// Errors   kInvalidArgument: an option; ranks that disagree: kMismatch. kUnsupported: no transport between two ranks.
  static Result<std::unique_ptr<SharedModel>> create(comm::Communicator& members, SharedModelOptions options);
  ~SharedModel() = default;  ///< no call is outstanding, on any rank: see leave()
  SharedModel(const SharedModel&) = delete;
  SharedModel& operator=(const SharedModel&) = delete;

  /// Starts a call: of `out`, `given` or both. An update is of the versions of the last fetch of this rank
  /// that wait() has ended. `applied`, by shard,
  /// may be null.
  ///
  /// Errors   the failure of the model.
  Status start(std::unique_ptr<ModelCall>& call, const std::byte* given, unsigned char* applied,
               std::byte* out);
  /// Makes progress; true if the call has ended or the model has failed.
  bool test(const ModelCall& call);
  /// Blocks until the call has ended, and returns how.
  Status wait(std::unique_ptr<ModelCall> call);
  /// Waits until all ranks have come here: then no rank needs this one any more. Collective.
  Status leave() { return driver_.leave(); }

  [[nodiscard]] const Shards& shards() const { return shards_; }

  // For recover_model().
  /// MailDriver::end(). Then nobody uses its parts on this rank.
  Status end() { return driver_.end(); }
  /// The same on all ranks, and of no other model.
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] comm::Communicator& members() const { return members_; }
  [[nodiscard]] const SharedModelOptions& options() const { return options_; }
  [[nodiscard]] const RankPlaces& places() const { return places_; }
  [[nodiscard]] const ModelAgent* agent() const { return agent_.get(); }  ///< null: another rank serves

 private:
  SharedModel(comm::Communicator& members, SharedModelOptions options);
  Status set_up();
  Status set_up(comm::SetUpExchanges& exchanges);
  [[nodiscard]] Status compare_first(std::span<const comm::Blob> told);
  Status begin_to_serve(std::unique_ptr<TransportMail> mail, SpinLimits spin);
  Status receive(std::span<const std::byte> messages);

  comm::Communicator& members_;
  SharedModelOptions options_;
  RankPlaces places_;
  Shards shards_;
  std::uint64_t id_ = 0;
  std::vector<std::uint64_t> versions_;  ///< of the last fetch; with the lock of the driver
  std::unique_ptr<ModelClient> client_;
  std::unique_ptr<ModelAgent> agent_;                   ///< of the node; null where another rank serves
  std::mutex mutex_;                                    ///< of the next
  std::vector<std::unique_ptr<ModelCall>> unanswered_;  ///< that the failure has ended
  MailDriver driver_;                                   ///< uses the above
};

}  // namespace hips::ps

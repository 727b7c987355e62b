#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <hips/status.hpp>

#include "lib/ps/mail.hpp"
#include "lib/ps/model/model_mail.hpp"
#include "lib/ps/model/shards.hpp"

namespace hips::ps {

/// A fetch or a push of a rank, while something is missing. It lives until it is done.
struct ModelCall {
  std::byte* out = nullptr;              ///< where the values go; null: a push without
  const std::byte* given = nullptr;      ///< the update; null: a fetch alone
  std::vector<std::uint64_t> versions;   ///< by shard: of the values, or that the update was computed from
  std::vector<unsigned char> applied;    ///< of a push, by shard: 1, or 0 where the part is handed back
  unsigned char* applied_out = nullptr;  ///< where `applied` is copied to in the end; may be null
  std::vector<std::uint64_t> found;      ///< of a push, by shard: its version, as the update found it
  std::vector<std::uint64_t> received;   ///< of a fetch, by shard: bytes
  std::uint32_t num_missing = 0;         ///< shards
  std::atomic<bool> done{true};
};

/// A rank's side of a model: asks the agent of its node.
///
/// Threads  one at a time.
class ModelClient {
 public:
  /// `agent`: the rank that serves this one's node.
  ModelClient(Rank rank, Rank agent, Shards shards, Mail& mail)
      : rank_(rank), agent_(agent), shards_(shards), mail_(mail) {}

  /// `call` has `out`.
  void fetch(ModelCall& call);
  /// `call` has `given` and `versions`; with `out`, each shard is fetched as soon as its part of the update has ended. Then
  /// `versions` are of the values in the end.
  void push(ModelCall& call);
  /// Errors   kMismatch: an answer to nothing.
  Status on_mail(const ModelMessage& message);
  /// Sends parts of updates that there is room for; true if there was any.
  bool advance();

 private:
  /// An update that is on its way to the agent.
  struct Sending {
    std::uint32_t number = 0;
    const ModelCall* call = nullptr;
    std::uint16_t shard = 0;
    std::uint64_t offset = 0;
  };
  std::uint32_t begin(ModelCall& call);
  void ask(std::uint16_t shard, std::uint32_t number);
  Status on_values(ModelCall& call, const ModelMessage& message);

  Rank rank_, agent_;
  Shards shards_;
  Mail& mail_;
  std::uint32_t last_number_ = 0;
  std::map<std::uint32_t, ModelCall*> calls_;
  std::vector<Sending> sending_;
};

}  // namespace hips::ps

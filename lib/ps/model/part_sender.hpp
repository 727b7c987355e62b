#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <hips/types.hpp>

#include "lib/base/wait/clock.hpp"
#include "lib/ps/mail.hpp"
#include "lib/ps/model/model_mail.hpp"

namespace hips::ps {

/// The bytes of a shard, while they arrive.
struct PartialVector {
  std::vector<std::byte> bytes;
  std::size_t ready = 0;  ///< of these, from the first on
};

/// Sends vectors to other ranks in parts, as they become ready and as the mail has room.
///
/// Threads  one at a time.
class PartSender {
 public:
  /// So many bytes left in so much time, while vectors waited for room in the mail.
  struct Measured {
    std::size_t bytes = 0;
    std::int64_t ns = 0;
  };
  using Sent = std::function<void()>;

  PartSender(Mail& mail, const Clock& clock, Rank self) : mail_(mail), clock_(clock), self_(self) {}

  /// Sends all of `vector`, each part with `head` and its offset; then calls `sent`, which may be empty.
  void send(Rank to, const ModelHead& head, std::shared_ptr<const PartialVector> vector, Sent sent = {});
  /// Sends what can be sent; true if there was anything.
  bool advance();
  /// What was measured since the last call, if it is of at least so many bytes.
  std::optional<Measured> take_measured(std::size_t least_bytes);

 private:
  struct Sending {
    Rank to = -1;
    ModelHead head;
    std::shared_ptr<const PartialVector> vector;
    Sent sent;
    std::size_t part_bytes = 0;
    std::size_t offset = 0;
    bool waits = false;  ///< for room
  };
  bool advance(Sending& sending);
  void set_waits(Sending& sending, bool waits);

  Mail& mail_;
  const Clock& clock_;
  Rank self_;  ///< what it sends to itself tells nothing of the network
  std::vector<Sending> vectors_;
  std::size_t num_waiting_ = 0;  ///< vectors
  std::int64_t since_ns_ = 0;    ///< while some wait: from then on
  Measured measured_;
};

}  // namespace hips::ps

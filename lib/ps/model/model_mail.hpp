#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <hips/status.hpp>
#include <hips/types.hpp>

#include "lib/base/result.hpp"
#include "lib/ps/mail.hpp"

namespace hips::ps {

/// What ranks send each other about a model. docs/parameter-server.md has the protocol.
enum class ModelMail : std::uint8_t {
  // From a rank to the agent of its node.
  kUpdate = 1,  ///< a part of an update that the rank pushes
  kFetch,       ///< the rank wants the values of a shard
  // From an agent to a rank of its node.
  kFetched,  ///< a part of the values
  kEnded,    ///< an update was applied, or is handed back
  // From an agent to the scheduler.
  kRequest,  ///< an update is here
  kAsk,      ///< the node wants the values of a shard; without a scheduler, to the shard's node
  kSent,     ///< the shard's node has sent its values to the first node of a chain
  kApplied,  ///< the shard's node has applied a group
  kRate,     ///< how fast the node sent
  // From the scheduler to an agent.
  kJoin,    ///< the update becomes part of a group: add what comes from the node before, send to the next one
  kRelay,   ///< send the values to the next node
  kExpect,  ///< to the shard's node: so many updates come in a group, which so many others may overtake
  kOutcome,  ///< an update was applied, or is handed back; without a scheduler, from the shard's node
  // Between agents.
  kSum,     ///< a part of the sum of a group's first members
  kValues,  ///< a part of a shard's values
  // Of replicas.
  kFlush,  ///< from the shard's node to a group's sender: the group is part of this flush; with the last one: send them
  kReplica,  ///< from that to the replica's node: a part of the sum of a flush
  kStored,   ///< from the replica's node to the sender and to the shard's node: it has the flush
};
inline constexpr auto kLastModelMail = ModelMail::kStored;

/// Is it for a rank, and not for an agent?
constexpr bool is_answer(ModelMail kind) {
  return kind == ModelMail::kFetched || kind == ModelMail::kEnded;
}

/// The begin of a message; `bytes` bytes of a vector follow, padded to 8.
struct ModelHead {
  ModelMail kind = ModelMail::kUpdate;
  /// kOutcome, kEnded: applied; kJoin: there is a member before; kSum: to the shard, with all members; kFlush: the last group
  std::uint8_t flag = 0;
  std::uint16_t shard = 0;
  std::uint32_t bytes = 0;
  std::uint64_t offset = 0;  ///< in bytes, of the part in the shard; kRate: bytes
  /// Of the shard: that the update's rank read, that the update found, of the values. kRate: ns; kExpect: updates that may
  /// overtake; kFlush, kReplica, kStored: the number of the flush.
  std::uint64_t version = 0;
  std::uint64_t number = 0;  ///< of a group or of a chain of nodes; 0: not of the scheduler's
  Rank rank =
      -1;  ///< whose update; who asks; kReplica, kStored: the sender; kSum, not to the shard: whose update is added next
  std::uint32_t update = 0;  ///< its rank's number of it, or of the fetch
  Rank next = -1;            ///< kJoin: rank of the next member; kRelay: service of the next node; -1: none
  /// kJoin: the next member's update, or if there is none as of kSum: members; kExpect: members.
  std::uint32_t more = 0;
};
static_assert(sizeof(ModelHead) == 48);

constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + 7) / 8 * 8;
}

/// Writes a message; `part`: of head.bytes bytes.
inline void write(Mail& mail, Rank to, const ModelHead& head, const std::byte* part) {
  const std::size_t size = sizeof head + padded(head.bytes);
  std::byte* const place = mail.begin(to, size);
  std::memcpy(place, &head, sizeof head);
  std::memcpy(place + sizeof head, part, head.bytes);
  mail.end(to, size);
}
/// Writes a message without a part.
inline void write(Mail& mail, Rank to, const ModelHead& head) {
  std::memcpy(mail.begin(to, sizeof head), &head, sizeof head);
  mail.end(to, sizeof head);
}

/// A message that has arrived.
struct ModelMessage {
  ModelHead head;
  const std::byte* part = nullptr;

  /// Takes the first message from `bytes`.
  ///
  /// Errors   kMismatch: it is none.
  static Result<ModelMessage> take(std::span<const std::byte>& bytes) {
    ModelMessage message;
    const bool has_head = bytes.size() >= sizeof(ModelHead);
    if (has_head) std::memcpy(&message.head, bytes.data(), sizeof(ModelHead));
    const std::size_t size = sizeof(ModelHead) + padded(message.head.bytes);
    const bool known = message.head.kind >= ModelMail::kUpdate && message.head.kind <= kLastModelMail;
    if (!has_head || !known || bytes.size() < size)
      return fail(Code::kMismatch, "a rank sent mail that is no message of a model", Scope::kCommunicator);
    message.part = bytes.data() + sizeof(ModelHead);
    bytes = bytes.subspan(size);
    return message;
  }
};

}  // namespace hips::ps

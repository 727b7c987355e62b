#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <hips/status.hpp>

#include "lib/base/result.hpp"
#include "lib/ps/row_type.hpp"

namespace hips::ps {

/// What ranks send each other about rows. docs/parameter-server.md has the protocol.
enum class MailKind : std::uint8_t {
  kPull = 1,  ///< to a service: answer with the rows
  kPush,      ///< to a service: change the rows by these; answer kDone
  kSet,       ///< to a service: replace the rows by these; answer kDone
  kLocalize,  ///< from a rank to its service: bring the rows here; answer kDone
  kMove,      ///< from a service to the home's: my node owns the rows from now on
  kIntent,  ///< from a rank to its service: it is going to use the keys, from and until so many clocks from now
  kWant,    ///< from a service to the home's: ranks of my node have intents for the keys
  kWantMove,   ///< the same, and the rows can come: kMove if no other node has an intent, else answer kStays
  kUnwant,     ///< from a service to the home's: they have no more
  kStays,      ///< from the home's service: the rows do not come
  kAlone,      ///< from the home's service: no other node has an intent for these keys any more
  kReplicate,  ///< from the home's service to the owner's: give the requester's node replicas
  kReplica,    ///< from the owner's service: the rows as they are now
  kFlush,  ///< to the owner's service: what ranks of my node have pushed to replicas; answer kValue or kKnown
  kRefresh,  ///< to the owner's service: answer kValue; kKnown if the rows are as they were when it sent them last
  kValue,        ///< from the owner's service: the rows as they are now
  kKnown,        ///< from the owner's service: an answer without the rows
  kDrop,         ///< to the owner's service: my node has the replicas no more; answer kDropped
  kDropped,      ///< from the owner's service: your node has no replicas of these keys
  kRecall,       ///< from the owner's service: give the replicas up
  kRelayedRows,  ///< from the owner's service: kRows for a rank of a node that may have replicas
  kRelayedDone,  ///< the same of kDone
  kHandOver,     ///< from the home's service to the owner's: give the rows to the requester's node
  kTransfer,     ///< from the last owner's service to the next one's: the rows
  kRows,         ///< to the requester: what it pulled
  kDone,         ///< to the requester: this many rows are done
  kClock,  ///< from a rank to its service: clocks that it has ended, in place of a key; so in the next two
  kNodeClock,  ///< from a service to another one: clocks that all ranks of its node have ended
  kAllClocks,  ///< from a service to the ranks of its node: clocks that all ranks have ended
};
inline constexpr auto kLastMailKind = MailKind::kAllClocks;

/// Is it for the calls of a rank, and not for a service?
constexpr bool is_answer(MailKind kind) {
  return kind == MailKind::kRows || kind == MailKind::kDone || kind == MailKind::kAllClocks;
}

/// Whether records of a kind carry a row.
constexpr bool has_rows(MailKind kind) {
  return kind == MailKind::kPush || kind == MailKind::kSet || kind == MailKind::kTransfer ||
         kind == MailKind::kRows || kind == MailKind::kReplica || kind == MailKind::kFlush ||
         kind == MailKind::kValue || kind == MailKind::kRelayedRows;
}

/// The begin of a batch: records of one kind, of one request.
struct BatchHead {
  MailKind kind = MailKind::kPull;
  std::uint8_t forwarded = 0;  ///< by the key's home
  std::uint16_t count = 0;     ///< records that follow
  std::uint32_t request = 0;   ///< the requester's number
  Rank requester = -1;         ///< gets the answer; kMove, kHandOver: the service of the next owner
  Rank answerer = -1;          ///< kRelayedRows, kRelayedDone: the service of the owner
};
static_assert(sizeof(BatchHead) == 16);

/// The begin of a record; its row follows, padded to 8 bytes.
struct Record {
  Key key = 0;
  std::uint32_t position = 0;  ///< of the key in its request; kIntent: clocks until it starts
  std::uint32_t until =
      0;  ///< kIntent: clocks until it ends; kValue: 1 if it answers; kFlush: 1: answer kValue
};
static_assert(sizeof(Record) == 16);

constexpr std::size_t record_bytes(MailKind kind, std::size_t row_bytes) {
  return sizeof(Record) + (has_rows(kind) ? (row_bytes + 7) / 8 * 8 : 0);
}

/// Carries batches, records of a table or messages of a model, between ranks. Those from one rank to another arrive in the order in which they were
/// begun, each once.
///
/// Threads  one at a time.
class Mail {
 public:
  virtual ~Mail() = default;
  /// Room for a batch of at most `bytes` bytes to `to`, which may be this rank; valid until end(). At most most_bytes().
  virtual std::byte* begin(Rank to, std::size_t bytes) = 0;
  /// Ends the batch that begin() began: its first `bytes` bytes are sent; a multiple of 8; 0: none are.
  virtual void end(Rank to, std::size_t bytes) = 0;
  [[nodiscard]] virtual std::size_t most_bytes() const = 0;
  /// Whether a batch to `to` would leave soon: what is long and can wait is better written in parts, when there is room.
  [[nodiscard]] virtual bool has_room(Rank to) const = 0;
};

/// Writes records to one rank, in as many batches as it takes. One writer for a rank at a time.
class BatchWriter {
 public:
  BatchWriter(Mail& mail, Rank to, BatchHead head, std::size_t row_bytes, std::size_t expected)
      : mail_(mail),
        to_(to),
        head_(head),
        record_bytes_(record_bytes(head.kind, row_bytes)),
        expected_(expected) {}
  ~BatchWriter() { close(); }
  BatchWriter(const BatchWriter&) = delete;
  BatchWriter& operator=(const BatchWriter&) = delete;

  /// Adds a record; returns the place of its row.
  std::byte* add(Key key, std::uint32_t position, std::uint32_t until = 0) {
    if (batch_ == nullptr || head_.count == most_) open();
    std::byte* const place = batch_ + sizeof(BatchHead) + head_.count * record_bytes_;
    const Record record{.key = key, .position = position, .until = until};
    std::memcpy(place, &record, sizeof record);
    ++head_.count;
    if (expected_ > 0) --expected_;
    return place + sizeof record;
  }

 private:
  void open() {
    close();
    const std::size_t fit = (mail_.most_bytes() - sizeof(BatchHead)) / record_bytes_;
    most_ = static_cast<std::uint16_t>(
        std::min<std::size_t>({fit, UINT16_MAX, std::max<std::size_t>(expected_, 1)}));
    batch_ = mail_.begin(to_, sizeof(BatchHead) + most_ * record_bytes_);
  }
  void close() {
    if (batch_ == nullptr) return;
    std::memcpy(batch_, &head_, sizeof head_);
    mail_.end(to_, sizeof(BatchHead) + head_.count * record_bytes_);
    batch_ = nullptr;
    head_.count = 0;
  }

  Mail& mail_;
  Rank to_;
  BatchHead head_;
  std::size_t record_bytes_;
  std::size_t expected_;  ///< records that are still to come, if the caller knows
  std::uint16_t most_ = 0;
  std::byte* batch_ = nullptr;
};

/// A batch that has arrived.
class Batch {
 public:
  /// Takes the first batch from `bytes`.
  ///
  /// Errors   kMismatch: it is none.
  static Result<Batch> take(std::span<const std::byte>& bytes, std::size_t row_bytes) {
    Batch batch;
    if (bytes.size() < sizeof(BatchHead)) return broken();
    std::memcpy(&batch.head_, bytes.data(), sizeof batch.head_);
    const bool known = batch.head_.kind >= MailKind::kPull && batch.head_.kind <= kLastMailKind;
    if (!known || batch.head_.count == 0) return broken();
    batch.record_bytes_ = record_bytes(batch.head_.kind, row_bytes);
    const std::size_t size = sizeof(BatchHead) + batch.head_.count * batch.record_bytes_;
    if (bytes.size() < size) return broken();
    batch.records_ = bytes.data() + sizeof(BatchHead);
    bytes = bytes.subspan(size);
    return batch;
  }

  [[nodiscard]] const BatchHead& head() const { return head_; }
  [[nodiscard]] std::size_t size() const { return head_.count; }
  [[nodiscard]] Record record(std::size_t i) const {
    Record record;
    std::memcpy(&record, records_ + i * record_bytes_, sizeof record);
    return record;
  }
  [[nodiscard]] const std::byte* row(std::size_t i) const {
    return records_ + i * record_bytes_ + sizeof(Record);
  }

 private:
  static tl::unexpected<Status> broken() {
    return fail(Code::kMismatch, "a rank sent mail that is no batch of rows", Scope::kCommunicator);
  }

  BatchHead head_;
  std::size_t record_bytes_ = 0;
  const std::byte* records_ = nullptr;
};

}  // namespace hips::ps

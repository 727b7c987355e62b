#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hips/types.hpp>

#include "lib/base/collective.hpp"
#include "lib/comm/calls/call_args.hpp"
#include "lib/comm/control/wire.hpp"

namespace hips::comm {

/// One collective call of one rank on one communicator, as reported to its peers.
struct CallEntry {
  enum class Kind : std::uint8_t {
    kNone,       ///< no call yet, or no longer in the history
    kHips,       ///< executed by HiPS
    kDelegated,  ///< delegated to native MPI by the interposer
    kDestroyed,  ///< the rank has destroyed the communicator, after the call of this index; `count`: uses that ended before
  };
  std::uint64_t index = 0;  ///< 1, 2, ...: counts both kinds
  Kind kind = Kind::kNone;
  bool finished = false;
  Collective collective = Collective::kAllreduce;
  std::uint32_t detail = 0;  ///< CallArgs::detail()
  std::uint64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::string what;  ///< kDelegated: the function that was delegated

  friend bool operator==(const CallEntry&, const CallEntry&) = default;
};

/// "allreduce #5 (4 x float64, sum)", "bcast #5 (4 x float64, root 2)", "call #5 (MPI_Allreduce, delegated to
/// native MPI)", "no call yet"
std::string to_string(const CallEntry& entry);

/// True if two ranks with these entries are in the same call: equal index, kind and signature.
bool same_call(const CallEntry& a, const CallEntry& b);

void put_call(ByteWriter& writer, const CallEntry& entry);
CallEntry get_call(ByteReader& reader);

/// The last calls of this rank on one communicator. The control thread reads them while the caller's thread
/// waits or computes. A write costs a few stores.
///
/// Threads  one writer at a time; any number of readers.
class CallRecord {
 public:
  static constexpr std::uint64_t kHistory = 16;

  /// Adds a call that HiPS executes and returns its index.
  std::uint64_t begin(const CallArgs& args);
  /// Marks the call of this index as complete. Outstanding calls complete in any order; memory and time grow with the gaps
  /// between those that are complete, not with their number.
  void end(std::uint64_t index);
  /// Adds a call that is delegated to native MPI. `what` lives as long as the program.
  void add_delegated(const char* what);
  /// Removes the last call, which add_delegated() has added: it did not take place.
  void take_back_delegated();

  [[nodiscard]] CallEntry last() const;
  /// The first outstanding call; the last call if none is outstanding.
  [[nodiscard]] CallEntry current() const;
  /// kNone if the call has not started or is no longer in the history.
  [[nodiscard]] CallEntry at(std::uint64_t index) const;

 private:
  /// Guarded by a sequence lock: odd while being written.
  struct Slot {
    std::atomic<std::uint64_t> version{0};
    std::atomic<std::uint64_t> index{0};
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> meta{0};  ///< kind, collective, op, type
    std::atomic<std::uint32_t> detail{0};
    std::atomic<const char*> what{nullptr};
  };
  /// Calls that follow each other.
  struct Run {
    std::uint64_t first, last;
  };
  void add_ended_early(std::uint64_t index);
  void write(CallEntry::Kind kind, const CallArgs& args, const char* what);

  std::array<Slot, kHistory> slots_;
  std::atomic<std::uint64_t> last_index_{0};
  std::atomic<std::uint64_t> finished_index_{0};  ///< this call and all before it are complete
  /// Complete, after an outstanding call; ascending, with calls between them. Writer only.
  std::vector<Run> ended_early_;
};

}  // namespace hips::comm

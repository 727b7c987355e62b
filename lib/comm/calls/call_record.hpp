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

/// One collective call of one rank on one communicator, as its peers may ask for it.
struct CallEntry {
  enum class Kind : std::uint8_t {
    kNone,      ///< no call yet, or one too long ago
    kTaken,     ///< carried out by HiPS
    kDeclined,  ///< left to the host MPI by the interposer
  };
  std::uint64_t index = 0;  ///< 1, 2, ...: taken and declined calls in one count
  Kind kind = Kind::kNone;
  bool finished = false;
  Collective collective = Collective::kAllreduce;
  std::uint32_t detail = 0;  ///< CallArgs::detail()
  std::uint64_t count = 0;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::string what;  ///< kDeclined: what was declined

  friend bool operator==(const CallEntry&, const CallEntry&) = default;
};

/// "allreduce #5 (4 x float64, sum)", "bcast #5 (4 x float64, root 2)", "call #5 (MPI_Allreduce, left to the
/// host MPI)", "no call yet"
std::string to_string(const CallEntry& entry);

/// Would two ranks with these entries for the same index get on? False for another signature or outcome.
bool same_call(const CallEntry& a, const CallEntry& b);

void put_call(ByteWriter& writer, const CallEntry& entry);
CallEntry get_call(ByteReader& reader);

/// The last calls of this rank on one communicator. The control thread reads it while the caller's thread is
/// stuck, or gone elsewhere; writing costs a few stores.
///
/// Threads  one writer at a time; any number of readers.
class CallRecord {
 public:
  static constexpr std::uint64_t kHistory = 16;

  /// Enters a call that HiPS carries out; returns its index.
  std::uint64_t begin(const CallArgs& args);
  /// Leaves the call of this index. Calls under way together may end in any order.
  void end(std::uint64_t index);
  /// A call that goes to the host MPI. `what` lives as long as the program.
  void decline(const char* what);

  [[nodiscard]] CallEntry last() const;
  /// The first of the calls under way, else the last one.
  [[nodiscard]] CallEntry current() const;
  /// kNone where the call has not come yet or has left the history.
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
  void write(CallEntry::Kind kind, const CallArgs& args, const char* what);

  std::array<Slot, kHistory> slots_;
  std::atomic<std::uint64_t> last_index_{0};
  std::atomic<std::uint64_t> finished_index_{0};  ///< it and all before it have ended
  std::vector<std::uint64_t> ended_early_;        ///< behind calls under way; the writer's own
};

}  // namespace hips::comm

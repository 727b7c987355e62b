#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace hips {

/// How long a process polls for its peers before it sleeps.
struct SpinLimits {
  int spin_polls = 0;   ///< polls before the first yield
  int yield_polls = 0;  ///< yields before sleeping

  /// If each waiter has a core, a peer's answer arrives during the spin. With fewer cores, spinning keeps the
  /// peer from running, so the waiter yields immediately.
  static SpinLimits of(int waiters, int cores);

  /// Whether there are more waiters than cores.
  [[nodiscard]] bool oversubscribed() const { return spin_polls == 0; }
};

/// What is polled: the cost of a poll, and so what pays, differs.
enum class WaitKind : std::uint8_t {
  kMemory,       ///< cache lines: of ranks of the node, or of a NIC
  kSystemCalls,  ///< transports that ask the kernel
};
inline constexpr int kNumWaitKinds = 2;

/// Learns, for a process, how long waits should spin before they yield.
///
/// Neither the number of waiters nor that of cores can be known: containers, pods and virtual machines share
/// cores without saying so. A yield in which somebody else ran means that spinning kept somebody from
/// running, perhaps the very peer: the spin gets shorter, down to nothing. Many yields in which nobody ran make
/// it longer again.
///
/// Threads  any; a wait whose budget another thread changes uses the old one.
class WaitPolicy {
 public:
  struct Budget {
    int spin_polls = 0, yield_polls = 0;
  };

  explicit WaitPolicy(SpinLimits most) : WaitPolicy(most, true) {}
  /// One that keeps these limits: nothing is learned.
  static WaitPolicy fixed(SpinLimits limits) { return {limits, false}; }
  WaitPolicy(const WaitPolicy& other) : WaitPolicy(other.most_, other.learns_) {}
  WaitPolicy& operator=(const WaitPolicy&) = delete;

  /// More processes of this node were met: spins get no longer than these limits from now on.
  void limit(SpinLimits limits);
  [[nodiscard]] Budget budget(WaitKind kind) const;
  /// Whether note() can change something. To find out what it wants to know takes two system calls.
  [[nodiscard]] bool learns() const;
  /// Notes a wait that yielded. `lost_the_core`: somebody else ran on this core meanwhile.
  void note(WaitKind kind, bool lost_the_core);

 private:
  WaitPolicy(SpinLimits most, bool learns) : most_(most), learns_(learns) { limit(most); }

  struct Learned {
    std::atomic<int> spin_polls{INT32_MAX}, yield_polls{INT32_MAX};
    std::atomic<int> num_alone{0};  ///< waits in a row that yielded and kept the core
  };

  const SpinLimits most_;
  const bool learns_;
  std::atomic<bool> oversubscribed_{false};  ///< more processes than cores are known
  std::array<Learned, kNumWaitKinds> learned_;
};

}  // namespace hips

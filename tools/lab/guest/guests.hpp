#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"
#include "tools/lab/guest/guest.hpp"
#include "tools/lab/process/start_request.hpp"

namespace hips::lab {

/// A program to run in one of the guests.
struct Job {
  std::size_t guest = 0;
  StartRequest request;
};

/// How a job ended.
struct Outcome {
  enum class Kind {
    kRunning,    ///< not yet
    kEnded,      ///< `wait_status` says how
    kGuestLost,  ///< its guest went down first
  };
  Kind kind = Kind::kRunning;
  int wait_status = 0;

  [[nodiscard]] bool ok() const { return kind == Kind::kEnded && wait_status == 0; }
};

/// Bytes that a job printed, as they arrive.
using OnOutput = std::function<void(std::size_t job, bool is_error, std::string_view bytes)>;

/// The guests of a lab, and the loop that serves them all.
class Guests {
 public:
  using Clock = std::chrono::steady_clock;

  /// `lifeline` as run_in_sandbox() gives it; -1: none.
  explicit Guests(int lifeline);

  /// Boots them all at once and waits until every agent has said hello. One that has not done so after
  /// `limit` is booted anew, up to kBoots times: an emulated processor that loses its first timer
  /// interrupt waits for ever.
  ///
  /// Errors   kTimeout, kSystem: with the number of the guest and its last words.
  Status boot(const std::vector<GuestOptions>& options, Clock::duration limit);
  static constexpr int kBoots = 3;

  /// Runs all jobs at once; returns when each has an outcome, or at the deadline, when jobs may still run.
  ///
  /// Errors   kAborted: a signal came (its number is sys_errno), or our parent is gone.
  Result<std::vector<Outcome>> run(const std::vector<Job>& jobs, const OnOutput& on_output,
                                   Clock::time_point deadline);

  [[nodiscard]] std::size_t size() const { return guests_.size(); }
  [[nodiscard]] bool is_down(std::size_t guest) const { return guests_[guest].down; }
  [[nodiscard]] const Guest& at(std::size_t guest) const { return guests_[guest]; }

 private:
  Status boot_late_ones_anew(const std::vector<GuestOptions>& options);
  using OnFrame = std::function<void(std::size_t guest, const AgentFrame& frame)>;
  /// Waits for something to happen, at most until the deadline, and handles it.
  Status step(Clock::time_point deadline, const OnFrame& on_frame);
  void serve(std::size_t guest, short agent_events, short console_events, const OnFrame& on_frame);

  std::vector<Guest> guests_;
  UniqueFd signals_;
  int lifeline_ = -1;
  std::uint32_t next_process_ = 1;
};

}  // namespace hips::lab

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include <hips/hips.h>

#include "python/hips_torch/error.hpp"
#include "python/hips_torch/store_bootstrap.hpp"
#include "python/hips_torch/torch_api.hpp"

namespace hips::torch_backend {

/// The place of this process in its job, which its first process group tells.
struct Job {
  int rank = 0, size = 0;
};

/// Carries data from one rank of a process group to another, in order: broadcasts in a communicator of the two, which
/// is set up once both ends want that.
///
/// Errors   HipsError, with ranks of the process group; then the channel has failed for good.
/// Threads  one at a time.
class Channel {
 public:
  /// The Store is the process group's.
  Channel(const c10::intrusive_ptr<c10d::Store>& store, int from, int to, bool sends, Job job);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  [[nodiscard]] int from() const { return from_; }
  [[nodiscard]] int to() const { return to_; }
  [[nodiscard]] bool sends() const { return sends_; }

  /// Goes on with the set-up without waiting; true once it is done.
  bool connected();
  /// Starts to carry `bytes` bytes, as many as the other end says. They belong to the channel until that is done.
  void carry(void* data, std::uint64_t bytes);
  /// Whether all that has been started is done.
  bool carried();
  /// What has been started, and will be, fails on both ends.
  void give_up(const std::string& why);
  [[nodiscard]] bool has_failed() const { return state_ == State::kFailed; }

 private:
  using Clock = std::chrono::steady_clock;
  struct SetUp;
  enum class State : std::uint8_t { kNew, kAnnounced, kConnecting, kReady, kFailed };

  void announce();
  void connect();
  /// Notes the error, and throws it.
  [[noreturn]] void fail(const HipsError& error);
  void close(const HipsError& error);
  [[nodiscard]] HipsError in_group(const HipsError& error) const;

  c10::intrusive_ptr<c10d::Store> store_;
  const int from_, to_;
  const bool sends_;
  const Job job_;
  State state_ = State::kNew;
  Clock::time_point next_look_;
  Clock::duration look_again_{};
  std::shared_ptr<SetUp> set_up_;
  hips_comm_t comm_ = nullptr;
  std::deque<hips_request_t> requests_;
  std::optional<HipsError> error_;
};

}  // namespace hips::torch_backend

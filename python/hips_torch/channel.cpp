#include "python/hips_torch/channel.hpp"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <utility>

#include "python/hips_torch/quiet_thread.hpp"

namespace hips::torch_backend {
namespace {

constexpr std::chrono::milliseconds kFirstLook{1}, kLongestLook{20};
constexpr const char* kDestroyed = "its process group was destroyed";
constexpr int kSender = 0;  ///< the rank in the communicator of the two

}  // namespace

/// Of a communicator, by a thread of its own: it waits for the other end. It outlives a channel that is destroyed.
struct Channel::SetUp {
  SetUp(c10::intrusive_ptr<c10d::Store> store, int rank) : bootstrap(std::move(store), rank, 2) {}
  ~SetUp() {
    if (comm == nullptr) return;
    // The channel has gone before its set-up was done: the other end is not to wait for it.
    (void)hips_comm_abort(comm, kDestroyed);
    (void)hips_comm_destroy(comm);
  }

  StoreBootstrap bootstrap;
  hips_comm_t comm = nullptr;
  std::optional<HipsError> error;
  std::atomic<bool> done{false};
};

Channel::Channel(const c10::intrusive_ptr<c10d::Store>& store, int from, int to, bool sends, Job job)
    : store_(c10::make_intrusive<c10d::PrefixStore>("message/" + std::to_string(from) + "-" + std::to_string(to), store)),
      from_(from),
      to_(to),
      sends_(sends),
      job_(job) {}

Channel::~Channel() {
  if (!requests_.empty()) give_up(kDestroyed);
  if (comm_ != nullptr) (void)hips_comm_destroy(comm_);
}

bool Channel::connected() {
  switch (state_) {
    case State::kNew:
      announce();
      return false;
    case State::kAnnounced:
      connect();
      return false;
    case State::kConnecting:
      if (!set_up_->done.load(std::memory_order_acquire)) return false;
      if (set_up_->error) fail(in_group(*set_up_->error));
      comm_ = std::exchange(set_up_->comm, nullptr);
      set_up_.reset();
      state_ = State::kReady;
      return true;
    case State::kReady:
      return true;
    case State::kFailed:
      break;
  }
  throw *error_;
}

void Channel::announce() {
  store_->set(sends_ ? "sender" : "receiver", std::vector<std::uint8_t>{1});
  look_again_ = kFirstLook;
  next_look_ = Clock::now();
  state_ = State::kAnnounced;
}

void Channel::connect() {
  if (Clock::now() < next_look_) return;
  if (!store_->check({sends_ ? "receiver" : "sender"})) {
    next_look_ = Clock::now() + look_again_;
    look_again_ = std::min<Clock::duration>(2 * look_again_, kLongestLook);
    return;
  }
  set_up_ = std::make_shared<SetUp>(store_, sends_ ? kSender : 1 - kSender);
  const auto make = [set_up = set_up_, job = job_, from = from_, to = to_] {
    const hips_bootstrap_t callbacks = set_up->bootstrap.callbacks();
    const std::string name = "messages from rank " + std::to_string(from) + " to rank " + std::to_string(to);
    hips_comm_config_t config = HIPS_COMM_CONFIG_INIT;
    config.name = name.c_str();
    config.job_rank = job.rank;
    config.job_size = job.size;
    if (hips_comm_create(&config, &callbacks, &set_up->comm) != HIPS_OK) set_up->error = HipsError::last();
    set_up->done.store(true, std::memory_order_release);
  };
  quiet_thread(make).detach();
  state_ = State::kConnecting;
}

void Channel::carry(void* data, std::uint64_t bytes) {
  if (hips_ibcast(data, bytes, HIPS_UINT8, kSender, comm_, &requests_.emplace_back()) == HIPS_OK) return;
  const HipsError error = HipsError::last();
  requests_.pop_back();
  fail(in_group(error));
}

bool Channel::carried() {
  while (!requests_.empty()) {
    int done = 0;
    const hips_status_t status = hips_test(&requests_.front(), &done);
    if (done == 0) return false;
    requests_.pop_front();
    if (status != HIPS_OK) fail(in_group(HipsError::last()));
  }
  return true;
}

void Channel::give_up(const std::string& why) {
  if (state_ == State::kFailed) return;
  if (comm_ != nullptr) (void)hips_comm_abort(comm_, why.c_str());
  close(in_group(HipsError(HIPS_ERR_ABORTED, -1, why.c_str())));
}

void Channel::fail(const HipsError& error) {
  close(error);
  throw error;
}

void Channel::close(const HipsError& error) {
  // The communicator has failed, so these end; then nothing refers to their buffers any more.
  for (hips_request_t& request : requests_) (void)hips_wait(&request);
  requests_.clear();
  error_ = error;
  state_ = State::kFailed;
}

HipsError Channel::in_group(const HipsError& error) const {
  const int rank = error.rank() < 0 ? -1 : error.rank() == kSender ? from_ : to_;
  const std::string text = "hips: message from rank " + std::to_string(from_) + " to rank " + std::to_string(to_) +
                           " (ranks 0 and 1 in what follows): " + error.what();
  return {error.status(), rank, text.c_str()};
}

}  // namespace hips::torch_backend

#include "python/hips_torch/messages.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "python/hips_torch/quiet_thread.hpp"

namespace hips::torch_backend {
namespace {

/// Rounds without progress in which the thread only yields, and its naps after them.
constexpr int kYields = 100;
constexpr std::chrono::microseconds kShortest{20}, kLongest{1000};

std::exception_ptr error_of(hips_status_t code, int rank, const std::string& text) {
  return std::make_exception_ptr(HipsError(code, rank, ("hips: " + text).c_str()));
}

}  // namespace

Messages::Messages(c10::intrusive_ptr<c10d::Store> store, int rank, int size, Job job, std::chrono::milliseconds timeout)
    : store_(std::move(store)), rank_(rank), size_(size), job_(job), timeout_(timeout) {}

std::shared_ptr<Messages> Messages::make(c10::intrusive_ptr<c10d::Store> store, int rank, int size, Job job,
                                         std::chrono::milliseconds timeout) {
  const std::shared_ptr<Messages> messages(new Messages(std::move(store), rank, size, job, timeout));
  // The thread may be the last user, where the end of a work destroys the process group.
  messages->thread_ = quiet_thread([messages] { messages->run(); });
  return messages;
}

WorkPointer Messages::send(const at::Tensor& tensor, int to, int tag) {
  auto work = c10::make_intrusive<MessageWork>(rank_, c10d::OpType::SEND, "hips:send", tensor, to, tag);
  start(work);
  return work;
}

WorkPointer Messages::receive(const at::Tensor& tensor, int from, int tag) {
  const bool any = from == MessageWork::kAnyRank;
  auto work = c10::make_intrusive<MessageWork>(rank_, any ? c10d::OpType::RECVANYSOURCE : c10d::OpType::RECV, "hips:recv", tensor,
                                               from, tag);
  start(work);
  return work;
}

void Messages::start(Pointer work) {
  bool stops = false;
  {
    const std::lock_guard lock(mutex_);
    stops = stops_;
    if (!stops) started_.push_back(work);
  }
  if (stops) return work->complete(destroyed());
  wake_.notify_one();
}

std::exception_ptr Messages::destroyed() const {
  return error_of(HIPS_ERR_ABORTED, rank_, "the process group was destroyed while messages were outstanding");
}

void Messages::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wake_.notify_one();
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();  // it ends when it returns from the work whose end called this
  else
    thread_.join();
}

void Messages::run() {
  int idle = 0;
  std::chrono::microseconds nap = kShortest;
  std::unique_lock lock(mutex_);
  while (!stops_) {
    std::vector<Pointer> started = std::exchange(started_, {});
    lock.unlock();
    bool moved = !started.empty();
    for (Pointer& work : started) post(std::move(work));
    started.clear();
    for (auto& [ends, line] : lines_) moved = advance(line) || moved;
    expire();
    if (moved) {
      idle = 0;
      nap = kShortest;
    }
    if (num_outstanding_ > 0 && ++idle < kYields) {
      sched_yield();
      lock.lock();
      continue;
    }
    lock.lock();
    if (stops_ || !started_.empty()) continue;
    if (num_outstanding_ > 0)
      wake_.wait_for(lock, nap);
    else
      wake_.wait(lock);
    nap = std::min(2 * nap, kLongest);
  }
  const std::vector<Pointer> started = std::exchange(started_, {});
  lock.unlock();
  const auto error = destroyed();
  for (const Pointer& work : started) work->complete(error);
  for (auto& [ends, line] : lines_) {
    const bool is_carrying = line.phase == Line::Phase::kData || (line.channel->sends() && line.phase != Line::Phase::kIdle);
    if (is_carrying) line.channel->give_up("its process group was destroyed while messages were outstanding");
    fail(line, error);
  }
  for (const Pointer& work : std::exchange(receives_, {})) complete(work, error);
  lines_.clear();
}

Messages::Line& Messages::line(int from, int to) {
  Line& line = lines_[{from, to}];
  if (!line.channel) line.channel = std::make_unique<Channel>(store_, from, to, from == rank_, job_);
  return line;
}

void Messages::post(Pointer work) {
  ++num_outstanding_;
  if (work->retrieveOpType() == c10d::OpType::SEND) {
    line(rank_, work->peer_).sends.push_back(std::move(work));
    return;
  }
  const auto message = std::find_if(arrived_.begin(), arrived_.end(), [&](const Arrived& one) {
    return one.tag == work->tag_ && (work->peer_ == MessageWork::kAnyRank || work->peer_ == one.from);
  });
  if (message != arrived_.end()) {
    const Arrived taken = std::move(*message);
    arrived_.erase(message);
    deliver(work, taken);
    return;
  }
  if (work->peer_ != MessageWork::kAnyRank) {
    line(work->peer_, rank_);
  } else {
    for (int from = 0; from < size_; ++from)
      if (from != rank_) line(from, rank_);
  }
  receives_.push_back(std::move(work));
}

bool Messages::advance(Line& line) {
  const bool had_failed = line.channel->has_failed();
  const std::size_t before = num_outstanding_;
  try {
    return line.channel->sends() ? advance_send(line) : advance_receive(line);
  } catch (const HipsError&) {
    fail(line, std::current_exception());
  } catch (const std::exception& error) {
    // Of the Store, or no memory: the ends may no longer agree on what comes next.
    line.channel->give_up(error.what());
    fail(line, std::current_exception());
  }
  return !had_failed || num_outstanding_ != before;
}

bool Messages::advance_send(Line& line) {
  if (line.sends.empty() || !line.channel->connected()) return false;
  if (line.phase == Line::Phase::kIdle) {
    const MessageWork& work = *line.sends.front();
    line.header = {work.tag_, work.vector_.bytes()};
    line.phase = Line::Phase::kData;
    line.channel->carry(&line.header, sizeof line.header);
    if (line.header.bytes > 0) line.channel->carry(work.vector_.data(), line.header.bytes);
  }
  if (!line.channel->carried()) return false;
  line.phase = Line::Phase::kIdle;
  const Pointer sent = std::move(line.sends.front());
  line.sends.pop_front();
  complete(sent, nullptr);
  return true;
}

bool Messages::is_wanted(const Line& line) const {
  const bool has_failed = line.channel->has_failed();
  return std::any_of(receives_.begin(), receives_.end(), [&](const Pointer& work) {
    return (work->peer_ == MessageWork::kAnyRank && !has_failed) || work->peer_ == line.channel->from();
  });
}

bool Messages::advance_receive(Line& line) {
  if (line.phase == Line::Phase::kIdle) {
    // The sender waits until this rank wants something from it.
    if (!is_wanted(line) || !line.channel->connected()) return false;
    line.phase = Line::Phase::kHeader;
    line.channel->carry(&line.header, sizeof line.header);
  }
  if (!line.channel->carried()) return false;
  if (line.phase == Line::Phase::kHeader) {
    take_header(line);
    if (!line.channel->carried()) return true;
  }
  take_data(line);
  return true;
}

void Messages::take_header(Line& line) {
  const auto work = std::find_if(receives_.begin(), receives_.end(), [&](const Pointer& one) {
    return one->tag_ == line.header.tag && (one->peer_ == MessageWork::kAnyRank || one->peer_ == line.channel->from());
  });
  if (work != receives_.end()) {
    line.target = std::move(*work);
    receives_.erase(work);
    line.target->peer_ = line.channel->from();
  }
  const std::uint64_t bytes = line.header.bytes;
  void* data = nullptr;
  if (line.target && line.target->vector_.bytes() == bytes) {
    data = line.target->vector_.data();
  } else {
    line.buffer = at::empty({static_cast<std::int64_t>(bytes)}, at::kByte);
    data = line.buffer.data_ptr();
  }
  line.phase = Line::Phase::kData;
  if (bytes > 0) line.channel->carry(data, bytes);
}

void Messages::take_data(Line& line) {
  line.phase = Line::Phase::kIdle;
  const Pointer target = std::move(line.target);
  const at::Tensor buffer = std::move(line.buffer);
  line.target = {};
  line.buffer.reset();
  if (!buffer.defined()) return complete(target, nullptr);
  Arrived message{line.channel->from(), line.header.tag, buffer};
  if (target)
    deliver(target, message);
  else
    arrived_.push_back(std::move(message));
}

void Messages::deliver(const Pointer& work, const Arrived& message) {
  work->peer_ = message.from;
  const auto bytes = static_cast<std::uint64_t>(message.data.nbytes());
  if (bytes == work->vector_.bytes()) {
    if (bytes > 0) std::memcpy(work->vector_.data(), message.data.data_ptr(), bytes);
    return complete(work, nullptr);
  }
  complete(work, error_of(HIPS_ERR_MISMATCH, message.from,
                          work->text() + ": the tensor has " + std::to_string(work->vector_.bytes()) + " bytes, but rank " +
                              std::to_string(message.from) + " sent " + std::to_string(bytes)));
}

void Messages::complete(const Pointer& work, std::exception_ptr error) {
  --num_outstanding_;
  work->complete(std::move(error));
}

void Messages::fail(Line& line, const std::exception_ptr& error) {
  for (const Pointer& work : std::exchange(line.sends, {})) complete(work, error);
  if (line.target) complete(std::exchange(line.target, {}), error);
  line.phase = Line::Phase::kIdle;
  line.buffer.reset();
  if (line.channel->sends()) return;
  const int from = line.channel->from();
  const bool none_comes = !may_receive();
  receives_.remove_if([&](const Pointer& work) {
    const bool needs_it = work->peer_ == from || (work->peer_ == MessageWork::kAnyRank && none_comes);
    if (needs_it) complete(work, error);
    return needs_it;
  });
}

bool Messages::may_receive() const {
  for (int from = 0; from < size_; ++from) {
    const auto line = lines_.find({from, rank_});
    if (from != rank_ && (line == lines_.end() || !line->second.channel->has_failed())) return true;
  }
  return false;
}

void Messages::expire() {
  if (timeout_.count() <= 0) return;
  const auto now = MessageWork::Clock::now();
  const auto is_over = [&](const Pointer& work) { return work && now - work->started_ > timeout_; };
  const auto error = [&](const Pointer& work) {
    return error_of(HIPS_ERR_TIMEOUT, work->peer_,
                    work->text() + " has waited for its timeout of " + std::to_string(timeout_.count()) + " ms");
  };
  for (auto& [ends, line] : lines_) {
    const Pointer over = line.sends.empty() ? line.target : line.sends.front();
    if (!is_over(over)) continue;
    if (line.phase == Line::Phase::kIdle) {
      line.sends.pop_front();
      complete(over, error(over));
    } else {
      line.channel->give_up(over->text() + " has waited for its timeout");
      fail(line, error(over));
    }
  }
  receives_.remove_if([&](const Pointer& work) {
    if (!is_over(work)) return false;
    complete(work, error(work));
    return true;
  });
}

}  // namespace hips::torch_backend

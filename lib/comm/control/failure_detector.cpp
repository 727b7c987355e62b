#include "lib/comm/control/failure_detector.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/exception_status.hpp"
#include "lib/comm/setup/agreement.hpp"

namespace hips::comm {

void FailureDetector::prepare(Control& control, FailureActions actions, std::uint64_t id, Rank rank,
                              std::size_t size) {
  const std::lock_guard lock(mutex_);
  actions_ = std::move(actions);
  id_ = id;
  rank_ = rank;
  left_.assign(size, false);
  control_ = &control;
}

void FailureDetector::start(Control& control, FailureActions actions, std::uint64_t id, Rank rank,
                            std::vector<ProcessInfo> members) {
  prepare(control, std::move(actions), id, rank, members.size());
  control.join({.id = id, .rank = rank, .members = std::move(members), .listener = weak_from_this()});
}

void FailureDetector::start(const FailureDetector& from, bool depends, FailureActions actions,
                            std::uint64_t id, Rank rank, std::vector<Rank> members) {
  prepare(*from.control_.load(), std::move(actions), id, rank, members.size());
  control_.load()->derive({.from = from.id_,
                           .depends = depends,
                           .id = id,
                           .rank = rank,
                           .members = std::move(members),
                           .listener = weak_from_this()});
}

void FailureDetector::leave() {
  Control* control = nullptr;
  {
    // The lock waits for a running action; clearing actions_ prevents later ones.
    const std::lock_guard lock(mutex_);
    actions_ = {};
    control = control_;
  }
  if (control != nullptr) control->leave(id_);
}

Status FailureDetector::failure() const {
  if (!failed()) return Status::success();
  const std::lock_guard lock(mutex_);
  return failure_;
}

void FailureDetector::fail(Status status) {
  status.rank = -1;
  status.call = 0;
  report(status);
}

void FailureDetector::report(const Status& status) {
  if (Control* control = control_.load(); control != nullptr)
    control->report(id_, status);
  else
    on_failed(status);
}

void FailureDetector::found(Status status) {
  Control* const control = control_.load();
  if (control != nullptr && status.code == Code::kPeerLost && status.rank >= 0) {
    control->suspect(id_, status.rank, status);
    return;
  }
  if (status.code == Code::kMismatch && status.call == 0) status.call = record_.current().index;
  report(status);
}

void FailureDetector::waiting(std::span<const Rank> missing, std::string text) {
  const CallEntry call = record_.current();
  Rank gone = -1;
  {
    const std::lock_guard lock(mutex_);
    for (const Rank r : missing)
      if (gone < 0 && left_[static_cast<std::size_t>(r)]) gone = r;
    // What a rank sent before it left may take long over a slow or busy network.
    constexpr int kMostChecks = 10;
    const bool is_same = gone >= 0 && gone == gone_ && missing_call_ == call.index && missing_text_ == text;
    num_checks_ = is_same ? num_checks_ + 1 : 0;
    gone_ = gone;
    missing_.assign(missing.begin(), missing.end());
    missing_text_ = std::move(text);
    missing_call_ = call.index;
    if (num_checks_ < kMostChecks) return;
  }
  report_gone(gone, call, "left");
}

void FailureDetector::report_gone(Rank gone, const CallEntry& call, std::string_view how) {
  Status status =
      Status::error(Code::kPeerLost,
                    fmt::format("rank {} {} the communicator without taking part in {}, which rank {} is in",
                                gone, how, to_string(call), rank_),
                    Scope::kCommunicator);
  status.rank = gone;
  report(status);
}

void FailureDetector::ask(std::span<const Rank> ranks) {
  for (const Rank rank : ranks) control_.load()->query(id_, rank, record_.current().index);
}

void FailureDetector::ask_all() {
  for (std::size_t r = 0; r < left_.size(); ++r)
    control_.load()->query(id_, static_cast<Rank>(r), record_.current().index);
}

std::string FailureDetector::missing() const {
  const CallEntry call = record_.current();
  const std::lock_guard lock(mutex_);
  std::vector<Rank> late;
  const auto last_of = [&](std::size_t r) { return r < answers_.size() ? answers_[r].last : CallEntry(); };
  for (std::size_t r = 0; r < left_.size(); ++r) {
    const bool asked = static_cast<Rank>(r) != rank_ && !left_[r];
    if (asked && last_of(r).index < call.index) late.push_back(static_cast<Rank>(r));
  }
  if (late.empty()) return fmt::format("every rank has started this call; waiting for {}", missing_text_);
  std::string text = fmt::format("{} {} not arrived", ranks_text(late), late.size() == 1 ? "has" : "have");
  constexpr std::size_t kMost = 16;
  for (std::size_t i = 0; i < std::min(late.size(), kMost); ++i) {
    const CallEntry last = last_of(static_cast<std::size_t>(late[i]));
    text += fmt::format("{}rank {}: {}{}", i == 0 ? "; last call of " : ", ", late[i], to_string(last),
                        last.kind == CallEntry::Kind::kNone ? ""
                        : last.finished                     ? ", finished"
                                                            : ", not finished");
  }
  return text;
}

void FailureDetector::on_failed(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (failed()) return;
  failure_ = kept(status);
  failed_.store(true, std::memory_order_release);
  if (actions_.fail) actions_.fail(status);
}

void FailureDetector::on_left(Rank rank) {
  const std::lock_guard lock(mutex_);
  left_[static_cast<std::size_t>(rank)] = true;
  if (actions_.left) actions_.left(rank);
}

void FailureDetector::on_answer(Rank from, const CallAnswer& answer) {
  {
    const std::lock_guard lock(mutex_);
    answers_.resize(left_.size());
    answers_[static_cast<std::size_t>(from)] = answer;
  }
  if (answer.last.kind == CallEntry::Kind::kDestroyed) {
    const CallEntry current = record_.current();
    // One that ended an earlier use is still making the communicator anew, as this rank has done.
    if (answer.last.count < num_ended_uses_.load(std::memory_order_relaxed)) return;
    // One that has made the call was in it, and may have ended before this rank; this rank may be using the communicator again.
    if (answer.asked.kind == CallEntry::Kind::kNone && in_call() && answer.last.index < current.index)
      report_gone(from, current, "destroyed");
    return;
  }
  const CallEntry mine = record_.at(answer.asked.index);
  if (mine.kind == CallEntry::Kind::kNone || answer.asked.kind == CallEntry::Kind::kNone) return;
  if (same_call(mine, answer.asked)) return;
  const bool delegated = answer.asked.kind == CallEntry::Kind::kDelegated;
  Status status =
      Status::error(Code::kMismatch,
                    fmt::format("rank {} called {}, but rank {} called {}; {}", rank_, to_string(mine), from,
                                to_string(answer.asked),
                                delegated ? "either all ranks or none must pass arguments that HiPS supports"
                                          : "all ranks must pass the same count, type and op"),
                    Scope::kCommunicator);
  status.rank = from;
  status.call = mine.index;
  report(status);
}

CallAnswer FailureDetector::answer(std::uint64_t call_index) const {
  CallAnswer answer{record_.at(call_index), record_.last()};
  if (is_retired()) {
    answer.last.kind = CallEntry::Kind::kDestroyed;
    answer.last.count = num_ended_uses_.load(std::memory_order_relaxed);
  }
  return answer;
}

bool FailureDetector::in_call() const {
  const CallEntry last = record_.current();
  return last.kind == CallEntry::Kind::kHips && !last.finished;
}

std::string FailureDetector::activity(Rank rank) const {
  const std::lock_guard lock(mutex_);
  const CallEntry last = record_.current();
  // Information about an earlier call is out of date.
  if (!in_call() || missing_call_ != last.index) return {};
  if (std::find(missing_.begin(), missing_.end(), rank) == missing_.end()) return {};
  return fmt::format("{} in {}", missing_text_, to_string(last));
}

}  // namespace hips::comm

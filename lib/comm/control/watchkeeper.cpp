#include "lib/comm/control/watchkeeper.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/comm/setup/agreement.hpp"

namespace hips::comm {

void Watchkeeper::start(Control& control, Verdicts verdicts, std::uint64_t id, Rank rank,
                        std::vector<ProcessInfo> members) {
  {
    const std::lock_guard lock(mutex_);
    control_ = &control;
    verdicts_ = std::move(verdicts);
    id_ = id;
    rank_ = rank;
    left_.assign(members.size(), false);
    answers_.resize(members.size());
  }
  control.join({.id = id, .rank = rank, .members = std::move(members), .listener = weak_from_this()});
}

void Watchkeeper::leave() {
  Control* control = nullptr;
  {
    // Waits for a verdict that is being carried out, and lets none in afterwards.
    const std::lock_guard lock(mutex_);
    verdicts_ = {};
    control = control_;
  }
  if (control != nullptr) control->leave(id_);
}

Status Watchkeeper::failure() const {
  if (!failed()) return Status::success();
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Watchkeeper::found(const Status& status) {
  if (status.code == Code::kPeerLost && status.rank >= 0)
    control_->suspect(id_, status.rank, status);
  else
    control_->report(id_, status);
}

void Watchkeeper::waiting(std::span<const Rank> lacking, std::string text) {
  const CallEntry call = record_.current();
  Rank gone = -1;
  {
    const std::lock_guard lock(mutex_);
    for (const Rank r : lacking)
      if (gone < 0 && left_[static_cast<std::size_t>(r)]) gone = r;
    // Its last data may have come after the team's last look and before its goodbye: look twice.
    const bool seen_before = gone >= 0 && gone == gone_ && lacking_call_ == call.index;
    gone_ = gone;
    lacking_.assign(lacking.begin(), lacking.end());
    lacking_text_ = std::move(text);
    lacking_call_ = call.index;
    if (!seen_before) return;
  }
  Status status =
      Status::error(Code::kPeerLost,
                    fmt::format("rank {} said goodbye without taking part in {}, which rank {} is in", gone,
                                to_string(call), rank_),
                    Scope::kCommunicator);
  status.rank = gone;
  control_->report(id_, status);
}

void Watchkeeper::ask(std::span<const Rank> ranks) {
  for (const Rank rank : ranks) control_->query(id_, rank, record_.current().index);
}

void Watchkeeper::ask_all() {
  for (std::size_t r = 0; r < answers_.size(); ++r)
    control_->query(id_, static_cast<Rank>(r), record_.current().index);
}

std::string Watchkeeper::missing() const {
  const CallEntry call = record_.current();
  const std::lock_guard lock(mutex_);
  std::vector<Rank> late;
  for (std::size_t r = 0; r < answers_.size(); ++r) {
    const bool asked = static_cast<Rank>(r) != rank_ && !left_[r];
    if (asked && answers_[r].last.index < call.index) late.push_back(static_cast<Rank>(r));
  }
  if (late.empty()) return fmt::format("every rank is in it; {} has not come", lacking_text_);
  std::string text = fmt::format("{} {} not come", ranks_text(late), late.size() == 1 ? "has" : "have");
  constexpr std::size_t kMost = 16;
  for (std::size_t i = 0; i < std::min(late.size(), kMost); ++i) {
    const CallEntry& last = answers_[static_cast<std::size_t>(late[i])].last;
    text += fmt::format("{}rank {}: {}{}", i == 0 ? "; last call of " : ", ", late[i], to_string(last),
                        last.kind == CallEntry::Kind::kNone ? ""
                        : last.finished                     ? ", finished"
                                                            : ", in it");
  }
  return text;
}

void Watchkeeper::on_failed(const Status& status) {
  const std::lock_guard lock(mutex_);
  if (failed()) return;
  failure_ = status;
  failed_.store(true, std::memory_order_release);
  if (verdicts_.fail) verdicts_.fail(status);
}

void Watchkeeper::on_left(Rank rank) {
  const std::lock_guard lock(mutex_);
  left_[static_cast<std::size_t>(rank)] = true;
  if (verdicts_.left) verdicts_.left(rank);
}

void Watchkeeper::on_answer(Rank from, const CallAnswer& answer) {
  {
    const std::lock_guard lock(mutex_);
    answers_[static_cast<std::size_t>(from)] = answer;
  }
  const CallEntry mine = record_.at(answer.asked.index);
  if (mine.kind == CallEntry::Kind::kNone || answer.asked.kind == CallEntry::Kind::kNone) return;
  if (same_call(mine, answer.asked)) return;
  const bool declined = answer.asked.kind == CallEntry::Kind::kDeclined;
  Status status = Status::error(Code::kMismatch,
                                fmt::format("rank {} is in {}, but for rank {} that was {}; {}", rank_,
                                            to_string(mine), from, to_string(answer.asked),
                                            declined ? "all ranks must pass what HiPS can take, or none"
                                                     : "all ranks must pass the same count, type and op"),
                                Scope::kCommunicator);
  status.rank = from;
  control_->report(id_, status);
}

CallAnswer Watchkeeper::answer(std::uint64_t call_index) const {
  return {record_.at(call_index), record_.last()};
}

bool Watchkeeper::in_call() const {
  const CallEntry last = record_.current();
  return last.kind == CallEntry::Kind::kTaken && !last.finished;
}

std::string Watchkeeper::activity(Rank rank) const {
  const std::lock_guard lock(mutex_);
  const CallEntry last = record_.current();
  // What was lacking in an earlier call says nothing.
  if (!in_call() || lacking_call_ != last.index) return {};
  if (std::find(lacking_.begin(), lacking_.end(), rank) == lacking_.end()) return {};
  return fmt::format("{} in {}", lacking_text_, to_string(last));
}

}  // namespace hips::comm

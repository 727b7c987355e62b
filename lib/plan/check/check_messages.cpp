#include "lib/plan/check/check_messages.hpp"

#include <algorithm>
#include <compare>
#include <tuple>

#include <fmt/format.h>

namespace hips::plan {
namespace {

/// The name of a message among those of one sender.
struct NameOfSender {
  Rank receiver;
  std::int32_t lane, stage, round;
  friend auto operator<=>(const NameOfSender&, const NameOfSender&) = default;
};

struct SentMessage {
  NameOfSender name;
  StepId step;
};

std::string text_of(const NameOfSender& name) {
  return fmt::format("lane {}, stage {}, round {}", name.lane, name.stage, name.round);
}

/// The sends of a rank by name. Reports and leaves out sends whose name occurs before.
std::vector<SentMessage> sends_of(const Plan& plan, Rank rank, Findings& findings) {
  std::vector<SentMessage> sends;
  const std::vector<Step>& steps = plan.programs[rank].steps;
  for (StepId id = 0; id < static_cast<StepId>(steps.size()); ++id) {
    const Step& step = steps[id];
    if (step.op == StepOp::kSend) sends.push_back({{step.peer, step.lane, step.stage, step.round}, id});
  }
  std::sort(sends.begin(), sends.end(), [](const SentMessage& a, const SentMessage& b) {
    return std::tie(a.name, a.step) < std::tie(b.name, b.step);
  });
  const auto same_name = [&](const SentMessage& first, const SentMessage& second) {
    if (first.name != second.name) return false;
    if (findings.count(FindingKind::kUnmatched)) {
      findings.report(
          FindingKind::kUnmatched, Findings::place(rank, second.step, steps[second.step]),
          fmt::format("{} sends two messages with one name: {} and {}", findings.rank_name(rank),
                      findings.step_name(rank, first.step), findings.step_name(rank, second.step)));
    }
    return true;
  };
  sends.erase(std::unique(sends.begin(), sends.end(), same_name), sends.end());
  return sends;
}

}  // namespace

StepTable::StepTable(const Plan& plan) : plan_(&plan) {
  first_.reserve(plan.programs.size() + 1);
  StepIdx next = 0;
  first_.push_back(next);
  for (const Program& program : plan.programs) {
    next += static_cast<StepIdx>(program.steps.size());
    first_.push_back(next);
  }
}

Rank StepTable::rank(StepIdx idx) const {
  return static_cast<Rank>(std::upper_bound(first_.begin(), first_.end(), idx) - first_.begin() - 1);
}

const Step& StepTable::step(StepIdx idx) const {
  const Rank of = rank(idx);
  return plan_->programs[of].steps[idx - first_[of]];
}

Messages::Messages(const Plan& plan, const StepTable& table, Findings& findings)
    : plan_(plan), table_(table), findings_(findings), receiver_of_(table.size(), kNoStep) {
  number_sources();
  // Receives are matched sender by sender, so that the names of one sender only are in memory.
  std::vector<std::size_t> first(static_cast<std::size_t>(plan.shape.num_ranks) + 1, 0);
  const auto for_each_receive = [&](auto&& visit) {
    for (const Program& program : plan.programs) {
      for (StepId id = 0; id < static_cast<StepId>(program.steps.size()); ++id) {
        const Step& step = program.steps[id];
        for (std::int32_t i = step.first_source; i < step.first_source + step.num_sources; ++i) {
          if (program.sources[i].kind == Source::Kind::kMessage)
            visit(program.sources[i].peer, Receive{program.rank, id, i});
        }
      }
    }
  };
  for_each_receive([&](Rank sender, const Receive&) { ++first[static_cast<std::size_t>(sender) + 1]; });
  for (Rank rank = 0; rank < plan.shape.num_ranks; ++rank) first[rank + 1] += first[rank];
  std::vector<Receive> receives(first.back());
  std::vector<std::size_t> next(first.begin(), first.end() - 1);
  for_each_receive([&](Rank sender, const Receive& receive) { receives[next[sender]++] = receive; });
  for (Rank sender = 0; sender < plan.shape.num_ranks; ++sender)
    match(sender, std::span(receives).subspan(first[sender], first[sender + 1] - first[sender]));
}

void Messages::number_sources() {
  std::size_t num_sources = 0;
  for (const Program& program : plan_.programs) {
    first_source_.push_back(num_sources);
    num_sources += program.sources.size();
  }
  sender_of_.assign(num_sources, kNoStep);
}

/// Matches all sends of a rank with the receives that name it.
void Messages::match(Rank sender, std::span<const Receive> receives) {
  const std::vector<SentMessage> sends = sends_of(plan_, sender, findings_);
  for (const Receive& receive : receives) {
    const Step& step = plan_.programs[receive.receiver].steps[receive.step];
    const NameOfSender name{receive.receiver, step.lane, step.stage, step.round};
    const auto sent = std::ranges::lower_bound(sends, name, {}, &SentMessage::name);
    if (sent != sends.end() && sent->name == name) {
      match_pair(sender, sent->step, receive);
    } else if (findings_.count(FindingKind::kUnmatched)) {
      findings_.report(
          FindingKind::kUnmatched, Findings::place(receive.receiver, receive.step, step),
          fmt::format("receive without send: {}, {} waits for a message that {} does not send ({})",
                      findings_.rank_name(receive.receiver),
                      findings_.step_name(receive.receiver, receive.step), findings_.rank_name(sender),
                      text_of(name)));
    }
  }
  for (const SentMessage& sent : sends) {
    if (receiver_of_[table_.idx(sender, sent.step)] != kNoStep) continue;
    if (!findings_.count(FindingKind::kUnmatched)) continue;
    findings_.report(FindingKind::kUnmatched,
                     Findings::place(sender, sent.step, plan_.programs[sender].steps[sent.step]),
                     fmt::format("send without receive: no step of {} receives what {} sends in {}",
                                 findings_.rank_name(sent.name.receiver), findings_.rank_name(sender),
                                 findings_.step_name(sender, sent.step)));
  }
}

void Messages::match_pair(Rank sender, StepId sent, const Receive& receive) {
  const Step& step = plan_.programs[receive.receiver].steps[receive.step];
  const PlanPlace place = Findings::place(receive.receiver, receive.step, step);
  StepIdx& receiver = receiver_of_[table_.idx(sender, sent)];
  if (receiver != kNoStep) {
    if (!findings_.count(FindingKind::kUnmatched)) return;
    return findings_.report(FindingKind::kUnmatched, place,
                            fmt::format("one message is received twice: {} of {} by {} and by step {} of {}",
                                        findings_.step_name(sender, sent), findings_.rank_name(sender),
                                        findings_.step_name(receive.receiver, receive.step),
                                        table_.id(receiver), findings_.rank_name(receive.receiver)));
  }
  receiver = table_.idx(receive.receiver, receive.step);
  sender_of_[first_source_[receive.receiver] + static_cast<std::size_t>(receive.source)] =
      table_.idx(sender, sent);
  const Step& send = plan_.programs[sender].steps[sent];
  if (send.dst.blocks == step.dst.blocks || !findings_.count(FindingKind::kUnmatched)) return;
  findings_.report(FindingKind::kUnmatched, place,
                   fmt::format("the two ends of a message name different blocks: {} sends {} in step {}, {} "
                               "receives {} in step {} "
                               "({})",
                               findings_.rank_name(sender), range_name(send.dst), sent,
                               findings_.rank_name(receive.receiver), range_name(step.dst), receive.step,
                               text_of({receive.receiver, step.lane, step.stage, step.round})));
}

}  // namespace hips::plan

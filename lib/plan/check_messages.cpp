#include "lib/plan/check_messages.hpp"

#include <algorithm>
#include <compare>
#include <tuple>

#include <fmt/format.h>

namespace hips::plan {
namespace {

/// The name of a message among those of one sender.
struct Name {
  Rank receiver;
  std::int32_t lane, stage, round;
  friend auto operator<=>(const Name&, const Name&) = default;
};

struct Sent {
  Name name;
  StepId step;
};

std::string text_of(const Name& name) {
  return fmt::format("lane {}, stage {}, round {}", name.lane, name.stage, name.round);
}

/// The sends of a rank by name; those whose name is taken are told and left out.
std::vector<Sent> sends_of(const Plan& plan, Rank rank, Findings& findings) {
  std::vector<Sent> sends;
  const std::vector<Step>& steps = plan.programs[rank].steps;
  for (StepId id = 0; id < static_cast<StepId>(steps.size()); ++id) {
    const Step& step = steps[id];
    if (step.op == StepOp::kSend) sends.push_back({{step.peer, step.lane, step.stage, step.round}, id});
  }
  std::sort(sends.begin(), sends.end(),
            [](const Sent& a, const Sent& b) { return std::tie(a.name, a.step) < std::tie(b.name, b.step); });
  const auto same_name = [&](const Sent& first, const Sent& second) {
    if (first.name != second.name) return false;
    if (findings.count(FindingKind::kUnmatched)) {
      findings.tell(FindingKind::kUnmatched, Findings::place(rank, second.step, steps[second.step]),
                    fmt::format("{} sends two messages of one name: {} and {}", findings.rank_name(rank),
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
    : receiver_of_(table.size(), kNoStep) {
  const Rank num_ranks = plan.shape.num_ranks;
  std::size_t num_sources = 0;
  for (const Program& program : plan.programs) {
    first_source_.push_back(num_sources);
    num_sources += program.sources.size();
  }
  sender_of_.assign(num_sources, kNoStep);

  // Receives are looked up sender by sender, so that only one sender's names are in memory; `wanted` says
  // which sources want a message of it.
  struct Wanted {
    Rank receiver;
    StepId step;
    std::int32_t source;
  };
  std::vector<std::size_t> first_wanted(static_cast<std::size_t>(num_ranks) + 1, 0);
  const auto for_each_receive = [&](auto&& visit) {
    for (Rank rank = 0; rank < num_ranks; ++rank) {
      const Program& program = plan.programs[rank];
      for (StepId id = 0; id < static_cast<StepId>(program.steps.size()); ++id) {
        const Step& step = program.steps[id];
        for (std::int32_t i = step.first_source; i < step.first_source + step.num_sources; ++i) {
          if (program.sources[i].kind == Source::Kind::kMessage) {
            visit(program.sources[i].peer, Wanted{rank, id, i});
          }
        }
      }
    }
  };
  for_each_receive([&](Rank sender, const Wanted&) { ++first_wanted[static_cast<std::size_t>(sender) + 1]; });
  for (Rank rank = 0; rank < num_ranks; ++rank) first_wanted[rank + 1] += first_wanted[rank];
  std::vector<Wanted> wanted(first_wanted.back());
  {
    std::vector<std::size_t> next(first_wanted.begin(), first_wanted.end() - 1);
    for_each_receive([&](Rank sender, const Wanted& receive) { wanted[next[sender]++] = receive; });
  }

  for (Rank sender = 0; sender < num_ranks; ++sender) {
    const std::vector<Sent> sends = sends_of(plan, sender, findings);
    for (std::size_t w = first_wanted[sender]; w < first_wanted[sender + 1]; ++w) {
      const Wanted& receive = wanted[w];
      const Step& taker = plan.programs[receive.receiver].steps[receive.step];
      const Name name{receive.receiver, taker.lane, taker.stage, taker.round};
      const auto sent =
          std::lower_bound(sends.begin(), sends.end(), name,
                           [](const Sent& send, const Name& wanted_name) { return send.name < wanted_name; });
      const Place place = Findings::place(receive.receiver, receive.step, taker);
      if (sent == sends.end() || sent->name != name) {
        if (findings.count(FindingKind::kUnmatched)) {
          findings.tell(
              FindingKind::kUnmatched, place,
              fmt::format("receive without send: {}, {} waits for a message of {} that it does not send ({})",
                          findings.rank_name(receive.receiver),
                          findings.step_name(receive.receiver, receive.step), findings.rank_name(sender),
                          text_of(name)));
        }
        continue;
      }
      const StepIdx send = table.idx(sender, sent->step);
      if (receiver_of_[send] != kNoStep) {
        if (findings.count(FindingKind::kUnmatched)) {
          findings.tell(FindingKind::kUnmatched, place,
                        fmt::format("one message is taken twice: {} of {} by {} and by step {} of {}",
                                    findings.step_name(sender, sent->step), findings.rank_name(sender),
                                    findings.step_name(receive.receiver, receive.step),
                                    table.id(receiver_of_[send]), findings.rank_name(receive.receiver)));
        }
        continue;
      }
      receiver_of_[send] = table.idx(receive.receiver, receive.step);
      sender_of_[first_source_[receive.receiver] + static_cast<std::size_t>(receive.source)] = send;
      const Step& sending = plan.programs[sender].steps[sent->step];
      if (sending.dst.blocks != taker.dst.blocks && findings.count(FindingKind::kUnmatched)) {
        findings.tell(
            FindingKind::kUnmatched, place,
            fmt::format("the two ends of a message name different blocks: {} sends {} in step {}, {} takes "
                        "{} in step {} ({})",
                        findings.rank_name(sender), range_name(sending.dst), sent->step,
                        findings.rank_name(receive.receiver), range_name(taker.dst), receive.step,
                        text_of(name)));
      }
    }
    for (const Sent& sent : sends) {
      if (receiver_of_[table.idx(sender, sent.step)] != kNoStep) continue;
      if (!findings.count(FindingKind::kUnmatched)) continue;
      findings.tell(FindingKind::kUnmatched,
                    Findings::place(sender, sent.step, plan.programs[sender].steps[sent.step]),
                    fmt::format("send without receive: no step of {} takes what {} sends in {}",
                                findings.rank_name(sent.name.receiver), findings.rank_name(sender),
                                findings.step_name(sender, sent.step)));
    }
  }
}

}  // namespace hips::plan

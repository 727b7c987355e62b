#include "lib/cost/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "topology/link_rates.hpp"
#include "topology/tiers.hpp"
#include "topology/walk.hpp"

namespace hips::cost {
namespace {

/// A resource that one message uses at a time: a NIC, or the cables above a switch, in one direction.
using Port = std::size_t;

/// A part of the route of a message.
struct Leg {
  Port port = 0;
  double bytes_per_s = 0;
  std::int64_t delay_ns = 0;  ///< after its start on the leg before
  std::int64_t server = -1;   ///< -1: the cables above a switch
  Rail rail = kNoRail;
  bool out = true;
};

struct StepOf {
  Rank rank = 0;
  StepId step = 0;
  friend auto operator<=>(const StepOf&, const StepOf&) = default;
};

/// Sender, receiver, lane, stage, round.
using Name = std::tuple<Rank, Rank, std::int32_t, std::int32_t, std::int32_t>;

class Simulation {
 public:
  Simulation(const Topology& topology, const Plan& plan, Volume volume)
      : topology_(topology),
        plan_(plan),
        volume_(volume),
        tiers_(topology::tiers(topology)),
        rates_(topology, tiers_) {
    num_nic_ports_ = static_cast<Port>(topology.num_servers() * topology.num_rails) * 2;
    Port ports = num_nic_ports_;
    for (const topology::Tier& tier : tiers_) ports += static_cast<Port>(tier.count) * 2;
    free_ns_.assign(ports, 0);
    waiting_.resize(num_nic_ports_);
  }

  Result<Timeline> run() {
    link_steps();
    std::size_t num_steps = 0;
    for (Rank rank = 0; rank < plan_.shape.num_ranks; ++rank) {
      const auto& program = plan_.programs[static_cast<std::size_t>(rank)];
      num_steps += program.steps.size();
      for (StepId step = 0; step < static_cast<StepId>(program.steps.size()); ++step) {
        if (open_of({rank, step}) == 0) events_.push({0, {rank, step}});
      }
    }
    while (!events_.empty()) {
      const auto [now, what] = events_.top();
      events_.pop();
      if (step_of(what).op != StepOp::kSend) {
        timeline_.steps.push_back({what.rank, what.step, now, now, 0, {}});
        done(what, now);
      } else if (Status status = send(what, now); !status.ok()) {
        return hips::fail(status);
      }
    }
    if (timeline_.steps.size() != num_steps) {
      return hips::fail(Code::kInternal, fmt::format("timeline: {} of {} steps wait for one another",
                                                     num_steps - timeline_.steps.size(), num_steps));
    }
    return std::move(timeline_);
  }

 private:
  /// A step that can begin at a time. Ties are ordered by rank and step, so that every run is the same.
  struct Event {
    std::int64_t at_ns = 0;
    StepOf what;
    friend auto operator<=>(const Event&, const Event&) = default;
  };

  [[nodiscard]] const Step& step_of(StepOf what) const {
    return plan_.programs[static_cast<std::size_t>(what.rank)].steps[static_cast<std::size_t>(what.step)];
  }
  std::int32_t& open_of(StepOf what) {
    return open_[static_cast<std::size_t>(what.rank)][static_cast<std::size_t>(what.step)];
  }

  /// Finds which steps wait for which: for earlier steps, for messages, and sends for earlier ones of a
  /// channel.
  void link_steps() {
    open_.resize(plan_.programs.size());
    next_.resize(plan_.programs.size());
    for (const Program& program : plan_.programs) {
      auto& open = open_[static_cast<std::size_t>(program.rank)];
      auto& next = next_[static_cast<std::size_t>(program.rank)];
      open.assign(program.steps.size(), 0);
      next.resize(program.steps.size());
      std::map<std::pair<Rank, std::int32_t>, StepId> last_of_channel;
      for (StepId id = 0; id < static_cast<StepId>(program.steps.size()); ++id) {
        const Step& step = program.steps[static_cast<std::size_t>(id)];
        const auto wait_for = [&](StepId earlier) {
          next[static_cast<std::size_t>(earlier)].push_back(id);
          ++open[static_cast<std::size_t>(id)];
        };
        for (const StepId earlier : program.after(step)) wait_for(earlier);
        if (step.op == StepOp::kSend) {
          const auto [last, first] = last_of_channel.try_emplace({step.peer, step.lane}, id);
          if (!first) wait_for(std::exchange(last->second, id));
          continue;
        }
        for (const Source& source : program.sources_of(step)) {
          if (source.kind != Source::Kind::kMessage) continue;
          receivers_[{source.peer, program.rank, step.lane, step.stage, step.round}] = {program.rank, id};
          ++open[static_cast<std::size_t>(id)];
        }
      }
    }
  }

  void resolve(StepOf what, std::int64_t now) {
    if (--open_of(what) == 0) events_.push({now, what});
  }

  void done(StepOf what, std::int64_t now) {
    timeline_.end_ns = std::max(timeline_.end_ns, now);
    for (const StepId next :
         next_[static_cast<std::size_t>(what.rank)][static_cast<std::size_t>(what.step)]) {
      resolve({what.rank, next}, now);
    }
  }

  [[nodiscard]] Port nic(std::int64_t server, Rail rail, bool out) const {
    return static_cast<Port>((server * topology_.num_rails + rail) * 2 + (out ? 0 : 1));
  }

  [[nodiscard]] std::int64_t bytes_of(const BufferRange& range) const {
    const BlockMap& blocks = plan_.shape.blocks;
    if (range.buffer != Buffer::kScratch)
      return blocks.elements(range.blocks, volume_.count) * volume_.element_bytes;
    std::int64_t elements = 0;  // scratch repeats the sizes of the vector's blocks
    for (BlockIdx block = range.blocks.first; block < range.blocks.end(); ++block)
      elements += blocks.elements({block % blocks.num_blocks, 1}, volume_.count);
    return elements * volume_.element_bytes;
  }

  /// The NICs and shared cables that a message passes.
  [[nodiscard]] std::vector<Leg> route(Rank from, const Step& step) const {
    std::vector<Leg> legs;
    const std::int64_t local = topology_.ranks_per_server;
    topology::walk(topology_, from, step.peer, step.rail, [&](const Hop& hop) {
      if (hop.out == kNoRail) return;
      const std::int64_t a = hop.from / local, b = hop.to / local;
      const Level& level = topology_.levels[static_cast<std::size_t>(hop.level)];
      legs.push_back({nic(a, hop.out, true), rates_.nic(a, hop.out), 0, a, hop.out, true});
      const Hop servers{
          .from = static_cast<Rank>(a), .to = static_cast<Rank>(b), .out = hop.out, .in = hop.in};
      topology::visit_tiers(topology_, tiers_, servers, [&](std::size_t tier, std::size_t index, bool out) {
        Port port = num_nic_ports_ + index * 2 + (out ? 0 : 1);
        for (std::size_t below = 0; below < tier; ++below) port += static_cast<Port>(tiers_[below].count) * 2;
        legs.push_back({port, rates_.tier(tier, index), 0});
      });
      legs.push_back({nic(b, hop.in, false), rates_.nic(b, hop.in),
                      static_cast<std::int64_t>(std::llround(level.latency_ns)), b, hop.in, false});
    });
    return legs;
  }

  /// Sends, or waits until the NIC is free. Waiting sends go in the order in which they became ready.
  Status send(StepOf what, std::int64_t now) {
    const Step& step = step_of(what);
    const std::int64_t bytes = bytes_of(step.dst);
    const std::vector<Leg> legs = bytes == 0 ? std::vector<Leg>{} : route(what.rank, step);
    if (!legs.empty()) {
      auto& queue = waiting_[legs.front().port];
      const bool waited = !queue.empty() && queue.front() == what;
      if (!waited && (!queue.empty() || free_ns_[legs.front().port] > now)) {
        queue.push_back(what);
        if (queue.size() == 1) events_.push({free_ns_[legs.front().port], what});
        return {};
      }
      if (waited && free_ns_[legs.front().port] > now) {  // a relayed message was first
        events_.push({free_ns_[legs.front().port], what});
        return {};
      }
      if (waited) queue.erase(queue.begin());
    }
    TimedStep timed{what.rank, what.step, now, now, bytes, {}};
    std::int64_t begin = now, end = now, out_end = now;
    for (const Leg& leg : legs) {
      if (leg.bytes_per_s <= 0) {
        return Status::error(
            Code::kUnsupported,
            fmt::format("timeline: rank {} sends to rank {} over a link that is down", what.rank, step.peer));
      }
      begin = std::max(begin + leg.delay_ns, free_ns_[leg.port]);
      const auto duration = std::llround(static_cast<double>(bytes) / leg.bytes_per_s * 1e9);
      end = std::max<std::int64_t>(begin + duration, end + leg.delay_ns);
      free_ns_[leg.port] = end;
      if (leg.server >= 0) timed.passages.push_back({leg.server, leg.rail, leg.out, begin, end});
      if (&leg == &legs.front()) out_end = end;
    }
    timed.end_ns = end;
    timeline_.steps.push_back(std::move(timed));
    if (const auto receiver = receivers_.find({what.rank, step.peer, step.lane, step.stage, step.round});
        receiver != receivers_.end()) {
      resolve(receiver->second, end);
    }
    done(what, out_end);
    if (!legs.empty() && !waiting_[legs.front().port].empty())
      events_.push({out_end, waiting_[legs.front().port].front()});
    return {};
  }

  const Topology& topology_;
  const Plan& plan_;
  Volume volume_;
  std::vector<topology::Tier> tiers_;
  topology::LinkRates rates_;
  Port num_nic_ports_ = 0;
  std::vector<std::int64_t> free_ns_;                   ///< by port
  std::vector<std::vector<StepOf>> waiting_;            ///< by the port of a NIC: sends that are ready
  std::vector<std::vector<std::int32_t>> open_;         ///< [rank][step]: number of things it still waits for
  std::vector<std::vector<std::vector<StepId>>> next_;  ///< [rank][step]: the steps that wait for it
  std::map<Name, StepOf> receivers_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Timeline timeline_;
};

}  // namespace

Result<Timeline> timeline(const Topology& topology, const Plan& plan, Volume volume) {
  return Simulation(topology, plan, volume).run();
}

}  // namespace hips::cost

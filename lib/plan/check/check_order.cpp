#include "lib/plan/check/check_order.hpp"

#include <algorithm>
#include <tuple>

namespace hips::plan {
namespace {

std::int64_t segments_in(std::int64_t elements, std::int64_t segment_elements) {
  return (elements + segment_elements - 1) / segment_elements;
}

/// The range whose overlap decides how a step waits for an earlier one: dst, or what a send reads.
const BufferRange& ordered_range(const Program& program, const Step& step) {
  return step.op == StepOp::kSend ? program.sources[step.first_source].local : step.dst;
}

}  // namespace

std::int64_t HappensBefore::segment_elements(const Plan& plan, const CheckLayout& layout,
                                             std::int32_t segments) {
  std::int64_t longest = 1;
  for (const Program& program : plan.programs) {
    for (const Step& step : program.steps) longest = std::max(longest, layout.elements(step.dst));
  }
  return segments_in(longest, std::max(segments, 1));
}

bool HappensBefore::fits(const Plan& plan, const CheckLayout& layout, std::int32_t segments) {
  const std::int64_t size = segment_elements(plan, layout, segments);
  std::int64_t nodes = 0;
  std::int64_t dependencies = 0;
  for (const Program& program : plan.programs) {
    for (const Step& step : program.steps) {
      const std::int64_t own = segments_in(layout.elements(step.dst), size);
      nodes += own;
      for (const StepId dep : program.after(step)) {
        dependencies += own + segments_in(layout.elements(program.steps[dep].dst), size);
      }
      if (nodes > kMostNodes || dependencies > kMostDependencies) return false;
    }
  }
  return true;
}

HappensBefore::HappensBefore(const Plan& plan, const StepTable& table, const Messages& messages,
                             const CheckLayout& layout, const Options& options)
    : layout_(layout), table_(table), segment_elements_(segment_elements(plan, layout, options.segments)) {
  first_node_.reserve(static_cast<std::size_t>(table.size()) + 1);
  step_of_.reserve(table.size());
  for (const Program& program : plan.programs) {
    for (const Step& step : program.steps) {
      const StepIdx idx = static_cast<StepIdx>(first_node_.size());
      first_node_.push_back(num_nodes());
      const std::int64_t segments = segments_in(layout.elements(step.dst), segment_elements_);
      step_of_.insert(step_of_.end(), static_cast<std::size_t>(segments), idx);
    }
  }
  first_node_.push_back(num_nodes());

  // Two passes, count and fill, so that an edge takes only four bytes.
  first_edge_.assign(static_cast<std::size_t>(num_nodes()) + 1, 0);
  for_each_edge(plan, messages, options.credits,
                [&](NodeIdx from, NodeIdx, EdgeKind) { ++first_edge_[static_cast<std::size_t>(from) + 1]; });
  for (NodeIdx node = 0; node < num_nodes(); ++node) first_edge_[node + 1] += first_edge_[node];
  edges_.resize(first_edge_.back());
  std::vector<std::size_t> next(first_edge_.begin(), first_edge_.end() - 1);
  for_each_edge(plan, messages, options.credits, [&](NodeIdx from, NodeIdx to, EdgeKind kind) {
    edges_[next[from]++] = to | static_cast<std::uint32_t>(kind) << kKindShift;
  });
}

ElementRange HappensBefore::segment_extent(NodeIdx node) const {
  const std::int64_t begin = segment_of(node) * segment_elements_;
  return {begin, std::min(begin + segment_elements_, layout_.elements(table_.step(step_of_[node]).dst))};
}

template <typename Visit>
void HappensBefore::for_each_edge(const Plan& plan, const Messages& messages, std::int32_t credits,
                                  Visit&& visit) const {
  struct ChannelStep {
    Rank peer;
    std::int32_t lane;
    StepIdx step;
  };
  std::vector<ChannelStep> sends;
  std::vector<NodeIdx> sequence;   // of one channel, segment by segment
  std::vector<NodeIdx> receivers;  // of the same messages
  for (Rank rank = 0; rank < plan.shape.num_ranks; ++rank) {
    const Program& program = plan.programs[rank];
    sends.clear();
    for (StepId id = 0; id < static_cast<StepId>(program.steps.size()); ++id) {
      const Step& step = program.steps[id];
      const StepIdx idx = table_.idx(rank, id);
      const NodeIdx begin = first_node(idx);
      const NodeIdx end = end_node(idx);
      if (begin == end) continue;
      for (StepId dep : program.after(step))
        visit_dependency(program, program.steps[dep], table_.idx(rank, dep), step, idx, visit);
      if (step.op == StepOp::kSend) {
        sends.push_back({step.peer, step.lane, idx});
        const NodeIdx receiver = first_node(messages.receiver_of(idx));
        for (NodeIdx node = begin; node < end; ++node)
          visit(node, receiver + (node - begin), EdgeKind::kMessage);
      } else {
        for (NodeIdx node = begin; node + 1 < end; ++node) visit(node, node + 1, EdgeKind::kAfter);
      }
    }

    std::sort(sends.begin(), sends.end(), [](const ChannelStep& a, const ChannelStep& b) {
      return std::tie(a.peer, a.lane, a.step) < std::tie(b.peer, b.lane, b.step);
    });
    for (std::size_t i = 0; i < sends.size();) {
      sequence.clear();
      receivers.clear();
      const ChannelStep& channel = sends[i];
      for (; i < sends.size() && sends[i].peer == channel.peer && sends[i].lane == channel.lane; ++i) {
        const NodeIdx receiver = first_node(messages.receiver_of(sends[i].step));
        for (NodeIdx node = first_node(sends[i].step); node < end_node(sends[i].step); ++node) {
          sequence.push_back(node);
          receivers.push_back(receiver + (node - first_node(sends[i].step)));
        }
      }
      // Slots are returned in order. That follows from these edges: the send that waits for number k has
      // waited, through the sends before it, for all numbers below k.
      for (std::size_t k = 0; k < sequence.size(); ++k) {
        if (k > 0) visit(sequence[k - 1], sequence[k], EdgeKind::kChannel);
        if (k >= static_cast<std::size_t>(credits))
          visit(receivers[k - credits], sequence[k], EdgeKind::kCredit);
      }
    }
  }
}

template <typename Visit>
void HappensBefore::visit_dependency(const Program& program, const Step& before, StepIdx before_idx,
                                     const Step& step, StepIdx step_idx, Visit&& visit) const {
  const NodeIdx before_begin = first_node(before_idx);
  const NodeIdx before_end = end_node(before_idx);
  if (before_begin == before_end) return;
  // Segments of a reduction or copy finish in order, so that waiting for the last one is enough. Local
  // completions of sends may come in any order.
  const auto wait = [&](NodeIdx first, NodeIdx last, NodeIdx waiting) {
    if (before.op != StepOp::kSend) first = last;
    for (NodeIdx node = first; node <= last; ++node) visit(node, waiting, EdgeKind::kAfter);
  };

  const BufferRange& before_range = ordered_range(program, before);
  const BufferRange& range = ordered_range(program, step);
  const bool one_space = before_range.buffer != Buffer::kScratch && range.buffer != Buffer::kScratch;
  const ElementRange a = layout_.extent(before_range, true);
  const ElementRange b = layout_.extent(range, true);
  const std::int64_t shared_begin = std::max(a.begin, b.begin);
  const std::int64_t shared_end = std::min(a.end, b.end);
  if (!one_space || shared_begin >= shared_end) {
    wait(before_begin, before_end - 1, first_node(step_idx));
    return;
  }
  for (NodeIdx node = first_node(step_idx); node < end_node(step_idx); ++node) {
    const ElementRange segment = segment_extent(node);
    const std::int64_t begin = std::max(b.begin + segment.begin, shared_begin) - a.begin;
    const std::int64_t end = std::min(b.begin + segment.end, shared_end) - a.begin;
    if (begin >= end) continue;
    wait(before_begin + static_cast<NodeIdx>(begin / segment_elements_),
         before_begin + static_cast<NodeIdx>((end - 1) / segment_elements_), node);
  }
}

std::vector<NodeIdx> HappensBefore::topological_order() const {
  std::vector<std::uint32_t> waits_for(num_nodes(), 0);
  for (std::uint32_t packed : edges_) ++waits_for[packed & kNodeMask];
  std::vector<NodeIdx> order;
  order.reserve(num_nodes());
  // Last in, first out: a message is received soon after it is sent, so that few are outstanding. Pushed
  // backwards, so that low ranks and steps come first.
  std::vector<NodeIdx> ready;
  for (NodeIdx node = num_nodes(); node-- > 0;) {
    if (waits_for[node] == 0) ready.push_back(node);
  }
  while (!ready.empty()) {
    const NodeIdx node = ready.back();
    ready.pop_back();
    order.push_back(node);
    for (std::size_t i = 0; i < num_edges(node); ++i) {
      const NodeIdx to = edge(node, i).to;
      if (--waits_for[to] == 0) ready.push_back(to);
    }
  }
  return order;
}

std::vector<HappensBefore::CycleStep> HappensBefore::shortest_cycle(std::int64_t work) const {
  // Only nodes that topological_order() cannot reach can be on a cycle.
  std::vector<char> suspect(num_nodes(), 1);
  for (NodeIdx node : topological_order()) suspect[node] = 0;

  std::vector<CycleStep> best;
  struct Visited {
    NodeIdx start = kNoNode;  ///< of the search that reached it last
    NodeIdx from = kNoNode;
    EdgeKind kind = EdgeKind::kAfter;
  };
  std::vector<Visited> visited(num_nodes());
  std::vector<NodeIdx> frontier;
  std::vector<NodeIdx> next;
  for (NodeIdx start = 0; start < num_nodes() && work > 0; ++start) {
    if (!suspect[start]) continue;
    frontier.assign(1, start);
    bool found = false;
    // A cycle of length `depth` is found when the edge back to the start is visited from depth - 1.
    for (std::size_t depth = 1; !frontier.empty() && !found && (best.empty() || depth < best.size());
         ++depth) {
      next.clear();
      for (std::size_t f = 0; f < frontier.size() && !found; ++f) {
        const NodeIdx node = frontier[f];
        for (std::size_t i = 0; i < num_edges(node) && !found; ++i) {
          const Edge out = edge(node, i);
          --work;
          if (!suspect[out.to] || visited[out.to].start == start) continue;
          visited[out.to] = {start, node, out.kind};
          if (out.to == start) {
            found = true;
          } else {
            next.push_back(out.to);
          }
        }
      }
      frontier.swap(next);
    }
    if (!found) continue;
    best.clear();
    for (NodeIdx node = start; best.empty() || node != start; node = visited[node].from) {
      best.push_back({node, visited[node].kind});
    }
    std::reverse(best.begin(), best.end());
  }
  return best;
}

}  // namespace hips::plan

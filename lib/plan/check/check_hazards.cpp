#include "lib/plan/check/check_hazards.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace hips::plan {
namespace {

/// Two accesses that must not run at the same time; `first` is first in the program.
struct AccessPair {
  NodeIdx first, second;
  std::int64_t element;  ///< one that both access
  bool first_writes, second_writes;
};

/// Limits for the pairs, and for the readers remembered at a time, of one rank, so that no stored file
/// exhausts memory.
constexpr std::size_t kMostPairs = std::size_t{1} << 25;

/// The order of the nodes of one rank that follows from the rank's own edges.
class LocalOrder {
 public:
  /// The rank's nodes end at `end`.
  LocalOrder(const HappensBefore& order, NodeIdx end) : order_(order), end_(end) {}

  /// Removes from `pairs` those whose first access has finished before the second starts. Subtracts the
  /// visited words from `work`; if that is used up, returns false and leaves `pairs` as it was.
  bool remove_ordered(std::vector<AccessPair>& pairs, std::int64_t& work) {
    std::vector<AccessPair> left;
    for (std::size_t i = 0; i < pairs.size();) {
      // Ancestors are kept for a window of nodes at a time: a program of a million steps costs time, not
      // memory.
      window_ = pairs[i].first;
      const std::size_t widest = std::max<std::size_t>(kMostBits / (end_ - window_), 64);
      width_ = std::min<std::size_t>({kWindow, widest, end_ - window_});
      words_ = (width_ + 63) / 64;
      work -= static_cast<std::int64_t>((end_ - window_) * words_);
      if (work < 0) return false;
      sweep();
      for (; i < pairs.size() && pairs[i].first < window_ + width_; ++i) {
        if (!test(pairs[i].second, pairs[i].first)) left.push_back(pairs[i]);
      }
    }
    pairs.swap(left);
    return true;
  }

 private:
  static constexpr std::size_t kWindow = 4096;
  static constexpr std::size_t kMostBits = std::size_t{1} << 31;

  void sweep() {
    bits_.assign((end_ - window_) * words_, 0);
    for (NodeIdx node = window_; node < end_; ++node) {
      const std::uint64_t* own = row(node);
      for (std::size_t i = 0; i < order_.num_edges(node); ++i) {
        const HappensBefore::Edge edge = order_.edge(node, i);
        if (edge.to <= node || edge.to >= end_) continue;
        if (edge.kind != EdgeKind::kAfter && edge.kind != EdgeKind::kChannel) continue;
        std::uint64_t* other = row(edge.to);
        for (std::size_t word = 0; word < words_; ++word) other[word] |= own[word];
        // A channel orders the starts of two sends: what finished before the first starts has finished before
        // the second starts, but the first itself has not.
        const std::size_t bit = node - window_;
        if (edge.kind == EdgeKind::kAfter && bit < width_) other[bit / 64] |= std::uint64_t{1} << (bit % 64);
      }
    }
  }

  std::uint64_t* row(NodeIdx node) { return bits_.data() + (node - window_) * words_; }
  bool test(NodeIdx node, NodeIdx ancestor) {
    const std::size_t bit = ancestor - window_;
    return (row(node)[bit / 64] >> (bit % 64) & 1) != 0;
  }

  const HappensBefore& order_;
  NodeIdx end_;
  NodeIdx window_ = 0;
  std::size_t width_ = 0, words_ = 0;
  std::vector<std::uint64_t> bits_;
};

/// Finds the pairs of one rank, element range by element range.
class AccessScan {
 public:
  AccessScan(const Plan& plan, const StepTable& table, const CheckLayout& layout, const HappensBefore& order,
             bool in_place)
      : plan_(plan), table_(table), layout_(layout), order_(order), in_place_(in_place) {}

  /// The pairs, sorted; none if there are more than kMostPairs.
  std::optional<std::vector<AccessPair>> pairs_of(Rank rank) {
    collect_accesses(rank);
    cut_into_cells();
    pairs_.clear();
    last_writer_.assign(cuts_.size(), kNoNode);
    last_reader_.assign(cuts_.size(), kNoReader);
    readers_.clear();
    for (const Access& access : accesses_) {
      const auto from = std::lower_bound(cuts_.begin(), cuts_.end(), access.extent.begin) - cuts_.begin();
      for (std::size_t cell = from; cuts_[cell] < access.extent.end; ++cell) visit(access, cell);
      if (pairs_.size() > kMostPairs) remove_duplicates();
      if (pairs_.size() > kMostPairs || readers_.size() > kMostPairs) return std::nullopt;
    }
    remove_duplicates();
    return std::move(pairs_);
  }

 private:
  struct Access {
    NodeIdx node;
    bool writes;
    ElementRange extent;
  };
  /// A reader of a cell since its last write, in a list.
  struct Reader {
    NodeIdx node;
    std::uint32_t next;
  };
  static constexpr std::uint32_t kNoReader = UINT32_MAX;

  void collect_accesses(Rank rank) {
    accesses_.clear();
    const Program& program = plan_.programs[rank];
    for (StepId id = 0; id < static_cast<StepId>(program.steps.size()); ++id) {
      const Step& step = program.steps[id];
      const StepIdx idx = table_.idx(rank, id);
      for (NodeIdx node = order_.first_node(idx); node < order_.end_node(idx); ++node) {
        // Reads before the write: a step may reduce into its own source.
        for (const Source& source : program.sources_of(step)) {
          if (source.kind == Source::Kind::kLocal) add(node, false, source.local);
        }
        if (step.op != StepOp::kSend) add(node, true, step.dst);
      }
    }
  }

  void add(NodeIdx node, bool writes, const BufferRange& range) {
    const std::int64_t base = layout_.extent(range, in_place_).begin;
    const ElementRange segment = order_.segment_extent(node);
    accesses_.push_back({node, writes, {base + segment.begin, base + segment.end}});
  }

  void cut_into_cells() {
    cuts_.clear();
    for (const Access& access : accesses_) {
      cuts_.push_back(access.extent.begin);
      cuts_.push_back(access.extent.end);
    }
    std::sort(cuts_.begin(), cuts_.end());
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
  }

  void visit(const Access& access, std::size_t cell) {
    // Every later access waits for the last writer, and a writer for the readers since then. By transitivity
    // that orders all accesses of the cell.
    if (!access.writes) {
      add_pair(last_writer_[cell], true, access, cell);
      readers_.push_back({access.node, last_reader_[cell]});
      last_reader_[cell] = static_cast<std::uint32_t>(readers_.size() - 1);
      return;
    }
    bool has_readers = false;
    for (std::uint32_t reader = last_reader_[cell]; reader != kNoReader; reader = readers_[reader].next) {
      if (readers_[reader].node == access.node) continue;
      has_readers = true;
      add_pair(readers_[reader].node, false, access, cell);
    }
    if (!has_readers) add_pair(last_writer_[cell], true, access, cell);
    last_writer_[cell] = access.node;
    last_reader_[cell] = kNoReader;
  }

  void add_pair(NodeIdx first, bool first_writes, const Access& second, std::size_t cell) {
    if (first == kNoNode || first == second.node) return;
    // The cells of one range give the same pair repeatedly.
    if (!pairs_.empty() && pairs_.back().first == first && pairs_.back().second == second.node) return;
    pairs_.push_back({first, second.node, cuts_[cell], first_writes, second.writes});
  }

  void remove_duplicates() {
    std::sort(pairs_.begin(), pairs_.end(), [](const AccessPair& a, const AccessPair& b) {
      return std::tie(a.first, a.second, a.element) < std::tie(b.first, b.second, b.element);
    });
    const auto same = [](const AccessPair& a, const AccessPair& b) {
      return a.first == b.first && a.second == b.second;
    };
    pairs_.erase(std::unique(pairs_.begin(), pairs_.end(), same), pairs_.end());
  }

  const Plan& plan_;
  const StepTable& table_;
  const CheckLayout& layout_;
  const HappensBefore& order_;
  bool in_place_;
  std::vector<Access> accesses_;
  std::vector<std::int64_t> cuts_;
  std::vector<NodeIdx> last_writer_;
  std::vector<std::uint32_t> last_reader_;
  std::vector<Reader> readers_;
  std::vector<AccessPair> pairs_;
};

/// Searches the order of all ranks, for pairs that the rank's own edges do not decide.
class GlobalOrder {
 public:
  GlobalOrder(const HappensBefore& order, std::span<const NodeIdx> topological) : order_(order) {
    position_.resize(order.num_nodes());
    for (std::size_t i = 0; i < topological.size(); ++i)
      position_[topological[i]] = static_cast<std::uint32_t>(i);
    seen_.assign(order.num_nodes(), kNoNode);
  }

  /// Removes the pairs that are ordered. `pairs` are sorted by their first access. If that takes more than
  /// `work` edges, returns false and leaves `pairs` as it was.
  bool remove_ordered(std::vector<AccessPair>& pairs, std::int64_t work) {
    work_ = work;
    std::vector<AccessPair> left;
    for (std::size_t i = 0; i < pairs.size();) {
      std::size_t end = i;
      std::uint32_t last = 0;
      for (; end < pairs.size() && pairs[end].first == pairs[i].first; ++end) {
        last = std::max(last, position_[pairs[end].second]);
      }
      search(pairs[i].first, last);
      if (work_ < 0) return false;
      for (; i < end; ++i) {
        if (seen_[pairs[i].second] != pairs[i].first) left.push_back(pairs[i]);
      }
    }
    pairs.swap(left);
    return true;
  }

 private:
  /// Marks the nodes that start after `first` has finished, up to a position in the topological order.
  void search(NodeIdx first, std::uint32_t last) {
    // Only kAfter edges leave the finish of a send. A reduction or copy has no kChannel edge, and its kCredit
    // edges do not count.
    follow(first, first, last, true);
    while (!stack_.empty() && work_ >= 0) {
      const NodeIdx node = stack_.back();
      stack_.pop_back();
      follow(first, node, last, false);
    }
  }

  void follow(NodeIdx first, NodeIdx node, std::uint32_t last, bool only_after) {
    for (std::size_t i = 0; i < order_.num_edges(node); ++i) {
      const HappensBefore::Edge edge = order_.edge(node, i);
      --work_;
      if (edge.kind == EdgeKind::kCredit || (only_after && edge.kind != EdgeKind::kAfter)) continue;
      if (position_[edge.to] > last || seen_[edge.to] == first) continue;
      seen_[edge.to] = first;
      stack_.push_back(edge.to);
    }
  }

  const HappensBefore& order_;
  std::vector<std::uint32_t> position_;
  std::vector<NodeIdx> seen_;  ///< by node: the start of the search that reached it last
  std::vector<NodeIdx> stack_;
  std::int64_t work_ = 0;
};

void report(const Plan& plan, const StepTable& table, const CheckLayout& layout, const HappensBefore& order,
            const AccessPair& pair, bool in_place, Findings& findings) {
  const StepIdx first = order.step_of(pair.first);
  const StepIdx second = order.step_of(pair.second);
  const Rank rank = table.rank(first);
  const Step& first_step = table.step(first);
  const BlockIdx block = layout.block_at(pair.element);
  std::vector<std::string> example;
  for (StepIdx idx : {first, second}) {
    const Step& step = table.step(idx);
    const Program& program = plan.programs[rank];
    std::string sources;
    for (const Source& source : program.sources_of(step)) {
      if (!sources.empty()) sources += ", ";
      sources += source.kind == Source::Kind::kLocal
                     ? range_name(source.local)
                     : fmt::format("a message from {}", findings.rank_name(source.peer));
    }
    example.push_back(fmt::format("{} from {}", findings.step_name(rank, table.id(idx)), sources));
  }
  const StepId first_id = table.id(first);
  const StepId second_id = table.id(second);
  const char* done = !pair.first_writes ? "has read" : pair.second_writes ? "has" : "has written";
  findings.report(
      FindingKind::kOverlap, Findings::place(rank, second_id, table.step(second), block),
      fmt::format("block {} of {}, {}: step {} may {} it before step {} {}{}; nothing makes it wait for {}{}",
                  block, findings.rank_name(rank), in_place ? "in place" : "out of place", second_id,
                  pair.second_writes ? "write" : "read", first_id, done,
                  pair.first_writes && pair.second_writes ? "" : " it",
                  first_step.op == StepOp::kSend ? "the local completion of step " : "step ", first_id),
      std::move(example));
}

}  // namespace

void check_hazards(const Plan& plan, const StepTable& table, const CheckLayout& layout,
                   const HappensBefore& order, std::span<const NodeIdx> topological, bool in_place,
                   Findings& findings) {
  AccessScan scan(plan, table, layout, order, in_place);
  std::vector<AccessPair> undecided;
  std::int64_t work = findings.options().max_accesses;
  for (Rank rank = 0; rank < plan.shape.num_ranks; ++rank) {
    const NodeIdx end =
        order.first_node(table.first(rank) + static_cast<StepIdx>(plan.programs[rank].steps.size()));
    std::optional<std::vector<AccessPair>> pairs = scan.pairs_of(rank);
    if (pairs && !LocalOrder(order, end).remove_ordered(*pairs, work)) {
      findings.add(FindingKind::kTooLarge, {.rank = rank},
                   fmt::format("{} has too many steps to order them in pairs", findings.rank_name(rank)));
      return;
    }
    if (!pairs || undecided.size() + pairs->size() > kMostPairs) {
      findings.add(FindingKind::kTooLarge, {.rank = rank},
                   fmt::format("more than {} pairs of accesses at {}", kMostPairs, findings.rank_name(rank)));
      return;
    }
    undecided.insert(undecided.end(), pairs->begin(), pairs->end());
  }
  if (undecided.empty()) return;
  if (!GlobalOrder(order, topological).remove_ordered(undecided, findings.options().max_accesses)) {
    findings.add(FindingKind::kTooLarge, {},
                 fmt::format("{} pairs of accesses are not ordered inside their rank, and a search in the "
                             "order of all ranks takes "
                             "more than {} edges",
                             undecided.size(), findings.options().max_accesses));
    return;
  }
  for (const AccessPair& pair : undecided) {
    if (findings.count(FindingKind::kOverlap)) report(plan, table, layout, order, pair, in_place, findings);
  }
}

}  // namespace hips::plan

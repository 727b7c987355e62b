#include "tests/plan/brute_force.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

namespace hips::tests {
namespace {

using Word = std::uint64_t;
using Random = std::mt19937_64;

/// A half-open range of elements of one buffer.
struct Elements {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

enum class Moment { kPost, kRead, kComplete, kArrive, kStart, kFinish };
constexpr std::size_t kNumMoments = 6;

/// An action that can happen next.
struct Action {
  Moment moment;
  Rank rank;
  std::int32_t step;
  std::int64_t segment;
};

/// (sender, receiver, lane, stage, round), and the segment.
using MessageKey = std::tuple<Rank, Rank, std::int32_t, std::int32_t, std::int32_t, std::int64_t>;
using ChannelKey = std::tuple<Rank, Rank, std::int32_t>;

struct Channel {
  std::vector<std::int32_t> sends;  ///< steps of the sender, in program order
  std::size_t next_send = 0;        ///< index into `sends` of the step that posts next
  std::int64_t posted = 0, released = 0;
  std::map<std::int64_t, bool> taken;  ///< by position in the channel; released in order
};

struct StepState {
  std::int64_t num_segments = 0;
  std::int64_t next = 0;       ///< segment that starts next
  bool busy = false;           ///< reduce, copy: started and not finished
  bool queued = false;         ///< is in the list of actions as startable
  std::vector<bool> finished;  ///< by segment
  std::int64_t num_finished = 0;
  std::int64_t first_position = 0;      ///< send: place of its segment 0 in the channel
  std::vector<std::vector<Word>> data;  ///< by segment: read and not arrived; or reduced and not written
};

struct Arrived {
  std::vector<Word> data;
  std::int64_t position;  ///< in its channel
};

class Machine {
 public:
  Machine(const Plan& plan, const BruteForceOptions& options)
      : plan_(plan), options_(options), random_(options.seed) {}

  std::string run() {
    if (std::string problem = lay_out(); !problem.empty()) return problem;
    draw_pace();
    for (Rank rank = 0; rank < plan_.shape.num_ranks; ++rank) {
      for (std::size_t id = 0; id < steps_[rank].size(); ++id)
        offer_start(rank, static_cast<std::int32_t>(id));
    }
    while (problem_.empty()) {
      const std::size_t moment = draw_moment();
      if (moment == kNumMoments) break;
      std::vector<Action>& actions = actions_[moment];
      const std::size_t i = random_() % actions.size();
      const Action action = actions[i];
      actions[i] = actions.back();
      actions.pop_back();
      perform(action);
    }
    return problem_.empty() ? outcome() : problem_;
  }

 private:
  // ---- Set-up ------------------------------------------------------------------------------------------

  [[nodiscard]] std::int64_t at(BlockIdx block) const {
    return plan_.shape.blocks.boundary(block, options_.count);
  }

  [[nodiscard]] bool in_range(const BufferRange& range) const {
    const BlockMap& map = plan_.shape.blocks;
    const BlockIdx size = range.buffer == Buffer::kScratch ? map.num_scratch_blocks : map.num_blocks;
    return range.blocks.first >= 0 && range.blocks.count >= 1 && range.blocks.end() <= size &&
           range.blocks.first % map.num_blocks + range.blocks.count <= map.num_blocks;
  }

  /// The elements of a range inside its buffer; scratch is consecutive copies of the vector.
  [[nodiscard]] Elements elements(const BufferRange& range) const {
    const BlockIdx num_blocks = plan_.shape.blocks.num_blocks;
    const std::int64_t copy = range.blocks.first / num_blocks * options_.count;
    const BlockIdx first = range.blocks.first % num_blocks;
    return {copy + at(first), copy + at(first + range.blocks.count)};
  }

  [[nodiscard]] const Step& step(Rank rank, std::int32_t id) const { return plan_.programs[rank].steps[id]; }

  std::string lay_out() {
    const Rank n = plan_.shape.num_ranks;
    std::int64_t longest = 1;
    for (const Program& program : plan_.programs) {
      for (const Step& s : program.steps) {
        if (!in_range(s.dst)) return "malformed: destination out of range";
        if (s.num_sources < 1 || (s.op != StepOp::kReduce && s.num_sources > 1)) {
          return "malformed: wrong number of sources";
        }
        if (s.op == StepOp::kSend && program.sources_of(s)[0].kind == Source::Kind::kMessage) {
          return "malformed: sends a message";
        }
        if (s.op == StepOp::kSend && (s.peer < 0 || s.peer >= n)) return "malformed: peer out of range";
        for (const Source& source : program.sources_of(s)) {
          if (source.kind == Source::Kind::kMessage && (source.peer < 0 || source.peer >= n)) {
            return "malformed: source's peer out of range";
          }
          if (source.kind == Source::Kind::kLocal && !in_range(source.local))
            return "malformed: source out of range";
          if (source.kind == Source::Kind::kLocal &&
              elements(source.local).size() != elements(s.dst).size()) {
            return "source and destination differ in size";
          }
        }
        longest = std::max(longest, elements(s.dst).size());
      }
    }
    segment_elements_ = (longest + options_.segments - 1) / options_.segments;

    input_.resize(n);
    output_.resize(n);
    scratch_.resize(n);
    steps_.resize(n);
    waiters_.resize(n);
    const std::int64_t copies = plan_.shape.blocks.num_scratch_blocks / plan_.shape.blocks.num_blocks + 1;
    expected_.assign(static_cast<std::size_t>(options_.count), 0);
    for (Rank rank = 0; rank < n; ++rank) {
      for (std::int64_t e = 0; e < options_.count; ++e) {
        input_[rank].push_back(random_());
        output_[rank].push_back(random_());  // unwritten memory is random
        expected_[e] += input_[rank].back();
      }
      for (std::int64_t e = 0; e < copies * options_.count; ++e) scratch_[rank].push_back(random_());
      lay_out_steps(rank);
    }
    given_ = input_;
    for (auto& [key, channel] : channels_) {
      std::int64_t position = 0;
      for (const std::int32_t id : channel.sends) {
        StepState& state = steps_[std::get<0>(key)][id];
        state.first_position = position;
        position += state.num_segments;
      }
    }
    return "";
  }

  void lay_out_steps(Rank rank) {
    const Program& program = plan_.programs[rank];
    steps_[rank].resize(program.steps.size());
    waiters_[rank].resize(program.steps.size());
    for (std::size_t id = 0; id < program.steps.size(); ++id) {
      const Step& s = program.steps[id];
      StepState& state = steps_[rank][id];
      state.num_segments = (elements(s.dst).size() + segment_elements_ - 1) / segment_elements_;
      state.finished.assign(static_cast<std::size_t>(state.num_segments), false);
      state.data.resize(static_cast<std::size_t>(state.num_segments));
      if (state.num_segments == 0) continue;
      const auto self = static_cast<std::int32_t>(id);
      for (const StepId dep : program.after(s)) waiters_[rank][dep].push_back(self);
      if (s.op == StepOp::kSend) channels_[{rank, s.peer, s.lane}].sends.push_back(self);
      for (const Source& source : program.sources_of(s)) {
        if (source.kind != Source::Kind::kMessage) continue;
        receivers_[{source.peer, rank, s.lane, s.stage, s.round, 0}].push_back(self);
      }
    }
  }

  // ---- Schedule ----------------------------------------------------------------------------------------

  /// Some runs are fair. In others a kind of moment is so rare that it comes only if no other can, as extreme
  /// schedules show hazards.
  void draw_pace() {
    for (double& weight : weight_) {
      const std::uint64_t kind = random_() % 3;
      weight = kind == 0 ? 1e-6 : kind == 1 ? 1 : 1e3;
    }
  }

  /// A kind of moment that can happen now; kNumMoments if none can.
  std::size_t draw_moment() {
    double total = 0;
    for (std::size_t m = 0; m < kNumMoments; ++m) {
      if (!actions_[m].empty()) total += weight_[m];
    }
    if (total == 0) return kNumMoments;
    double x = std::uniform_real_distribution<double>(0, total)(random_);
    std::size_t last = kNumMoments;
    for (std::size_t m = 0; m < kNumMoments; ++m) {
      if (actions_[m].empty()) continue;
      last = m;
      if (x < weight_[m]) break;
      x -= weight_[m];
    }
    return last;
  }

  void offer(Moment moment, Rank rank, std::int32_t id, std::int64_t segment) {
    actions_[static_cast<std::size_t>(moment)].push_back({moment, rank, id, segment});
  }

  /// Lists the next segment of a step if it can start.
  void offer_start(Rank rank, std::int32_t id) {
    StepState& state = steps_[rank][id];
    if (state.queued || state.busy || state.next == state.num_segments) return;
    if (!after_satisfied(rank, id, state.next)) return;
    const Step& s = step(rank, id);
    if (s.op == StepOp::kSend) {
      const Channel& channel = channels_.at({rank, s.peer, s.lane});
      if (channel.sends[channel.next_send] != id) return;
      if (channel.posted - channel.released >= options_.credits) return;
      state.queued = true;
      offer(Moment::kPost, rank, id, state.next);
      return;
    }
    for (const Source& source : plan_.programs[rank].sources_of(s)) {
      if (source.kind != Source::Kind::kMessage) continue;
      if (!mailbox_.contains({source.peer, rank, s.lane, s.stage, s.round, state.next})) return;
    }
    state.queued = true;
    offer(Moment::kStart, rank, id, state.next);
  }

  /// Implements plan.hpp, "Order", literally.
  bool after_satisfied(Rank rank, std::int32_t id, std::int64_t segment) {
    const Step& b = step(rank, id);
    const BufferRange& b_range = ordering_range(rank, b);
    const Elements b_all = elements(b_range);
    const std::int64_t begin = b_all.begin + segment * segment_elements_;
    const std::int64_t end = std::min(begin + segment_elements_, b_all.end);
    for (const StepId dep : plan_.programs[rank].after(b)) {
      const StepState& a_state = steps_[rank][dep];
      if (a_state.num_finished == a_state.num_segments) continue;
      const BufferRange& a_range = ordering_range(rank, step(rank, dep));
      const Elements a_all = elements(a_range);
      const bool scratch = a_range.buffer == Buffer::kScratch || b_range.buffer == Buffer::kScratch;
      if (scratch || a_all.end <= b_all.begin || b_all.end <= a_all.begin) return false;
      for (std::int64_t e = std::max(begin, a_all.begin); e < std::min(end, a_all.end); ++e) {
        if (!a_state.finished[(e - a_all.begin) / segment_elements_]) return false;
      }
    }
    return true;
  }

  [[nodiscard]] const BufferRange& ordering_range(Rank rank, const Step& s) const {
    return s.op == StepOp::kSend ? plan_.programs[rank].sources[s.first_source].local : s.dst;
  }

  // ---- Moments -----------------------------------------------------------------------------------------

  std::vector<Word>& memory(Rank rank, Buffer buffer) {
    if (buffer == Buffer::kScratch) return scratch_[rank];
    return buffer == Buffer::kInput || options_.in_place ? input_[rank] : output_[rank];
  }

  std::vector<Word> load(Rank rank, const BufferRange& range, std::int64_t segment) {
    const Elements all = elements(range);
    const std::int64_t begin = all.begin + segment * segment_elements_;
    const std::int64_t end = std::min(begin + segment_elements_, all.end);
    const std::vector<Word>& from = memory(rank, range.buffer);
    return {from.begin() + begin, from.begin() + end};
  }

  void perform(const Action& action) {
    switch (action.moment) {
      case Moment::kPost:
        return post(action);
      case Moment::kRead:
        return read(action);
      case Moment::kComplete:
        return finish_segment(action);
      case Moment::kArrive:
        return arrive(action);
      case Moment::kStart:
        return start(action);
      case Moment::kFinish:
        return finish(action);
    }
  }

  void post(const Action& action) {
    const Step& s = step(action.rank, action.step);
    StepState& state = steps_[action.rank][action.step];
    Channel& channel = channels_.at({action.rank, s.peer, s.lane});
    state.queued = false;
    ++state.next;
    ++channel.posted;
    if (state.next == state.num_segments) ++channel.next_send;
    offer(Moment::kRead, action.rank, action.step, action.segment);
    offer_head(channel, action.rank);
  }

  void offer_head(const Channel& channel, Rank sender) {
    if (channel.next_send < channel.sends.size()) offer_start(sender, channel.sends[channel.next_send]);
  }

  void read(const Action& action) {
    StepState& state = steps_[action.rank][action.step];
    const Source& source = plan_.programs[action.rank].sources[step(action.rank, action.step).first_source];
    state.data[action.segment] = load(action.rank, source.local, action.segment);
    offer(Moment::kComplete, action.rank, action.step, action.segment);
    offer(Moment::kArrive, action.rank, action.step, action.segment);
  }

  void arrive(const Action& action) {
    const Step& s = step(action.rank, action.step);
    StepState& state = steps_[action.rank][action.step];
    const MessageKey key{action.rank, s.peer, s.lane, s.stage, s.round, action.segment};
    Arrived arrived{std::move(state.data[action.segment]), state.first_position + action.segment};
    if (!mailbox_.emplace(key, std::move(arrived)).second || !names_.insert({key, true}).second) {
      problem_ = "two messages with one name";
      return;
    }
    const auto receivers = receivers_.find({action.rank, s.peer, s.lane, s.stage, s.round, 0});
    if (receivers == receivers_.end()) return;
    for (const std::int32_t id : receivers->second) offer_start(s.peer, id);
  }

  void start(const Action& action) {
    const Step& s = step(action.rank, action.step);
    StepState& state = steps_[action.rank][action.step];
    state.queued = false;
    state.busy = true;
    ++state.next;
    std::vector<Word> sum;
    for (const Source& source : plan_.programs[action.rank].sources_of(s)) {
      std::vector<Word> operand;
      if (source.kind == Source::Kind::kLocal) {
        operand = load(action.rank, source.local, action.segment);
      } else {
        const auto mail = mailbox_.find({source.peer, action.rank, s.lane, s.stage, s.round, action.segment});
        if (mail == mailbox_.end()) {
          problem_ = "one message is received twice";
          return;
        }
        operand = std::move(mail->second.data);
        taken_[{action.rank, action.step}].push_back(
            {{source.peer, action.rank, s.lane}, mail->second.position});
        mailbox_.erase(mail);
      }
      if (sum.empty()) {
        sum = std::move(operand);
      } else if (sum.size() != operand.size()) {
        problem_ = "the ends of a message disagree on its size";
        return;
      } else {
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += operand[i];
      }
    }
    state.data[action.segment] = std::move(sum);
    offer(Moment::kFinish, action.rank, action.step, action.segment);
  }

  void finish(const Action& action) {
    const Step& s = step(action.rank, action.step);
    StepState& state = steps_[action.rank][action.step];
    const Elements all = elements(s.dst);
    const std::int64_t begin = all.begin + action.segment * segment_elements_;
    const std::int64_t end = std::min(begin + segment_elements_, all.end);
    const std::vector<Word>& data = state.data[action.segment];
    if (static_cast<std::int64_t>(data.size()) != end - begin) {
      problem_ = "the ends of a message disagree on its size";
      return;
    }
    std::copy(data.begin(), data.end(), memory(action.rank, s.dst.buffer).begin() + begin);
    state.busy = false;
    for (const auto& [key, position] : taken_[{action.rank, action.step}]) {
      Channel& channel = channels_.at(key);
      channel.taken[position] = true;
      while (channel.taken.contains(channel.released)) channel.taken.erase(channel.released++);
      offer_head(channel, std::get<0>(key));
    }
    taken_.erase({action.rank, action.step});
    finish_segment(action);
    offer_start(action.rank, action.step);
  }

  void finish_segment(const Action& action) {
    StepState& state = steps_[action.rank][action.step];
    state.finished[action.segment] = true;
    ++state.num_finished;
    for (const std::int32_t id : waiters_[action.rank][action.step]) offer_start(action.rank, id);
  }

  // ---- Outcome -----------------------------------------------------------------------------------------

  std::string outcome() {
    for (const std::vector<StepState>& steps : steps_) {
      for (const StepState& state : steps) {
        if (state.num_finished < state.num_segments) return "deadlock";
      }
    }
    if (!mailbox_.empty()) return "a message that nobody takes";
    for (Rank rank = 0; rank < plan_.shape.num_ranks; ++rank) {
      if (memory(rank, Buffer::kOutput) != expected_) return "wrong sum";
      if (!options_.in_place && input_[rank] != given_[rank]) return "input overwritten";
    }
    return "";
  }

  const Plan& plan_;
  const BruteForceOptions& options_;
  Random random_;
  std::int64_t segment_elements_ = 1;
  std::vector<std::vector<Word>> input_, output_, scratch_, given_;  ///< by rank
  std::vector<Word> expected_;
  std::vector<std::vector<StepState>> steps_;
  std::vector<std::vector<std::vector<std::int32_t>>> waiters_;  ///< by rank and step: the steps after it
  std::map<ChannelKey, Channel> channels_;
  std::map<MessageKey, std::vector<std::int32_t>> receivers_;  ///< by the name with segment 0
  std::map<MessageKey, Arrived> mailbox_;
  std::map<MessageKey, bool> names_;
  std::map<std::pair<Rank, std::int32_t>, std::vector<std::pair<ChannelKey, std::int64_t>>> taken_;
  std::array<std::vector<Action>, kNumMoments> actions_;
  std::array<double, kNumMoments> weight_{};
  std::string problem_;
};

}  // namespace

std::string brute_force(const Plan& plan, const BruteForceOptions& options) {
  return Machine(plan, options).run();
}

}  // namespace hips::tests

#pragma once

#include "lib/comm/calls/pending_call.hpp"
#include "lib/node/node_team.hpp"

namespace hips::comm {

class NodeCall;

/// The outstanding calls of a node team. The team executes one at a time, in the order of their start. The list
/// links the calls themselves, so that a call allocates nothing.
class NodeCalls {
 public:
  explicit NodeCalls(node::NodeTeam& team) : team_(team) {}

  void add(NodeCall& call);
  /// Makes progress on the first call, and on those after it once it is complete.
  void advance();
  // poll_briefly() and wait() pass on exceptions (out of memory), but complete `call` and all calls before it
  // first: the caller may destroy `call`.

  /// Polls a few times. True if `call` is complete without error; otherwise wait() does the rest.
  bool poll_briefly(const NodeCall& call);
  /// Makes progress until `call` is complete or the deadline passes.
  Status wait(NodeCall& call, const WaitOptions& options);
  [[nodiscard]] const node::NodeTeam& team() const { return team_; }

 private:
  /// Completes the first call, successfully or with its `status_`, and starts the next.
  void finish_first();
  /// Completes all calls up to `last` as failed, after an exception.
  void abandon(const NodeCall& last) noexcept;

  node::NodeTeam& team_;
  NodeCall* first_ = nullptr;
  NodeCall* last_ = nullptr;
};

/// A call that a node team executes in shared memory.
class NodeCall final : public PendingCall {
 public:
  explicit NodeCall(NodeCalls& calls) : calls_(calls) {}

  Status set(const CallArgs& args) override {
    call_ = {.collective = args.collective,
             .in = args.in,
             .out = args.out,
             .count = args.count,
             .type = args.type,
             .op = args.op,
             .root = args.root,
             .sections = args.sections.get()};
    return Status::success();
  }
  void start() override { calls_.add(*this); }
  std::optional<Status> test() override;
  [[nodiscard]] bool done() const override { return done_; }
  Status wait(const WaitOptions& options) override { return calls_.wait(*this, options); }
  [[nodiscard]] std::vector<Rank> waiting_for() const override { return calls_.team().waiting_for(); }
  [[nodiscard]] std::string waiting_text() const override { return calls_.team().waiting_text(); }

 private:
  friend class NodeCalls;

  NodeCalls& calls_;
  node::Call call_;
  bool done_ = true;
  Status status_;
  NodeCall* next_ = nullptr;
};

}  // namespace hips::comm

#pragma once

#include "lib/comm/calls/pending_call.hpp"
#include "lib/node/node_team.hpp"

namespace hips::comm {

class NodeCall;

/// The calls under way on a node team, which carries one at a time: they take place in the order in which
/// they were started. A list through the calls themselves, so that a call allocates nothing.
class NodeCalls {
 public:
  explicit NodeCalls(node::NodeTeam& team) : team_(team) {}

  void add(NodeCall& call);
  /// Moves the first call on, and those behind it that it makes way for.
  void advance();
  /// What is thrown while calls move (there is no memory) goes on to the caller, and ends them first: whoever
  /// made `call` may take it away.
  ///
  /// Has `call` ended well after a few polls? Otherwise wait() does the rest.
  bool ends_soon(const NodeCall& call);
  /// Moves calls on until `call` has ended, or to the deadline.
  Status wait(NodeCall& call, const WaitOptions& options);
  [[nodiscard]] const node::NodeTeam& team() const { return team_; }

 private:
  /// The first call has ended, well or with its `status_`; the next one starts.
  void finish_first();
  /// Ends all calls up to `last`, which failed: something was thrown.
  void abandon(const NodeCall& last) noexcept;

  node::NodeTeam& team_;
  NodeCall* first_ = nullptr;
  NodeCall* last_ = nullptr;
};

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

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <hips/topology.hpp>

#include "lib/base/sections.hpp"
#include "lib/comm/setup/node_groups.hpp"
#include "lib/exec/engine.hpp"
#include "lib/exec/engine_client.hpp"
#include "lib/node/node_layout.hpp"
#include "lib/node/node_team.hpp"

namespace hips::comm {

class HierarchicalCall;

/// The outstanding calls of a HierarchicalBackend, in the order of their start. A call that uses shared
/// memory has it exclusively until it is complete, because the order of the steps in memory must be the same on
/// all ranks of a node. Calls by a plan run concurrently, up to the next call that uses shared memory.
///
/// The list links the calls themselves, so that a call allocates nothing.
///
/// Threads  add() and shares(): one at a time. All others: the progress owner.
class HierarchicalCalls final : public exec::EngineClient {
 public:
  /// `layout_of` gives the staging of a node with so many ranks. `on_error` is told of a failure of this rank that its node and its team do not know. It ends their calls.
  HierarchicalCalls(exec::Engine& engine, node::NodeTeam& node, const NodeGroups& nodes,
                    const std::function<node::StagingLayout(Rank ranks)>& layout_of,
                    std::function<void(const Status&)> on_error);
  /// No call is outstanding.
  ~HierarchicalCalls() override { engine_.remove(*this); }
  HierarchicalCalls(const HierarchicalCalls&) = delete;
  HierarchicalCalls& operator=(const HierarchicalCalls&) = delete;

  /// Throws std::bad_alloc if the call could not be added.
  void add(HierarchicalCall& call);
  /// Reports the exception that is being handled.
  Status found_exception() noexcept;
  /// Whether the staging of every node has room for one element of each rank's section.
  [[nodiscard]] bool staging_holds(std::size_t element_bytes) const;
  /// The number of elements that every node scatters among as many leaders as it can have without waiting for staging.
  [[nodiscard]] std::uint64_t elements_at_once(std::size_t element_bytes) const;
  /// Divides `elements` among the first `num_leaders` ranks of a node, as equally as whole cache lines allow.
  std::shared_ptr<const Sections> shares(std::uint64_t elements, std::size_t element_bytes, Rank num_leaders);

  /// The missing ranks of the active call, for which all later calls wait.
  [[nodiscard]] std::vector<Rank> waiting_for() const;
  [[nodiscard]] std::string waiting_text() const;

  // EngineClient.
  bool advance() override;
  [[nodiscard]] bool busy() const override {
    return active_ != nullptr || any_waits_.load(std::memory_order_acquire);
  }
  int arm() override;
  void disarm() override;

 private:
  [[nodiscard]] HierarchicalCall* take_next();
  /// Removes a waiting call; false if it is not one.
  bool take_back(HierarchicalCall& call);

  exec::Engine& engine_;
  node::NodeTeam& node_;
  Rank ranks_here_, most_leaders_;
  /// The staging of nodes with the fewest and with the most ranks, with these numbers.
  std::array<std::pair<Rank, node::StagingLayout>, 2> stagings_;
  std::function<void(const Status&)> on_error_;
  HierarchicalCall* active_ = nullptr;  ///< the call that uses shared memory
  std::uint64_t number_ = 0;            ///< of calls that have begun
  bool armed_ = false;
  /// By number and size of elements and number of leaders; most recently used first.
  std::vector<std::pair<std::tuple<std::uint64_t, std::size_t, Rank>, std::shared_ptr<const Sections>>>
      shares_;

  std::mutex mutex_;  ///< guards the list of waiting calls
  HierarchicalCall* first_ = nullptr;
  HierarchicalCall* last_ = nullptr;
  std::atomic<bool> any_waits_{false};
};

}  // namespace hips::comm

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <hips/topology.hpp>

#include "lib/base/sections.hpp"
#include "lib/exec/companion.hpp"
#include "lib/exec/engine.hpp"
#include "lib/node/node_team.hpp"

namespace hips::comm {

class HostsCall;

/// The calls under way on a communicator of several hosts, in the order of their start. One that goes through
/// memory has it for itself until it ends, since its steps there must follow each other alike on all ranks of
/// the host; calls by a plan go side by side up to the next of those.
///
/// A list through the calls themselves, so that a call allocates nothing.
///
/// Threads  add() and shares() one at a time; the rest is the progress owner's.
class HostsCalls final : public exec::Companion {
 public:
  HostsCalls(exec::Engine& engine, node::NodeTeam& node, Rank per_host)
      : engine_(engine), node_(node), per_host_(per_host) {}
  /// No call is under way.
  ~HostsCalls() override { engine_.dismiss(*this); }
  HostsCalls(const HostsCalls&) = delete;
  HostsCalls& operator=(const HostsCalls&) = delete;

  void add(HostsCall& call);
  /// How the ranks of a host share so many elements: as equal as whole cache lines allow.
  std::shared_ptr<const Sections> shares(std::uint64_t elements, std::size_t element_bytes);

  /// What the call lacks that holds the others up.
  [[nodiscard]] std::vector<Rank> waiting_for() const;
  [[nodiscard]] std::string waiting_text() const;

  // Companion.
  bool advance() override;
  [[nodiscard]] bool busy() const override {
    return active_ != nullptr || any_waits_.load(std::memory_order_acquire);
  }
  int arm() override;
  void disarm() override;

 private:
  [[nodiscard]] HostsCall* take_next();

  exec::Engine& engine_;
  node::NodeTeam& node_;
  Rank per_host_;
  HostsCall* active_ = nullptr;  ///< goes through memory
  std::uint64_t number_ = 0;     ///< of calls whose turn has come
  bool armed_ = false;
  /// By elements and their size, the last ones used first.
  std::vector<std::pair<std::pair<std::uint64_t, std::size_t>, std::shared_ptr<const Sections>>> shares_;

  std::mutex mutex_;  ///< guards the list of those that wait
  HostsCall* first_ = nullptr;
  HostsCall* last_ = nullptr;
  std::atomic<bool> any_waits_{false};
};

}  // namespace hips::comm

#pragma once

#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <vector>

#include <hips/plan.hpp>

namespace hips::exec {

/// Identifies the messages from one rank to another in one lane.
struct ChannelKey {
  Rank peer = -1;
  std::int32_t lane = 0;
  std::int32_t path = 0;  ///< path_of() the message
  friend auto operator<=>(const ChannelKey&, const ChannelKey&) = default;
};

/// A channel joins one port at each end, so messages share it only if they take the same NICs. Where a message arrives by the NIC of
/// the number that it left by (`by_nic`), that is the path. Elsewhere trees choose the NICs of a lane pair by pair, and in all other
/// plans they follow from the lane and the topology. The same at both ends.
///
/// Shapes   `nic` is the sender's as the sender sees it, and the receiver's as the receiver does.
std::int32_t path_of(const PlanShape& shape, bool by_nic, Rail nic);

/// The channels of a rank over all programs of its team, sorted: those of a peer follow each other.
struct ChannelTable {
  std::vector<ChannelKey> in, out;
  bool by_nic = false;  ///< of path_of()
  static ChannelTable of(bool by_nic, std::span<const std::shared_ptr<const PlanShape>> shapes,
                         std::span<const std::shared_ptr<const Program>> programs);
  [[nodiscard]] std::int32_t find_in(ChannelKey key) const;
  [[nodiscard]] std::int32_t find_out(ChannelKey key) const;
  using Numbers = std::ranges::iota_view<std::int32_t, std::int32_t>;
  [[nodiscard]] Numbers in_of(Rank peer) const;
  [[nodiscard]] Numbers out_of(Rank peer) const;
};

/// The step and the source that receive a message of an in-channel.
struct Receive {
  StepId step = -1;
  std::int32_t source = -1;  ///< index in Program::sources
};

/// Whether a peer may write this step's message directly into the output.
bool takes_direct(const Step& step);

/// A program with the lookup tables of the executor. It is made once and serves all vector sizes.
struct CompiledProgram {
  std::shared_ptr<const PlanShape> shape;
  std::shared_ptr<const Program> program;
  std::vector<std::int32_t> out_channel;       ///< by step; -1 if the step is not a send
  std::vector<std::int32_t> in_channel;        ///< by source; -1 if the source is local
  std::vector<std::int32_t> first_dependent;   ///< by step; has one more entry than steps
  std::vector<StepId> dependents;              ///< the steps that name this one in `after`
  std::vector<std::vector<StepId>> sends;      ///< by out-channel, in order
  std::vector<std::vector<Receive>> receives;  ///< by in-channel, in order

  std::vector<std::uint8_t> grants;  ///< by in-channel: 1 if all its gather messages are copied to the output

  static CompiledProgram of(std::shared_ptr<const PlanShape> shape, std::shared_ptr<const Program> program,
                            const ChannelTable& channels);
  [[nodiscard]] std::span<const StepId> dependents_of(StepId step) const {
    return {dependents.data() + first_dependent[step],
            static_cast<std::size_t>(first_dependent[step + 1] - first_dependent[step])};
  }
};

}  // namespace hips::exec

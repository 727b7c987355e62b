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
  bool by_nic = false;  ///< of path_of()
  std::vector<ChannelKey> in{}, out{};
  std::vector<Rail> in_rails{},
      out_rails{};  ///< by channel: this rank's NIC, as the first program that has it says
  /// Adds the channels of a program.
  void add(const PlanShape& shape, const Program& program);
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
  std::vector<std::int32_t> out_channel;      ///< by step; -1 if the step is not a send
  std::vector<std::int32_t> in_channel;       ///< by source; -1 if the source is local
  std::vector<std::int32_t> first_dependent;  ///< by step; has one more entry than steps
  std::vector<StepId> dependents;             ///< the steps that name this one in `after`
  // By out-channel and by in-channel, in order; the first ones have one more entry than channels.
  std::vector<std::int32_t> first_send, first_receive;
  std::vector<StepId> sends;
  std::vector<Receive> receives;

  std::vector<std::uint8_t> grants;  ///< by in-channel: 1 if all its gather messages are copied to the output

  static CompiledProgram of(std::shared_ptr<const PlanShape> shape, std::shared_ptr<const Program> program,
                            const ChannelTable& channels);
  [[nodiscard]] std::span<const StepId> dependents_of(StepId step) const {
    return {dependents.data() + first_dependent[step],
            static_cast<std::size_t>(first_dependent[step + 1] - first_dependent[step])};
  }
  [[nodiscard]] std::size_t num_in() const { return grants.size(); }
  [[nodiscard]] std::size_t num_out() const { return first_send.size() - 1; }
  /// The step that sends the `number`th message of an out-channel.
  [[nodiscard]] StepId send_of(std::size_t channel, std::int32_t number) const {
    return sends[static_cast<std::size_t>(first_send[channel] + number)];
  }
  [[nodiscard]] std::span<const StepId> sends_of(std::size_t channel) const {
    return std::span(sends).subspan(static_cast<std::size_t>(first_send[channel]),
                                    static_cast<std::size_t>(first_send[channel + 1] - first_send[channel]));
  }
  [[nodiscard]] std::span<const Receive> receives_of(std::size_t channel) const {
    return std::span(receives).subspan(
        static_cast<std::size_t>(first_receive[channel]),
        static_cast<std::size_t>(first_receive[channel + 1] - first_receive[channel]));
  }
};

}  // namespace hips::exec

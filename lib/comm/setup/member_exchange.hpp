#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/base/sections.hpp"
#include "lib/comm/communicator.hpp"
#include "lib/comm/setup/bootstrap.hpp"

namespace hips::comm {

/// Exchanges data among all ranks of a communicator with its own collectives, to set up what they share.
///
/// Owns     nothing; the communicator outlives it.
/// Threads  as the communicator's calls; its exchanges are ordered with them.
class MemberExchange final : public Bootstrap {
 public:
  explicit MemberExchange(Communicator& members) : members_(members) {}
  [[nodiscard]] Rank rank() const override { return members_.rank(); }
  [[nodiscard]] Rank size() const override { return members_.size(); }

  /// One collective if what all ranks pass is short, as most of it is in a set-up; else another one for the rest.
  Result<std::vector<Blob>> allgather(std::span<const std::byte> mine) override;
  /// Gathers one number per rank.
  Result<std::vector<std::uint64_t>> numbers(std::uint64_t mine);

  // allgather() in two steps.
  Status begin(std::span<const std::byte> mine);
  /// After begin(): then there is nothing to complete(). Needs no memory.
  [[nodiscard]] bool all_said_the_same() const;
  Result<std::vector<Blob>> complete(std::span<const std::byte> mine);

 private:
  [[nodiscard]] std::size_t room() const { return head_ - sizeof(std::uint64_t); }
  Result<std::vector<Blob>> with_rest(std::span<const std::byte> mine);
  Status gather(const void* in, void* out, DataType type, const std::shared_ptr<const Sections>& sections);

  Communicator& members_;
  // Of begin(): the length and the first bytes of what this rank says, and all do.
  std::size_t head_ = 0;
  Blob first_, heads_;
  std::shared_ptr<const Sections> each_;
};

}  // namespace hips::comm

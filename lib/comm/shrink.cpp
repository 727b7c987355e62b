#include "lib/comm/shrink.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/exception_status.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/setup/bootstrap.hpp"
#include "lib/comm/setup/split.hpp"

namespace hips::comm {
namespace {

/// Connects the ranks of a communicator that are left. An exchange fails on all of them if one of them has died or left since.
class LeftRanks final : public Bootstrap {
 public:
  static Result<LeftRanks> of(Communicator& parent) {
    LeftRanks made(parent);
    made.ranks_.reserve(
        static_cast<std::size_t>(parent.size()));  // the others count on this rank from here on
    const auto present = parent.gather_left({});
    if (!present) return fail(present.error());
    for (Rank rank = 0; rank < parent.size(); ++rank) {
      if (rank == parent.rank()) made.rank_ = static_cast<Rank>(made.ranks_.size());
      if ((*present)[static_cast<std::size_t>(rank)]) made.ranks_.push_back(rank);
    }
    return made;
  }

  [[nodiscard]] Rank rank() const override { return rank_; }
  [[nodiscard]] Rank size() const override { return static_cast<Rank>(ranks_.size()); }
  [[nodiscard]] std::function<void()> progress() const override { return parent_->origin().options.progress; }
  /// Their ranks in the parent.
  [[nodiscard]] const std::vector<Rank>& ranks() const { return ranks_; }
  /// One of them has died or left. The same on all of them.
  [[nodiscard]] bool are_fewer() const { return are_fewer_; }

  Result<std::vector<Blob>> allgather(std::span<const std::byte> mine) override {
    if (!broken_.ok()) return fail(broken_);
    std::vector<Blob> ours;
    ours.reserve(ranks_.size());
    auto parts = parent_->gather_left(mine);
    if (!parts) {
      broken_ = parts.error();
      return fail(broken_);
    }
    for (const Rank rank : ranks_) {
      std::optional<Blob>& part = (*parts)[static_cast<std::size_t>(rank)];
      if (!part) {
        are_fewer_ = true;
        broken_ =
            Status::error(Code::kPeerLost, fmt::format("rank {} is gone, too", rank), Scope::kCommunicator);
        return fail(broken_);
      }
      ours.push_back(*std::move(part));
    }
    return ours;
  }

 private:
  explicit LeftRanks(Communicator& parent) : parent_(&parent) {}

  Communicator* parent_;
  std::vector<Rank> ranks_;
  Rank rank_ = 0;
  bool are_fewer_ = false;
  Status broken_;
};

Result<std::unique_ptr<Communicator>> create(Communicator& parent, LeftRanks& ranks) {
  try {
    return Communicator::create(ranks, options_of(parent, ranks.ranks(), ", shrunk"));
  } catch (...) {
    return fail(SetUpExchanges(ranks).give_up(status_of_exception()));
  }
}

constexpr std::byte kFailedMark[] = {std::byte{1}};
constexpr std::span<const std::byte> kFailed = kFailedMark;

}  // namespace

Result<std::unique_ptr<Communicator>> shrink(Communicator& parent) {
  if (Status status = check_not_forked(); !status.ok()) return fail(std::move(status));
  while (true) {
    auto ranks = LeftRanks::of(parent);
    if (!ranks) return fail(ranks.error());
    auto made = create(parent, *ranks);
    if (ranks->are_fewer()) continue;
    // Whether all have it: one that has none may have failed since another one has died.
    const auto outcomes = parent.gather_left(made ? std::span<const std::byte>() : kFailed);
    if (!outcomes) return fail(outcomes.error());
    Rank failed = -1;
    bool are_fewer = false;
    for (const Rank rank : ranks->ranks()) {
      const auto& outcome = (*outcomes)[static_cast<std::size_t>(rank)];
      are_fewer = are_fewer || !outcome;
      if (outcome && !outcome->empty() && failed < 0) failed = rank;
    }
    if (are_fewer) continue;
    // Once this ends, all know what has been agreed, so that a rank may leave the parent.
    (void)parent.gather_left({});
    if (!made) return made;
    if (failed >= 0)
      return fail(Code::kSystem,
                  fmt::format("rank {} cannot make a communicator of the ranks that are left", failed));
    return made;
  }
}

}  // namespace hips::comm

#include "lib/comm/setup/split.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/exception_status.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/comm/setup/bootstrap.hpp"
#include "lib/comm/setup/member_exchange.hpp"
#include "topology/parts/occupied.hpp"

namespace hips::comm {
namespace {

/// The bootstrap of one part, over exchanges of the whole parent. Parts may need different numbers of exchanges:
/// a member that has finished, successfully or not, keeps taking part until all have, and then knows whether all members of
/// its part succeeded.
class PartBootstrap final : public Bootstrap {
 public:
  explicit PartBootstrap(MemberExchange& exchange) : exchange_(exchange) {}
  /// `members`: ranks of the parent, with `self`, or none.
  void set_members(const std::vector<Rank>& members, Rank self) {
    members_ = members;
    rank_ = static_cast<Rank>(std::ranges::find(members, self) - members.begin());
  }

  [[nodiscard]] Rank rank() const override { return rank_; }
  [[nodiscard]] Rank size() const override { return static_cast<Rank>(members_.size()); }

  Result<std::vector<Blob>> allgather(std::span<const std::byte> mine) override {
    Blob busy(1 + mine.size());
    busy[0] = kBusy;
    std::copy(mine.begin(), mine.end(), busy.begin() + 1);
    auto all = exchange_.allgather(busy);
    if (!all) {
      broken_ = all.error();
      return all;
    }
    std::vector<Blob> ours;
    for (const Rank member : members_) {
      const Blob& blob = (*all)[static_cast<std::size_t>(member)];
      if (is_done(blob)) {
        follows_ = true;
        Status status = outcome(*all);
        return fail(status.ok() ? Status::error(Code::kInternal, "a rank finished before the others")
                                : std::move(status));
      }
      ours.emplace_back(blob.begin() + 1, blob.end());
    }
    return ours;
  }

  /// Called when this member needs no more exchanges. Returns when none does: what all members of the part get.
  Status finish(const Status& mine) {
    if (!broken_.ok()) return broken_;
    ByteWriter done;
    done.put(kDone);
    const bool succeeds = mine.ok() || follows_;
    if (!succeeds) done.put_status(mine);
    while (true) {
      if (Status status = exchange_.begin(done.blob()); !status.ok()) return status;
      // A rank without memory must not find an error here that the others do not see.
      if (succeeds && exchange_.all_said_the_same()) return mine;
      auto all = exchange_.complete(done.blob());
      if (!all) return all.error();
      if (std::ranges::all_of(*all, is_done)) return outcome(*all);
    }
  }

 private:
  static bool is_done(const Blob& blob) { return blob.empty() || blob[0] == kDone; }
  /// Of the members of this part that have finished.
  [[nodiscard]] Status outcome(std::span<const Blob> all) const {
    std::vector<Status> by_rank;
    for (const Rank member : members_) {
      const Blob& blob = all[static_cast<std::size_t>(member)];
      Status& status = by_rank.emplace_back();
      if (!is_done(blob) || blob.size() <= 1) continue;
      ByteReader reader(blob);
      (void)reader.get<std::byte>();
      status = reader.get_status();
      if (!reader.ok()) status = malformed(member);
    }
    return first_failure(by_rank);
  }

  static constexpr std::byte kBusy{1}, kDone{0};

  MemberExchange& exchange_;
  std::vector<Rank> members_;  ///< ranks of the parent
  Rank rank_ = 0;
  bool follows_ = false;  ///< this member has failed since another one has
  Status broken_;
};

/// The options of a part: without those that name levels or a plan of the parent.
CommunicatorOptions options_of_part(const Communicator::Origin& origin, std::span<const Rank> members,
                                    std::string_view suffix) {
  CommunicatorOptions options = origin.options;
  options.name += suffix;
  options.is_part = true;
  options.topology = origin.named ? topology::occupied_part(origin.topology, members) : std::nullopt;
  if (options.pattern && options.pattern->find(',') != std::string::npos) options.pattern.reset();
  return options;
}

CommunicatorOptions options_of_color(const Communicator& parent, std::span<const Rank> members, int color) {
  return options_of(parent, members, fmt::format(", colour {}", color));
}

/// `members` computes the ranks of the parent.
template <typename Members>
Result<std::unique_ptr<Communicator>> derive(Communicator& parent, int color, Members members) {
  const std::uint64_t nth = parent.next_derivation();
  const auto part = static_cast<std::uint32_t>(color);
  try {
    const std::vector<Rank> ranks = members();
    return parent.derive(ranks, nth, part, options_of_color(parent, ranks, color));
  } catch (const std::bad_alloc&) {
    return fail(parent.fail_derived(members(), nth, part));
  }
}

}  // namespace

CommunicatorOptions options_of(const Communicator& parent, std::span<const Rank> members,
                               std::string_view suffix) {
  const bool is_whole =
      members.size() == static_cast<std::size_t>(parent.size()) && std::ranges::is_sorted(members);
  CommunicatorOptions options =
      is_whole ? parent.origin().options : options_of_part(parent.origin(), members, suffix);
  options.may_reuse = true;
  return options;
}

Result<std::unique_ptr<Communicator>> split(Communicator& parent, int color, int key) {
  MemberExchange exchange(parent);
  const auto word =
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(color)) << 32U | static_cast<std::uint32_t>(key);
  Result<std::vector<std::uint64_t>> words = std::vector<std::uint64_t>();
  try {
    words = exchange.numbers(word);
  } catch (...) {
    // The others wait for this rank.
    return fail(parent.fail_all(status_of_exception()));
  }
  if (!words) return fail(words.error());

  const auto color_of = [&](Rank rank) {
    return static_cast<std::int32_t>((*words)[static_cast<std::size_t>(rank)] >> 32U);
  };
  const auto key_of = [&](Rank rank) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>((*words)[static_cast<std::size_t>(rank)]));
  };
  for (Rank r = 0; r < parent.size(); ++r) {
    if (color_of(r) < kNoPart)
      return fail(
          Code::kInvalidArgument,
          fmt::format("split: rank {} passed invalid colour {} (valid: 0 and above, or {} for no part)", r,
                      color_of(r), kNoPart));
  }
  const auto members_of_color = [&] {
    std::vector<Rank> members;
    for (Rank r = 0; r < parent.size(); ++r)
      if (color != kNoPart && color_of(r) == color) members.push_back(r);
    std::ranges::stable_sort(members, {}, key_of);
    return members;
  };
  if (parent.derives()) {
    if (color != kNoPart) return derive(parent, color, members_of_color);
    (void)parent.next_derivation();
    return std::unique_ptr<Communicator>();
  }
  PartBootstrap bootstrap(exchange);
  Result<std::unique_ptr<Communicator>> made = nullptr;
  try {
    const std::vector<Rank> members = members_of_color();
    const CommunicatorOptions options =
        members.empty() ? CommunicatorOptions() : options_of_color(parent, members, color);
    bootstrap.set_members(members, parent.rank());
    if (!members.empty()) made = Communicator::create(bootstrap, options);
  } catch (const std::bad_alloc&) {
    // The others of its part wait for this rank.
    made = fail(SetUpExchanges(bootstrap).give_up(status_of_exception()));
  }
  try {
    Status finished = bootstrap.finish(made ? Status::success() : made.error());
    if (!finished.ok()) return fail(std::move(finished));
    return made;
  } catch (const std::bad_alloc&) {
    // The others wait in the parent.
    return fail(parent.fail_all(status_of_exception()));
  }
}

Result<std::unique_ptr<Communicator>> duplicate(Communicator& parent) {
  if (!parent.derives()) return split(parent, 0, parent.rank());
  return derive(parent, 0, [&] {
    std::vector<Rank> all(static_cast<std::size_t>(parent.size()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  });
}

}  // namespace hips::comm

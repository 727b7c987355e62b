#include "lib/ps/model/replication.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "lib/base/visit_type.hpp"
#include "lib/reduce/reduce.hpp"

namespace hips::ps {
namespace {

void add_to(DataType type, std::span<std::byte> to, std::span<const std::byte> more) {
  const std::array<const std::byte*, 2> operands{more.data(), to.data()};
  reduce::fold(type, ReduceOp::kSum, to.data(), operands, to.size() / size_of(type));
}

}  // namespace

double norm_of(DataType type, std::span<const std::byte> values) {
  return visit_type(type, [&](auto zero) {
    using T = decltype(zero);
    double sum = 0;
    for (std::size_t at = 0; at < values.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, values.data() + at, sizeof value);
      double number = 0;
      if constexpr (std::is_arithmetic_v<T>)
        number = static_cast<double>(value);
      else
        number = static_cast<double>(static_cast<float>(value));
      sum += number * number;
    }
    return std::sqrt(sum);
  });
}

double Divergence::value() const {
  double sum = 0;
  for (const Group& group : groups_)
    if (group.is_applied != group.is_stored) sum += group.norm;
  return sum;
}

bool Divergence::admits(GroupId id, Rank sender, double norm, std::vector<Flush>& flushes) {
  const auto known = std::ranges::find(groups_, id, &Group::id);
  if (known != groups_.end() && known->is_stored) {
    groups_.erase(known);
    return true;
  }
  const bool fits_alone = norm <= limit_ && std::isfinite(norm);
  const auto of_sender = std::ranges::count(groups_, sender, &Group::sender);
  const bool has_many = known == groups_.end() && static_cast<std::size_t>(of_sender) >= kMostGroups;
  const double room = limit_ - norm;
  if (value() <= room && !has_many) {
    if (known == groups_.end()) groups_.push_back({.id = id, .sender = sender, .norm = norm});
    std::ranges::find(groups_, id, &Group::id)->is_applied = true;
    return true;
  }
  // Where it has no room alone, the replica gets it first.
  if (!fits_alone && known == groups_.end() && !has_many)
    groups_.push_back({.id = id, .sender = sender, .norm = norm});
  if (has_many || !fits_alone) {
    flush(sender, flushes);
    return false;
  }
  const std::vector<Group> in_order = groups_;
  for (const Group& group : in_order) {
    double left = 0;  // when all flushes have been stored
    for (const Group& other : groups_) left += other.flush == 0 ? other.norm : 0;
    if (left <= room) break;
    flush(group.sender, flushes);
  }
  return false;
}

/// All groups of a sender, unless it has not answered the last flush yet.
void Divergence::flush(Rank sender, std::vector<Flush>& flushes) {
  Flush made{.sender = sender, .number = num_flushes_ + 1, .groups = {}};
  for (const Group& group : groups_) {
    if (group.sender != sender) continue;
    if (group.flush != 0) return;
    made.groups.push_back(group.id);
  }
  if (made.groups.empty()) return;
  ++num_flushes_;
  for (Group& group : groups_)
    if (group.sender == sender) group.flush = made.number;
  flushes.push_back(std::move(made));
}

void Divergence::stored(std::uint64_t flush) {
  std::erase_if(groups_, [&](const Group& group) { return group.flush == flush && group.is_applied; });
  for (Group& group : groups_)
    if (group.flush == flush) group.is_stored = true;
}

Result<SentGroups::Vector> SentGroups::on_flush(const ModelHead& head, const Shards& shards) {
  const auto named = kept_.find({head.shard, group_of(head)});
  if (named == kept_.end() || named->second.sum->ready != named->second.sum->bytes.size())
    return fail(Code::kMismatch, "model: a replica is to get a group that is not here", Scope::kCommunicator);
  named->second.flush = head.version;
  if (head.flag == 0) return Vector();
  auto sum = std::make_shared<PartialVector>();
  for (const auto& [key, kept] : kept_) {
    if (key.first != head.shard || kept.flush != head.version) continue;
    if (sum->bytes.empty())
      sum->bytes = kept.sum->bytes;
    else
      add_to(shards.type, sum->bytes, kept.sum->bytes);
  }
  sum->ready = sum->bytes.size();
  return sum;
}

void SentGroups::add_missing(std::span<std::byte> to, DataType type, std::uint16_t shard,
                             std::uint64_t stored) const {
  for (const auto& [key, kept] : kept_) {
    const bool is_whole = kept.sum->ready == kept.sum->bytes.size();
    if (key.first == shard && is_whole && (kept.flush == 0 || kept.flush > stored))
      add_to(type, to, kept.sum->bytes);
  }
}

void SentGroups::on_stored(const ModelHead& head) {
  std::erase_if(kept_, [&](const auto& entry) {
    return entry.first.first == head.shard && entry.second.flush == head.version;
  });
}

Result<bool> ShardReplica::on_part(const ModelMessage& message, DataType type) {
  const ModelHead& head = message.head;
  Arriving& arriving = arriving_[head.rank];
  if (head.shard != shard_ || head.offset != arriving.received)
    return fail(Code::kMismatch, "model: a part of what a replica gets is missing", Scope::kCommunicator);
  if (arriving.sum.empty()) arriving.sum.resize(values_.size());
  std::memcpy(arriving.sum.data() + head.offset, message.part, head.bytes);
  arriving.received += head.bytes;
  if (arriving.received < values_.size()) return false;
  std::uint64_t& stored = stored_[head.rank];  // may find no memory
  add_to(type, values_, arriving.sum);
  stored = head.version;
  arriving_.erase(head.rank);
  return true;
}

}  // namespace hips::ps

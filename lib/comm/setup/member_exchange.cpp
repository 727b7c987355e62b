#include "lib/comm/setup/member_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/base/exception_status.hpp"

namespace hips::comm {
namespace {

constexpr std::size_t kLength = sizeof(std::uint64_t), kMostHeads = 64U << 10U;

}  // namespace

Result<std::vector<std::uint64_t>> MemberExchange::numbers(std::uint64_t mine) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(members_.size()));
  const auto each = std::make_shared<const Sections>(all.size(), 1);
  if (Status status = gather(&mine, all.data(), DataType::kUint64, each); !status.ok())
    return fail(std::move(status));
  return all;
}

Result<std::vector<Blob>> MemberExchange::allgather(std::span<const std::byte> mine) {
  if (Status status = begin(mine); !status.ok()) return fail(std::move(status));
  return complete(mine);
}

Status MemberExchange::begin(std::span<const std::byte> mine) {
  const auto size = static_cast<std::size_t>(members_.size());
  if (!each_) {
    head_ = std::clamp<std::size_t>(kMostHeads / size, 64, 2048);
    first_.resize(head_);
    heads_.resize(size * head_);
    each_ = std::make_shared<const Sections>(size, head_);
  }
  const auto length = static_cast<std::uint64_t>(mine.size());
  std::memcpy(first_.data(), &length, kLength);
  const auto end = std::copy_n(mine.begin(), std::min(mine.size(), room()), first_.begin() + kLength);
  std::fill(end, first_.end(), std::byte{});
  return gather(first_.data(), heads_.data(), DataType::kUint8, each_);
}

bool MemberExchange::all_said_the_same() const {
  for (std::size_t at = 0; at < heads_.size(); at += head_)
    if (!std::equal(first_.begin(), first_.end(), heads_.begin() + static_cast<std::ptrdiff_t>(at)))
      return false;
  return true;
}

Result<std::vector<Blob>> MemberExchange::complete(std::span<const std::byte> mine) {
  try {
    return with_rest(mine);
  } catch (const std::bad_alloc&) {
    // The others may wait for the rest of what this rank has to say.
    return fail(members_.fail_all(status_of_exception()));
  }
}

Result<std::vector<Blob>> MemberExchange::with_rest(std::span<const std::byte> mine) {
  std::vector<Blob> all;
  std::vector<std::uint64_t> rests;
  for (auto head = heads_.cbegin(); head != heads_.cend(); head += static_cast<std::ptrdiff_t>(head_)) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, &*head, kLength);
    const auto begin = head + kLength;
    all.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(bytes, room())));
    rests.push_back(bytes - all.back().size());
  }
  const auto sections = std::make_shared<const Sections>(rests);
  if (sections->total() == 0) return all;
  Blob rest(sections->total());
  if (Status status =
          gather(mine.data() + std::min(mine.size(), room()), rest.data(), DataType::kUint8, sections);
      !status.ok())
    return fail(std::move(status));
  for (std::size_t r = 0; r < all.size(); ++r) {
    const std::byte* const begin = rest.data() + sections->first(r);
    all[r].insert(all[r].end(), begin, begin + sections->count(r));
  }
  return all;
}

Status MemberExchange::gather(const void* in, void* out, DataType type,
                              const std::shared_ptr<const Sections>& sections) {
  return members_.call({.collective = Collective::kAllgather,
                        .in = static_cast<const std::byte*>(in),
                        .out = static_cast<std::byte*>(out),
                        .count = sections->total(),
                        .type = type,
                        .sections = sections});
}

}  // namespace hips::comm

#include "lib/comm/setup/member_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

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
  const auto size = static_cast<std::size_t>(members_.size());
  const std::size_t head = std::clamp<std::size_t>(kMostHeads / size, 64, 2048), room = head - kLength;
  Blob first(head), heads(size * head);
  const auto length = static_cast<std::uint64_t>(mine.size());
  std::memcpy(first.data(), &length, kLength);
  if (!mine.empty()) std::memcpy(first.data() + kLength, mine.data(), std::min(mine.size(), room));
  const auto each = std::make_shared<const Sections>(size, head);
  if (Status status = gather(first.data(), heads.data(), DataType::kUint8, each); !status.ok())
    return fail(std::move(status));

  std::vector<Blob> all;
  std::vector<std::uint64_t> rests;
  for (std::size_t r = 0; r < size; ++r) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, heads.data() + r * head, kLength);
    const std::byte* const begin = heads.data() + r * head + kLength;
    all.emplace_back(begin, begin + std::min<std::uint64_t>(bytes, room));
    rests.push_back(bytes - all.back().size());
  }
  const auto sections = std::make_shared<const Sections>(rests);
  if (sections->total() == 0) return all;
  Blob rest(sections->total());
  if (Status status =
          gather(mine.data() + std::min(mine.size(), room), rest.data(), DataType::kUint8, sections);
      !status.ok())
    return fail(std::move(status));
  for (std::size_t r = 0; r < size; ++r) {
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

#include "lib/comm/calls/ordered_reduce.hpp"

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "lib/reduce/reduce.hpp"

namespace hips::comm {

std::size_t gathered_bytes(const CallArgs& call, Rank size) {
  const std::uint64_t most =
      static_cast<std::uint64_t>(PTRDIFF_MAX) / size_of(call.type) / static_cast<std::uint64_t>(size);
  if (call.count > most) throw std::bad_alloc();
  return static_cast<std::size_t>(size) * call.count * size_of(call.type);
}

CallArgs gather_instead(const CallArgs& call, Rank size, std::byte* all) {
  auto sections = std::make_shared<const Sections>(static_cast<std::size_t>(size), call.count);
  const std::uint64_t total = sections->total();
  return {.collective = Collective::kAllgather,
          .in = call.in,
          .out = all,
          .count = total,
          .type = call.type,
          .sections = std::move(sections)};
}

void reduce_gathered(const CallArgs& call, Rank rank, Rank size, const std::byte* all) {
  if (call.collective == Collective::kReduce && rank != call.root) return;
  std::uint64_t first = 0, count = call.count;
  if (call.collective == Collective::kReduceScatter) {
    first = call.sections->first(static_cast<std::size_t>(rank));
    count = call.sections->count(static_cast<std::size_t>(rank));
  }
  std::vector<const std::byte*> vectors;
  for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(size); ++r)
    vectors.push_back(all + (r * call.count + first) * size_of(call.type));
  reduce::fold(call.type, call.op, call.out, vectors, count);
}

}  // namespace hips::comm

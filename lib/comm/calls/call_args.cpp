#include "lib/comm/calls/call_args.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "lib/base/type_text.hpp"
#include "lib/reduce/user_op.hpp"

namespace hips::comm {
namespace {

/// A range of the caller's memory.
struct Extent {
  std::uintptr_t begin = 0;
  std::uint64_t elements = 0;
};

struct Extents {
  Extent in, out;
};

std::uintptr_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// The memory that the call reads and writes. An in-place call has an empty input.
Extents extents_of(const CallArgs& args, Rank rank) {
  const std::uintptr_t in = address(args.in), out = address(args.out);
  const auto self = static_cast<std::size_t>(rank);
  switch (args.collective) {
    case Collective::kAllreduce:
      return {{in, in == out ? 0 : args.count}, {out, args.count}};
    case Collective::kReduceScatter:
      if (in == out) return {{in, 0}, {out, args.sections->total()}};
      return {{in, args.sections->total()}, {out, args.sections->count(self)}};
    case Collective::kAllgather: {
      const bool in_place = in == out + args.sections->displacement(self) * size_of(args.type);
      return {{in, in_place ? 0 : args.sections->count(self)}, {out, args.sections->extent()}};
    }
    case Collective::kGather: {
      if (rank != args.root) return {{in, args.sections->count(self)}, {}};
      const bool in_place = in == out + args.sections->displacement(self) * size_of(args.type);
      return {{in, in_place ? 0 : args.sections->count(self)}, {out, args.sections->extent()}};
    }
    case Collective::kScatter: {
      if (rank != args.root) return {{}, {out, args.sections->count(self)}};
      const bool in_place = out == in + args.sections->first(self) * size_of(args.type);
      return {{in, args.sections->total()}, {out, in_place ? 0 : args.sections->count(self)}};
    }
    case Collective::kAlltoall:
      return {{in, args.sections->total()}, {out, args.sections->total()}};
    case Collective::kBcast:
      return {{}, {out, args.count}};
    case Collective::kReduce:
      if (rank != args.root) return {{in, args.count}, {}};
      return {{in, in == out ? 0 : args.count}, {out, args.count}};
    case Collective::kBarrier:
      return {};
  }
  return {};
}

}  // namespace

CallMemory memory_of(const CallArgs& args, Rank rank) {
  const Extents extents = extents_of(args, rank);
  const std::size_t element_bytes = size_of(args.type);
  return {{args.in, extents.in.elements * element_bytes}, {args.out, extents.out.elements * element_bytes}};
}

namespace {

/// True if all arguments are valid. Else gives wrong(text), where text() says what the first invalid one is.
template <typename Wrong>
bool check(const CallArgs& args, Rank rank, Rank size, const Wrong& wrong) {
  const auto type_value = static_cast<std::int32_t>(args.type);
  const auto op_value = static_cast<std::int32_t>(args.op);
  if (!is_type(args.type))
    return wrong([&] {
      return (type_value & 0xff) == 0xff
                 ? fmt::format("invalid element size in HIPS_BYTES() (valid: 1 to {} bytes)",
                               kMaxElementBytes)
                 : fmt::format("invalid datatype {} (valid: 0 to {})", type_value, kNumDataTypes - 1);
    });
  if (reduces(args.collective)) {
    if (is_user(args.op) && !reduce::is_user_op(args.op))
      return wrong([&] {
        return fmt::format("invalid op {:#x}: not created by hips_op_create(), or already freed", op_value);
      });
    if (!is_user(args.op) && (op_value < 0 || op_value >= kNumReduceOps))
      return wrong(
          [&] { return fmt::format("invalid op {} (valid: 0 to {})", op_value, kNumReduceOps - 1); });
    if (!applies_to(args.op, args.type) && is_bytes(args.type))
      return wrong([&] {
        return fmt::format("{} does not apply to elements of {}; pass an op of hips_op_create()",
                           to_string(args.op), type_text(args.type));
      });
    if (!applies_to(args.op, args.type))
      return wrong([&] {
        return fmt::format("{} does not apply to {}; bitwise and logical operations need integers",
                           to_string(args.op), to_string(args.type));
      });
  }
  if (has_root(args.collective) && (args.root < 0 || args.root >= size))
    return wrong([&] { return fmt::format("root {} is out of range [0, {}]", args.root, size - 1); });

  const Extents extents = extents_of(args, rank);
  // No division for what any type has room for.
  constexpr std::uint64_t kAlwaysPossible = static_cast<std::uint64_t>(PTRDIFF_MAX) / kMaxElementBytes;
  for (const std::uint64_t elements : {args.count, extents.in.elements, extents.out.elements}) {
    if (elements <= kAlwaysPossible) continue;
    const std::uint64_t most = static_cast<std::uint64_t>(PTRDIFF_MAX) / size_of(args.type);
    if (elements > most)
      return wrong([&] {
        return fmt::format("count {} of {} is more than memory can hold (at most {})", elements,
                           type_text(args.type), most);
      });
  }
  if (args.collective == Collective::kAllreduce && args.count > 0 &&
      (args.in == nullptr || args.out == nullptr))
    return wrong([&] {
      return fmt::format("the {} buffer is null but count is {}", args.in == nullptr ? "input" : "output",
                         args.count);
    });
  for (const auto& [extent, name] : {std::pair(extents.in, "input"), std::pair(extents.out, "output")}) {
    if (extent.elements > 0 && extent.begin == 0)
      return wrong(
          [&] { return fmt::format("the {} buffer is null but count is {}", name, extent.elements); });
  }
  // Sections may have gaps, and the input may be in a gap.
  if ((args.collective == Collective::kAllgather || args.collective == Collective::kGather) &&
      !args.sections->packed()) {
    for (std::size_t r = 0; r < args.sections->num_ranks(); ++r) {
      const std::uintptr_t section = address(args.out) + args.sections->displacement(r) * size_of(args.type);
      if (extents.in.elements > 0 && args.sections->count(r) > 0 &&
          extents.in.begin < section + args.sections->count(r) * size_of(args.type) &&
          section < extents.in.begin + extents.in.elements * size_of(args.type))
        return wrong([&] {
          return fmt::format(
              "the input overlaps the section of rank {} in the output; pass HIPS_IN_PLACE or "
              "a separate buffer",
              r);
        });
    }
    return true;
  }
  const std::uint64_t in_bytes = extents.in.elements * size_of(args.type);
  const std::uint64_t out_bytes = extents.out.elements * size_of(args.type);
  const std::uintptr_t begin = std::max(extents.in.begin, extents.out.begin);
  const std::uintptr_t end = std::min(extents.in.begin + in_bytes, extents.out.begin + out_bytes);
  if (in_bytes > 0 && out_bytes > 0 && begin < end)
    return wrong([&] {
      return fmt::format("input and output overlap by {} of {} bytes; pass equal or disjoint buffers",
                         end - begin, in_bytes);
    });
  return true;
}

}  // namespace

bool are_valid(const CallArgs& args, Rank rank, Rank size) {
  return check(args, rank, size, [](const auto&) { return false; });
}

Status check_arguments(const CallArgs& args, Rank rank, Rank size) {
  Status status;
  check(args, rank, size, [&](const auto& text) {
    status = Status::error(Code::kInvalidArgument, fmt::format("{}: {}", to_string(args.collective), text()));
    return false;
  });
  return status;
}

}  // namespace hips::comm

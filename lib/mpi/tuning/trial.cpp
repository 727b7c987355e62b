#include "lib/mpi/tuning/trial.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lib/base/type_text.hpp"
#include "lib/comm/setup/agreement.hpp"

namespace hips::mpi {
namespace {

// Arguments packed into two positive numbers: is_valid_count() limits counts to 48 bits. Elements of bytes have a type that no
// number has, and their size beside the detail; functions have the lower bits of their values, which say whether they commute.
constexpr int kTypeShift = 48, kOpShift = 52, kCollectiveShift = 56, kPresentShift = 60, kElementShift = 32;
constexpr std::int32_t kBytesType = 0xf;
static_assert(kNumDataTypes <= 0xf && kNumReduceOps <= 0xe);

constexpr std::size_t kNumbers = 3;
/// The arguments of one rank, and how many trials of their class it has made.
struct PassedArguments {
  std::int64_t shape = 0, detail = 0, num_done = 0;
};
static_assert(sizeof(PassedArguments) == kNumbers * sizeof(std::int64_t), "compared as an array of numbers");

PassedArguments pack(const comm::CallArgs& args, int num_done) {
  const auto type =
      static_cast<std::uint64_t>(is_bytes(args.type) ? kBytesType : static_cast<std::int32_t>(args.type));
  const std::int64_t element_bytes = is_bytes(args.type) ? static_cast<std::int64_t>(size_of(args.type)) : 0;
  return {static_cast<std::int64_t>(args.count | type << kTypeShift |
                                    (static_cast<std::uint64_t>(args.op) & 0xf) << kOpShift |
                                    static_cast<std::uint64_t>(args.collective) << kCollectiveShift |
                                    std::uint64_t{1} << kPresentShift),
          args.detail() | element_bytes << kElementShift, num_done};
}

std::string text_of(const PassedArguments& passed) {
  const auto bits = static_cast<std::uint64_t>(passed.shape);
  const auto code = static_cast<std::int32_t>(bits >> kTypeShift & 0xf);
  const auto element_bytes = static_cast<std::size_t>(passed.detail >> kElementShift);
  const DataType type = code == kBytesType ? bytes_type(element_bytes) : static_cast<DataType>(code);
  const auto low = static_cast<std::int32_t>(bits >> kOpShift & 0xf);
  const auto op = static_cast<ReduceOp>(low >= 0xe ? 0xf0 | low : low);
  const auto which = static_cast<std::int32_t>(bits >> kCollectiveShift & 0xf);
  // That rank is in another call, whose data matched the comparison by chance.
  if (bits >> kPresentShift != 1 || !comm::is_type(type) || (!is_user(op) && low >= kNumReduceOps) ||
      which >= kNumCollectives)
    return "another call";
  const auto collective = static_cast<Collective>(which);
  std::string text =
      fmt::format("count {} of {}", bits & ((std::uint64_t{1} << kTypeShift) - 1), type_text(type));
  if (reduces(collective)) text += fmt::format(", {}", to_string(op));
  text += detail_text(collective, static_cast<std::uint32_t>(passed.detail));
  return collective == Collective::kAllreduce ? text : fmt::format("{} of {}", to_string(collective), text);
}

}  // namespace

Status compare_arguments(comm::Communicator& communicator, const comm::CallArgs& args, Guard& guard,
                         CallClass of) {
  std::vector<PassedArguments> passed(static_cast<std::size_t>(communicator.size()));
  const PassedArguments mine = pack(args, guard.num_done(of));
  passed[static_cast<std::size_t>(communicator.rank())] = mine;
  Status status = max_over_ranks(communicator, {&passed.front().shape, kNumbers * passed.size()});
  if (!status.ok()) {
    if (status.code == Code::kMismatch)
      status.message += fmt::format("; the call of {} x int64, max compares the arguments of {}",
                                    kNumbers * passed.size(), text_of(mine));
    return status;
  }
  const auto all_same = [&](auto member) {
    return std::ranges::all_of(
        passed, [&](const PassedArguments& one) { return one.*member == passed.front().*member; });
  };
  if (!all_same(&PassedArguments::num_done)) guard.begin_again(of);
  if (all_same(&PassedArguments::shape) && all_same(&PassedArguments::detail)) return Status::success();
  std::vector<comm::Terms> terms;
  for (const PassedArguments& one : passed) terms.push_back({{"arguments", text_of(one)}});
  return comm::compare_terms(terms);
}

Status mean_over_ranks(comm::Communicator& communicator, std::span<std::int64_t> values) {
  Status status =
      communicator.allreduce(values.data(), values.data(), values.size(), DataType::kInt64, ReduceOp::kSum);
  for (std::int64_t& value : values) value /= communicator.size();
  return status;
}

Status max_over_ranks(comm::Communicator& communicator, std::span<std::int64_t> values) {
  return communicator.allreduce(values.data(), values.data(), values.size(), DataType::kInt64,
                                ReduceOp::kMax);
}

}  // namespace hips::mpi

#include "lib/mpi/trial.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lib/comm/agreement.hpp"

namespace hips::mpi {
namespace {

// Arguments in one positive number: MPI's counts here are ints.
constexpr int kTypeShift = 40, kOpShift = 48, kPresentShift = 60;

std::int64_t pack(std::uint64_t count, DataType type, ReduceOp op) {
  return static_cast<std::int64_t>(count | static_cast<std::uint64_t>(type) << kTypeShift |
                                   static_cast<std::uint64_t>(op) << kOpShift |
                                   std::uint64_t{1} << kPresentShift);
}

std::string text_of(std::uint64_t count, DataType type, ReduceOp op) {
  return fmt::format("count {} of {}, {}", count, to_string(type), to_string(op));
}

std::string text_of(std::int64_t packed) {
  const auto bits = static_cast<std::uint64_t>(packed);
  const auto type = static_cast<std::int32_t>(bits >> kTypeShift & 0xff);
  const auto op = static_cast<std::int32_t>(bits >> kOpShift & 0xff);
  // A rank in another call altogether, whose arguments happened to look like an announcement.
  if (bits >> kPresentShift != 1 || type >= kNumDataTypes || op >= kNumReduceOps) return "another call";
  return text_of(bits & ((std::uint64_t{1} << kTypeShift) - 1), static_cast<DataType>(type),
                 static_cast<ReduceOp>(op));
}

}  // namespace

Status announce(comm::Communicator& communicator, std::uint64_t count, DataType type, ReduceOp op) {
  std::vector<std::int64_t> passed(static_cast<std::size_t>(communicator.size()));
  passed[static_cast<std::size_t>(communicator.rank())] = pack(count, type, op);
  Status status = max_over_ranks(communicator, passed);
  if (!status.ok()) {
    if (status.code == Code::kMismatch)
      status.message += fmt::format("; {} x int64, max compares the ranks' arguments before {}",
                                    passed.size(), text_of(count, type, op));
    return status;
  }
  if (std::ranges::all_of(passed, [&](std::int64_t packed) { return packed == passed.front(); }))
    return Status::success();
  std::vector<comm::Terms> terms;
  for (const std::int64_t packed : passed) terms.push_back({{"arguments", text_of(packed)}});
  return comm::compare_terms(terms);
}

Status share_verdicts(comm::Communicator& communicator, const std::map<GuardClass, GuardVerdict>& of_rank_0,
                      Guard& guard) {
  // Winner, HiPS' time and the host's, for each class that there can be; zeros where nothing is known.
  std::vector<std::int64_t> values(std::size_t{3} * kNumReduceOps * GuardClass::kNumSizes);
  const auto at = [&](GuardClass of) {
    return values.begin() + 3 * (static_cast<int>(of.op) * GuardClass::kNumSizes + of.size_class);
  };
  for (const auto& [of, verdict] : of_rank_0) {
    const auto place = at(of);
    place[0] = static_cast<std::int64_t>(verdict.winner);
    place[1] = verdict.hips_ns;
    place[2] = verdict.host_ns;
  }
  if (Status status = max_over_ranks(communicator, values); !status.ok()) return status;
  for (int op = 0; op < kNumReduceOps; ++op)
    for (int size = 0; size < GuardClass::kNumSizes; ++size) {
      const GuardClass of{static_cast<ReduceOp>(op), size};
      const auto place = at(of);
      if (place[0] != 0) guard.set(of, {static_cast<Way>(place[0]), place[1], place[2]});
    }
  return Status::success();
}

Status max_over_ranks(comm::Communicator& communicator, std::span<std::int64_t> values) {
  return communicator.allreduce(values.data(), values.data(), values.size(), DataType::kInt64,
                                ReduceOp::kMax);
}

}  // namespace hips::mpi

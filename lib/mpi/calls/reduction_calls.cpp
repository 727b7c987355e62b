#include "lib/mpi/calls/reduction_calls.hpp"

#include <vector>

#include "lib/mpi/communicators/comm_record.hpp"

namespace hips::mpi {

ReduceCall::ReduceCall(const CollectiveArguments& arguments, const CommRecord& record,
                       const Reduction& reduction)
    : ProgramCall(arguments) {
  const bool is_root = record.rank() == passed.root;
  const bool is_invalid = passed.root < 0 || passed.root >= record.size() || (in_place() && !is_root) ||
                          (is_root && passed.count != 0 && is_refused_output(passed));
  const Eligibility found = eligibility_of(reduction, passed.count, false);
  set_eligibility(
      is_invalid && reduction.eligibility == Eligibility::kEligible ? Eligibility::kInvalidArgument : found);
  args.collective = Collective::kReduce;
  args.type = reduction.type;
  args.op = reduction.op;
  args.root = passed.root;
  set_count(static_cast<std::uint64_t>(passed.count), reduction);
  set_in(in_place() ? passed.out : passed.in);
  set_out(is_root ? passed.out : nullptr);
}

ReduceScatterCall::ReduceScatterCall(const CollectiveArguments& arguments, const CommRecord& record,
                                     const Reduction& reduction)
    : AnyReduceScatterCall(arguments) {
  if (passed.counts == nullptr)
    set_eligibility(Eligibility::kInvalidArgument);
  else
    accept(record, reduction);
}

ReduceScatterBlockCall::ReduceScatterBlockCall(const CollectiveArguments& arguments, const CommRecord& record,
                                               const Reduction& reduction)
    : AnyReduceScatterCall(arguments) {
  accept(record, reduction);
}

Eligibility AnyReduceScatterCall::eligibility_on(const CommRecord& record, const Reduction& reduction) {
  if (reduction.eligibility != Eligibility::kEligible) return reduction.eligibility;
  std::uint64_t total = 0;
  for (int rank = 0; rank < record.size(); ++rank) {
    const auto count = static_cast<std::uint64_t>(section_of(rank));
    if (count > reduction.most_counts) return Eligibility::kInvalidArgument;
    total += count;
  }
  if (total == 0) return Eligibility::kNothingToMove;
  if (is_refused_output(passed)) return Eligibility::kInvalidArgument;
  args.collective = Collective::kReduceScatter;
  args.type = reduction.type;
  args.op = reduction.op;
  set_count(total, reduction);
  set_in(in_place() ? passed.out : passed.in);
  set_out(passed.out);
  return Eligibility::kEligible;
}

void AnyReduceScatterCall::prepare(CommRecord& record) {
  std::vector<std::uint64_t> counts;
  for (int rank = 0; rank < record.size(); ++rank)
    counts.push_back(static_cast<std::uint64_t>(section_of(rank)) * parts_);
  args.sections = record.sections(counts, {});
}

}  // namespace hips::mpi

#include "lib/mpi/calls/bcast_call.hpp"

#include "lib/mpi/communicators/comm_record.hpp"

namespace hips::mpi {

BcastCall::BcastCall(const CollectiveArguments& arguments, const CommRecord& record)
    : ProgramCall(arguments) {
  set_eligibility(accept(record));
}

Eligibility BcastCall::accept(const CommRecord& record) {
  const auto type = buffer_type_of(passed.type);
  if (!type || !is_valid_count(passed.count, type->size) || passed.root < 0 || passed.root >= record.size())
    return Eligibility::kInvalidArgument;
  if (passed.count == 0 || type->size == 0) return Eligibility::kNothingToMove;
  if (passed.out == MPI_IN_PLACE) return Eligibility::kInvalidArgument;
  type_ = *type;
  args.collective = Collective::kBcast;
  set_count(static_cast<std::uint64_t>(passed.count) * static_cast<std::uint64_t>(type->size), 1);
  args.root = passed.root;
  is_root_ = record.rank() == passed.root;
  return Eligibility::kEligible;
}

void BcastCall::prepare(CommRecord& /*record*/) {
  set_out(type_.plain ? static_cast<std::byte*>(passed.out) : packed_.make(args.count));
  args.in = args.out;
}

int BcastCall::check_types() {
  return check_packed_type(type_, passed.comm);
}

int BcastCall::pack() {
  if (type_.plain || !is_root_) return MPI_SUCCESS;
  return packed_.pack(passed.out, passed.count, type_, 0, passed.comm);
}

int BcastCall::unpack() {
  if (type_.plain || is_root_) return MPI_SUCCESS;
  return packed_.unpack(passed.out, passed.count, type_, 0, passed.comm);
}

int BcastCall::keep() {
  return type_.plain || is_root_ ? MPI_SUCCESS : kept_type_.keep(type_);
}

}  // namespace hips::mpi

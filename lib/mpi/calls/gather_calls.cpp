#include "lib/mpi/calls/gather_calls.hpp"

#include "lib/mpi/communicators/comm_record.hpp"
#include "lib/mpi/native/abi.hpp"

namespace hips::mpi {

AllgatherCall::AllgatherCall(const CollectiveArguments& arguments, const CommRecord& record)
    : AnyAllgatherCall(arguments) {
  accept(record);
}

AllgathervCall::AllgathervCall(const CollectiveArguments& arguments, const CommRecord& record)
    : AnyAllgatherCall(arguments) {
  if (passed.counts == nullptr || passed.displs == nullptr)
    set_eligibility(Eligibility::kInvalidArgument);
  else
    accept(record);
}

Eligibility AnyAllgatherCall::eligibility_on(const CommRecord& record) {
  const auto type = buffer_type_of(passed.type);
  const auto in_type = in_place() ? type : buffer_type_of(passed.in_type);
  if (!type || !in_type) return Eligibility::kInvalidArgument;
  type_ = *type;
  in_type_ = *in_type;
  rank_ = record.rank();
  size_ = record.size();
  std::uint64_t total = 0;
  for (int rank = 0; rank < size_; ++rank) {
    const std::int64_t count = section_of(rank);
    if (!is_valid_count(count, type_.size)) return Eligibility::kInvalidArgument;
    total += static_cast<std::uint64_t>(count);
    // HiPS' places are unsigned: sections before `out` are unpacked from memory of ours.
    if (begin_of(rank) < 0) type_.plain = false;
  }
  if (!in_place()) {
    if (!is_valid_count(passed.in_count, in_type_.size)) return Eligibility::kInvalidArgument;
    if (passed.in_count * in_type_.size != section_of(rank_) * type_.size) return Eligibility::kUnequalSizes;
    if (kRefusesAliases && passed.in_count > 0 &&
        passed.in == static_cast<std::byte*>(passed.out) + begin_of(rank_) * type_.extent)
      return Eligibility::kInvalidArgument;
  }
  args.collective = Collective::kAllgather;
  set_count(total * static_cast<std::uint64_t>(type_.size), 1);
  if (args.count == 0) return Eligibility::kNothingToMove;
  return passed.out == MPI_IN_PLACE ? Eligibility::kInvalidArgument : Eligibility::kEligible;
}

void AnyAllgatherCall::prepare(CommRecord& record) {
  std::vector<std::uint64_t> counts, places;
  for (int rank = 0; rank < size_; ++rank) {
    counts.push_back(static_cast<std::uint64_t>(section_of(rank)) * static_cast<std::uint64_t>(type_.size));
    if (type_.plain)
      places.push_back(static_cast<std::uint64_t>(begin_of(rank) * type_.extent));
    else
      // The program's arrays may be gone when a non-blocking call ends.
      begins_.push_back(begin_of(rank) * type_.extent);
  }
  args.sections = record.sections(counts, places);
  set_out(type_.plain ? static_cast<std::byte*>(passed.out) : packed_out_.make(args.count));
  const auto self = static_cast<std::size_t>(rank_);
  if (in_place())
    args.in = args.out + args.sections->displacement(self);
  else
    set_in(in_type_.plain ? passed.in : packed_in_.make(counts[self]));
}

int AnyAllgatherCall::check_types() {
  const int code = check_packed_type(type_, passed.comm);
  return code == MPI_SUCCESS && !in_place() ? check_packed_type(in_type_, passed.comm) : code;
}

int AnyAllgatherCall::pack() {
  if (in_place())
    return type_.plain
               ? MPI_SUCCESS
               : packed_out_.pack(address(rank_), elements(rank_), type_, packed_begin(rank_), passed.comm);
  return in_type_.plain ? MPI_SUCCESS : packed_in_.pack(passed.in, passed.in_count, in_type_, 0, passed.comm);
}

int AnyAllgatherCall::unpack() {
  if (type_.plain) return MPI_SUCCESS;
  for (int rank = 0; rank < size_; ++rank) {
    if (in_place() && rank == rank_) continue;
    const int code =
        packed_out_.unpack(address(rank), elements(rank), type_, packed_begin(rank), passed.comm);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int AnyAllgatherCall::keep() {
  return type_.plain ? MPI_SUCCESS : kept_type_.keep(type_);
}

std::size_t AnyAllgatherCall::packed_begin(int rank) const {
  return args.sections->first(static_cast<std::size_t>(rank));
}

std::int64_t AnyAllgatherCall::elements(int rank) const {
  return static_cast<std::int64_t>(args.sections->count(static_cast<std::size_t>(rank)) /
                                   static_cast<std::uint64_t>(type_.size));
}

std::byte* AnyAllgatherCall::address(int rank) const {
  return static_cast<std::byte*>(passed.out) + begins_[static_cast<std::size_t>(rank)];
}

}  // namespace hips::mpi

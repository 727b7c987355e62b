#include "lib/mpi/gather_calls.hpp"

#include "lib/mpi/comm_record.hpp"

namespace hips::mpi {

bool GatherCall::accept(const CommRecord& record, const char*& reason) {
  reason = kWrong;
  if (!has_sections()) return false;
  const auto shape = BufferType::of(out_type_);
  const auto in_shape = in_place() ? shape : BufferType::of(in_type_);
  if (!shape || !in_shape) return false;
  shape_ = *shape;
  in_shape_ = *in_shape;
  rank_ = record.communicator()->rank();
  size_ = record.communicator()->size();
  std::uint64_t total = 0;
  for (int rank = 0; rank < size_; ++rank) {
    const std::int64_t count = count_of(rank);
    if (!may_be(count, shape_.size)) return false;
    total += static_cast<std::uint64_t>(count);
    // HiPS' places are no negative numbers: what lies before `out` goes through memory of ours.
    if (place_of(rank) < 0) shape_.plain = false;
  }
  const std::int64_t in_count = in_count_.value();
  if (!in_place() &&
      (!may_be(in_count, in_shape_.size) || in_count * in_shape_.size != count_of(rank_) * shape_.size))
    return false;
  reason = kNothing;
  args.collective = Collective::kAllgather;
  args.count = total * static_cast<std::uint64_t>(shape_.size);
  return args.count > 0;
}

void GatherCall::prepare(CommRecord& record) {
  std::vector<std::uint64_t> counts, places;
  for (int rank = 0; rank < size_; ++rank) {
    counts.push_back(static_cast<std::uint64_t>(count_of(rank)) * static_cast<std::uint64_t>(shape_.size));
    if (shape_.plain)
      places.push_back(static_cast<std::uint64_t>(place_of(rank) * shape_.extent));
    else
      // The program's arrays may be gone when a non-blocking call ends.
      places_.push_back(place_of(rank) * shape_.extent);
  }
  args.sections = record.sections(counts, places);
  set_out(shape_.plain ? static_cast<std::byte*>(out_) : sections_.make(args.count));
  const auto self = static_cast<std::size_t>(rank_);
  if (in_place())
    args.in = args.out + args.sections->place(self);
  else
    set_in(in_shape_.plain ? in_ : own_.make(counts[self]));
}

int GatherCall::pack() {
  if (in_place())
    return shape_.plain ? MPI_SUCCESS
                        : sections_.pack(place(rank_), elements(rank_), shape_, begin(rank_), comm);
  return in_shape_.plain ? MPI_SUCCESS : own_.pack(in_, in_count_.value(), in_shape_, 0, comm);
}

int GatherCall::unpack() {
  if (shape_.plain) return MPI_SUCCESS;
  for (int rank = 0; rank < size_; ++rank) {
    if (in_place() && rank == rank_) continue;
    const int code = sections_.unpack(place(rank), elements(rank), shape_, begin(rank), comm);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int GatherCall::outlive() {
  return shape_.plain ? MPI_SUCCESS : kept_type_.keep(shape_);
}

std::size_t GatherCall::begin(int rank) const {
  return args.sections->first(static_cast<std::size_t>(rank));
}

std::int64_t GatherCall::elements(int rank) const {
  return static_cast<std::int64_t>(args.sections->count(static_cast<std::size_t>(rank)) /
                                   static_cast<std::uint64_t>(shape_.size));
}

std::byte* GatherCall::place(int rank) const {
  return static_cast<std::byte*>(out_) + places_[static_cast<std::size_t>(rank)];
}

int AllgatherCall::on_host() const {
  if (out_count_.is_large()) {
    using Large = int(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm);
    static auto* const large = of_host<Large>("PMPI_Allgather_c");
    return large(in_, in_count_.value(), in_type_, out_, out_count_.value(), out_type_, comm);
  }
  static auto* const function = of_host<decltype(PMPI_Allgather)>("PMPI_Allgather");
  return function(in_, in_count_.small(), in_type_, out_, out_count_.small(), out_type_, comm);
}

int AllgatherCall::start_on_host(MPI_Request* request) const {
  if (out_count_.is_large()) {
    using Large =
        int(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm, MPI_Request*);
    static auto* const large = of_host<Large>("PMPI_Iallgather_c");
    return large(in_, in_count_.value(), in_type_, out_, out_count_.value(), out_type_, comm, request);
  }
  static auto* const function = of_host<decltype(PMPI_Iallgather)>("PMPI_Iallgather");
  return function(in_, in_count_.small(), in_type_, out_, out_count_.small(), out_type_, comm, request);
}

int AllgathervCall::on_host() const {
  if (counts_.is_large()) {
    using Large = int(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
                      MPI_Datatype, MPI_Comm);
    static auto* const large = of_host<Large>("PMPI_Allgatherv_c");
    return large(in_, in_count_.value(), in_type_, out_, counts_.large(), displacements_.large(), out_type_,
                 comm);
  }
  static auto* const function = of_host<decltype(PMPI_Allgatherv)>("PMPI_Allgatherv");
  return function(in_, in_count_.small(), in_type_, out_, counts_.small(), displacements_.small(), out_type_,
                  comm);
}

int AllgathervCall::start_on_host(MPI_Request* request) const {
  if (counts_.is_large()) {
    using Large = int(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
                      MPI_Datatype, MPI_Comm, MPI_Request*);
    static auto* const large = of_host<Large>("PMPI_Iallgatherv_c");
    return large(in_, in_count_.value(), in_type_, out_, counts_.large(), displacements_.large(), out_type_,
                 comm, request);
  }
  static auto* const function = of_host<decltype(PMPI_Iallgatherv)>("PMPI_Iallgatherv");
  return function(in_, in_count_.small(), in_type_, out_, counts_.small(), displacements_.small(), out_type_,
                  comm, request);
}

}  // namespace hips::mpi

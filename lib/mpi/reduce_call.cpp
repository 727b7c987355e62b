#include "lib/mpi/reduce_call.hpp"

#include <cstdint>

#include "lib/mpi/comm_record.hpp"

namespace hips::mpi {

int ReduceCall::on_host() const {
  if (count_.is_large()) {
    using Large = int(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm);
    static auto* const large = of_host<Large>("PMPI_Reduce_c");
    return large(in_, out_, count_.value(), type_, op_, root_, comm);
  }
  static auto* const function = of_host<decltype(PMPI_Reduce)>("PMPI_Reduce");
  return function(in_, out_, count_.small(), type_, op_, root_, comm);
}

int ReduceCall::start_on_host(MPI_Request* request) const {
  if (count_.is_large()) {
    using Large = int(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, int, MPI_Comm, MPI_Request*);
    static auto* const large = of_host<Large>("PMPI_Ireduce_c");
    return large(in_, out_, count_.value(), type_, op_, root_, comm, request);
  }
  static auto* const function = of_host<decltype(PMPI_Ireduce)>("PMPI_Ireduce");
  return function(in_, out_, count_.small(), type_, op_, root_, comm, request);
}

bool ReduceCall::accept(const CommRecord& record, const char*& reason) {
  if (!accept_reduction(type_, op_, reason)) return false;
  const bool is_root = record.communicator()->rank() == root_;
  reason = kWrong;
  if (!may_be(count_.value(), static_cast<std::int64_t>(size_of(args.type))) || root_ < 0 ||
      root_ >= record.communicator()->size() || (in_ == MPI_IN_PLACE && !is_root))
    return false;
  reason = kNothing;
  if (count_.value() == 0) return false;
  args.collective = Collective::kReduce;
  args.count = static_cast<std::uint64_t>(count_.value());
  args.root = root_;
  set_in(in_ == MPI_IN_PLACE ? out_ : in_);
  set_out(is_root ? out_ : nullptr);
  return true;
}

}  // namespace hips::mpi

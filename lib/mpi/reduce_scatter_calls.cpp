#include "lib/mpi/reduce_scatter_calls.hpp"

#include <vector>

#include "lib/mpi/comm_record.hpp"

namespace hips::mpi {

bool ReduceScatterCall::accept(const CommRecord& record, const char*& reason) {
  if (!accept_reduction(type_, op_, reason)) return false;
  reason = kWrong;
  if (!has_counts()) return false;
  std::uint64_t total = 0;
  for (int rank = 0; rank < record.communicator()->size(); ++rank) {
    const std::int64_t count = count_of(rank);
    if (!may_be(count, static_cast<std::int64_t>(size_of(args.type)))) return false;
    total += static_cast<std::uint64_t>(count);
  }
  reason = kNothing;
  if (total == 0) return false;
  args.collective = Collective::kReduceScatter;
  args.count = total;
  set_in(in_ == MPI_IN_PLACE ? out_ : in_);
  set_out(out_);
  return true;
}

void ReduceScatterCall::prepare(CommRecord& record) {
  std::vector<std::uint64_t> counts;
  for (int rank = 0; rank < record.communicator()->size(); ++rank)
    counts.push_back(static_cast<std::uint64_t>(count_of(rank)));
  args.sections = record.sections(counts, {});
}

int ReduceScatterCountsCall::on_host() const {
  if (counts_.is_large()) {
    using Large = int(const void*, void*, const MPI_Count*, MPI_Datatype, MPI_Op, MPI_Comm);
    static auto* const large = of_host<Large>("PMPI_Reduce_scatter_c");
    return large(in_, out_, counts_.large(), type_, op_, comm);
  }
  static auto* const function = of_host<decltype(PMPI_Reduce_scatter)>("PMPI_Reduce_scatter");
  return function(in_, out_, counts_.small(), type_, op_, comm);
}

int ReduceScatterCountsCall::start_on_host(MPI_Request* request) const {
  if (counts_.is_large()) {
    using Large = int(const void*, void*, const MPI_Count*, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
    static auto* const large = of_host<Large>("PMPI_Ireduce_scatter_c");
    return large(in_, out_, counts_.large(), type_, op_, comm, request);
  }
  static auto* const function = of_host<decltype(PMPI_Ireduce_scatter)>("PMPI_Ireduce_scatter");
  return function(in_, out_, counts_.small(), type_, op_, comm, request);
}

int ReduceScatterBlockCall::on_host() const {
  if (count_.is_large()) {
    using Large = int(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
    static auto* const large = of_host<Large>("PMPI_Reduce_scatter_block_c");
    return large(in_, out_, count_.value(), type_, op_, comm);
  }
  static auto* const function = of_host<decltype(PMPI_Reduce_scatter_block)>("PMPI_Reduce_scatter_block");
  return function(in_, out_, count_.small(), type_, op_, comm);
}

int ReduceScatterBlockCall::start_on_host(MPI_Request* request) const {
  if (count_.is_large()) {
    using Large = int(const void*, void*, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Request*);
    static auto* const large = of_host<Large>("PMPI_Ireduce_scatter_block_c");
    return large(in_, out_, count_.value(), type_, op_, comm, request);
  }
  static auto* const function = of_host<decltype(PMPI_Ireduce_scatter_block)>("PMPI_Ireduce_scatter_block");
  return function(in_, out_, count_.small(), type_, op_, comm, request);
}

}  // namespace hips::mpi

#include "lib/mpi/bcast_call.hpp"

#include <cstdint>

#include "lib/mpi/comm_record.hpp"

namespace hips::mpi {

int BcastCall::on_host() const {
  if (count_.is_large()) {
    static auto* const large = of_host<int(void*, MPI_Count, MPI_Datatype, int, MPI_Comm)>("PMPI_Bcast_c");
    return large(buffer_, count_.value(), type_, root_, comm);
  }
  static auto* const function = of_host<decltype(PMPI_Bcast)>("PMPI_Bcast");
  return function(buffer_, count_.small(), type_, root_, comm);
}

int BcastCall::start_on_host(MPI_Request* request) const {
  if (count_.is_large()) {
    using Large = int(void*, MPI_Count, MPI_Datatype, int, MPI_Comm, MPI_Request*);
    static auto* const large = of_host<Large>("PMPI_Ibcast_c");
    return large(buffer_, count_.value(), type_, root_, comm, request);
  }
  static auto* const function = of_host<decltype(PMPI_Ibcast)>("PMPI_Ibcast");
  return function(buffer_, count_.small(), type_, root_, comm, request);
}

bool BcastCall::accept(const CommRecord& record, const char*& reason) {
  const auto type = BufferType::of(type_);
  reason = kWrong;
  if (!type || !may_be(count_.value(), type->size) || root_ < 0 || root_ >= record.communicator()->size())
    return false;
  reason = kNothing;
  if (count_.value() == 0 || type->size == 0) return false;
  shape_ = *type;
  args.collective = Collective::kBcast;
  args.count = static_cast<std::uint64_t>(count_.value()) * static_cast<std::uint64_t>(type->size);
  args.root = root_;
  is_root_ = record.communicator()->rank() == root_;
  return true;
}

void BcastCall::prepare(CommRecord& /*record*/) {
  set_out(packs() ? packed_.make(args.count) : static_cast<std::byte*>(buffer_));
  args.in = args.out;
}

int BcastCall::pack() {
  return packs() && is_root_ ? packed_.pack(buffer_, count_.value(), shape_, 0, comm) : MPI_SUCCESS;
}

int BcastCall::unpack() {
  return packs() && !is_root_ ? packed_.unpack(buffer_, count_.value(), shape_, 0, comm) : MPI_SUCCESS;
}

int BcastCall::outlive() {
  return packs() && !is_root_ ? kept_type_.keep(shape_) : MPI_SUCCESS;
}

}  // namespace hips::mpi

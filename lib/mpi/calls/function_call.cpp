#include "lib/mpi/calls/function_call.hpp"

#include <cstring>

#include "lib/mpi/communicators/comm_record.hpp"
#include "lib/mpi/native/native_mpi.hpp"

namespace hips::mpi {
namespace {

BufferType with_gaps(MPI_Datatype type, const ElementLayout& layout) {
  MPI_Count size = 0;
  native_mpi()->Type_size_x(type, &size);
  return {type, size, static_cast<std::int64_t>(layout.extent), false};
}

}  // namespace

FunctionCall::FunctionCall(const CollectiveArguments& arguments, const CommRecord& record, Make make)
    : ProgramCall(arguments) {
  set_eligibility(accept(record, make));
}

Eligibility FunctionCall::accept(const CommRecord& record, Make make) {
  if (is_predefined_op(passed.op)) return reduction_of(passed.type, passed.op).eligibility;
  const auto layout = element_layout_of(passed.type);
  if (!layout) return Eligibility::kOtherType;
  layout_ = *layout;
  int commutes = 0;
  if (native_mpi()->Op_commutative(passed.op, &commutes) != MPI_SUCCESS) return Eligibility::kOtherOp;
  commutes_ = commutes != 0;
  // prepare() makes the operation.
  const auto any_function = static_cast<ReduceOp>(commutes_ ? 0xfe : 0xff);
  const Reduction of_bytes = {Eligibility::kEligible,
                              bytes_type(layout_.extent),
                              any_function,
                              static_cast<std::uint32_t>(layout_.extent),
                              1,
                              static_cast<std::uint64_t>(kMostBytes) / layout_.extent};
  call_ = make(passed, record, of_bytes);
  args = call_->args;
  set_bytes(call_->bytes());
  return call_->eligibility();
}

void FunctionCall::prepare(CommRecord& record) {
  reduction_ = std::make_unique<LocalReduction>(passed.type, passed.op, commutes_);
  if (!reduction_->op()) throw std::bad_alloc();
  call_->prepare(record);
  args = call_->args;
  args.op = *reduction_->op();
  if (args.out != nullptr)
    num_results_ = args.collective == Collective::kReduceScatter
                       ? args.sections->count(static_cast<std::size_t>(record.rank()))
                       : args.count;
  if (!layout_.has_gaps) return;
  std::byte* const copy = elements_.make(args.count * layout_.extent);
  args.in = copy;
  if (args.out != nullptr) args.out = copy;
  results_.make(num_results_ * static_cast<std::size_t>(with_gaps(passed.type, layout_).size));
}

int FunctionCall::check_types() {
  return layout_.is_named ? MPI_SUCCESS : check_packed_type({.type = passed.type}, passed.comm);
}

int FunctionCall::pack() {
  if (layout_.has_gaps)
    std::memcpy(elements_.make(args.count * layout_.extent), call_->args.in, layout_.bytes(args.count));
  return MPI_SUCCESS;
}

int FunctionCall::unpack() {
  if (!layout_.has_gaps || num_results_ == 0) return MPI_SUCCESS;
  const BufferType type = with_gaps(passed.type, layout_);
  const auto num = static_cast<std::int64_t>(num_results_);
  const int code = results_.pack(args.out, num, type, 0, passed.comm);
  return code != MPI_SUCCESS ? code : results_.unpack(passed.out, num, type, 0, passed.comm);
}

}  // namespace hips::mpi

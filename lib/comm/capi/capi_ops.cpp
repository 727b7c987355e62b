#include <fmt/format.h>

#include "lib/comm/capi/capi.hpp"
#include "lib/reduce/user_op.hpp"

using namespace hips::comm::capi;  // NOLINT: the C API is part of it
using hips::Code;
using hips::Status;
namespace reduce = hips::reduce;

static_assert(hips::kMaxElementBytes == HIPS_MAX_ELEMENT_BYTES);
static_assert(static_cast<int>(hips::bytes_type(24)) == HIPS_BYTES(24));
static_assert(static_cast<int>(hips::bytes_type(2000)) == HIPS_BYTES(2000));

extern "C" {

hips_status_t hips_op_create(hips_user_function_t function, int commutative, void* context,
                             void (*release)(void* context), hips_op_t* op) {
  return guarded([&]() -> Status {
    if (function == nullptr || op == nullptr)
      return null_argument("hips_op_create", function == nullptr ? "function" : "op");
    const auto made = reduce::create_user_op({function, context, release}, commutative != 0);
    if (!made)
      return Status::error(
          Code::kOutOfMemory,
          fmt::format("hips_op_create: there are {} ops already; free some with hips_op_free()",
                      reduce::kMostUserOps));
    *op = static_cast<hips_op_t>(*made);
    return Status::success();
  });
}

hips_status_t hips_op_free(hips_op_t* op) {
  return guarded([&]() -> Status {
    if (op == nullptr) return null_argument("hips_op_free", "op");
    if (!reduce::free_user_op(static_cast<hips::ReduceOp>(*op)))
      return Status::error(
          Code::kInvalidArgument,
          fmt::format("hips_op_free: op {:#x} was not made by hips_op_create(), or has been freed",
                      static_cast<unsigned>(*op)));
    *op = HIPS_OP_NULL;
    return Status::success();
  });
}

}  // extern "C"

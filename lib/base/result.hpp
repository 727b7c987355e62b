#pragma once

#include <tl/expected.hpp>

#include <hips/status.hpp>

namespace hips {

/// A value, or the status that explains the error.
template <typename T>
using Result = tl::expected<T, Status>;

/// Example  return fail(Code::kInvalidArgument, fmt::format("topology: radix {} ...", n));
inline tl::unexpected<Status> fail(Code code, std::string message, Scope scope = Scope::kOperation) {
  return tl::unexpected<Status>(Status::error(code, std::move(message), scope));
}
inline tl::unexpected<Status> fail(Status status) {
  return tl::unexpected<Status>(std::move(status));
}

/// Converts a Result to the C++ API's form: returns the value or throws Error.
template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw Error(std::move(result).error());
  return *std::move(result);
}

}  // namespace hips

#pragma once

#include <hips/status.hpp>

namespace hips {

/// The exception that is being handled, as the failure of a communicator: kOutOfMemory for std::bad_alloc, else
/// kInternal with its text. To be called in a catch block.
Status status_of_exception() noexcept;

/// A copy of a status; with a short text where there is no memory for its own.
Status kept(const Status& status) noexcept;

}  // namespace hips

#include "lib/base/exception_status.hpp"

#include <exception>
#include <new>

namespace hips {

Status status_of_exception() noexcept {
  Status status;
  status.scope = Scope::kCommunicator;
  status.code = Code::kOutOfMemory;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    status.message = "out of memory";  // short enough to need no allocation
  } catch (const std::exception& error) {
    try {
      status.message = error.what();
      status.code = Code::kInternal;
    } catch (const std::bad_alloc&) {
      status.message = "out of memory";
    }
  } catch (...) {
    status.code = Code::kInternal;
    status.message = "an exception";
  }
  return status;
}

Status kept(const Status& status) noexcept {
  try {
    return status;
  } catch (const std::bad_alloc&) {
    Status shorter;
    shorter.code = status.code;
    shorter.scope = status.scope;
    shorter.rank = status.rank;
    shorter.message = "out of memory";  // short enough to need no allocation
    return shorter;
  }
}

}  // namespace hips

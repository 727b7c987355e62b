#include <hips/status.hpp>

namespace hips {

const char* to_string(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kMismatch:
      return "mismatch";
    case Code::kPeerLost:
      return "peer lost";
    case Code::kAborted:
      return "aborted";
    case Code::kTimeout:
      return "timed out";
    case Code::kOutOfMemory:
      return "out of memory";
    case Code::kSystem:
      return "system error";
    case Code::kInternal:
      return "internal error";
  }
  return "unknown status";
}

}  // namespace hips

#include "lib/mpi/communicators/error.hpp"

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/mpi/communicators/comm_record.hpp"
#include "lib/mpi/native/abi.hpp"
#include "lib/mpi/native/native_mpi.hpp"

namespace hips::mpi {
namespace {

/// The first rank whose handler aborts ends the whole job within milliseconds. All ranks get the error at
/// about the same time; this gives each the time to print it.
constexpr std::chrono::milliseconds kTimeForPeersToPrint{500};

int error_class(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return MPI_ERR_ARG;
    case Code::kUnsupported:
      return MPI_ERR_UNSUPPORTED_OPERATION;
    case Code::kOutOfMemory:
      return MPI_ERR_NO_MEM;
    case Code::kInternal:
      return MPI_ERR_INTERN;
    default:
      return MPI_ERR_OTHER;
  }
}

/// The MPI error code of `code`, one for each, with the latest sentence as its text.
int error_code(Code code, const std::string& sentence) {
  static auto& mutex = *new std::mutex;
  static auto& codes = *new std::map<Code, int>;
  const NativeMpi& mpi = *native_mpi();
  const std::lock_guard lock(mutex);
  auto known = codes.find(code);
  if (known == codes.end()) {
    int made = 0;
    int in_class = error_class(code);
    if (!kErrorTextInStandardClass && mpi.Add_error_class(&in_class) != MPI_SUCCESS) return error_class(code);
    if (mpi.Add_error_code(in_class, &made) != MPI_SUCCESS) return error_class(code);
    known = codes.emplace(code, made).first;
  }
  mpi.Add_error_string(known->second, sentence.substr(0, MPI_MAX_ERROR_STRING - 1).c_str());
  return known->second;
}

bool is_fatal(MPI_Comm comm) {
  const NativeMpi& mpi = *native_mpi();
  MPI_Errhandler handler{};
  if (mpi.Comm_get_errhandler(comm, &handler) != MPI_SUCCESS) return false;
  const bool fatal = handler == mpi.errors_are_fatal;
  mpi.Errhandler_free(&handler);
  return fatal;
}

}  // namespace

int print_error(CommRecord& record, const Status& status, const char* function) {
  const std::string sentence = fmt::format("{} on {}: {}", function, record.name(), status.message);
  if (record.first_error()) log::error(log::Subsystem::kMpi, "{}", sentence);
  return error_code(status.code, "hips: " + sentence);
}

int raise_code(MPI_Comm comm, int code) {
  if (is_fatal(comm)) std::this_thread::sleep_for(kTimeForPeersToPrint);
  native_mpi()->Comm_call_errhandler(comm, code);
  return code;
}

int raise_error(MPI_Comm comm, CommRecord& record, const Status& status, const char* function) {
  return raise_code(comm, print_error(record, status, function));
}

}  // namespace hips::mpi

#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <hips/status.hpp>

#include "lib/mpi/requests/request_table.hpp"

namespace hips::mpi {

class MpiProcess;

/// The requests of one call, ours and native MPI's. While this lives our handles in the program's array are
/// replaced by null requests, so that native MPI can be given the whole array: it completes its own requests
/// and computes indices and empty statuses as MPI requires.
///
/// Owns     the places of our handles until it is destroyed: unfinished ones are then restored.
/// Threads  one.
class MixedRequests {
 public:
  struct Ours {
    int index;
    MpiRequest* request;  ///< null: a handle of ours without a request
    MPI_Request handle;   ///< what is restored
  };

  MixedRequests(int count, MPI_Request* requests);
  ~MixedRequests();
  MixedRequests(const MixedRequests&) = delete;
  MixedRequests& operator=(const MixedRequests&) = delete;

  [[nodiscard]] std::span<Ours> ours() { return ours_; }
  /// Whether there is any request but ours and null ones.
  [[nodiscard]] bool has_native() const { return has_native_; }
  /// Whether a handle of ours has no request any longer.
  [[nodiscard]] bool has_stale() const { return has_stale_; }

  /// Whether any of ours is to be completed. Persistent ones that were not started are not.
  [[nodiscard]] bool has_active() const;

  /// Makes progress with ours, in a time that does not grow with their number. True where all have ended.
  bool test();
  /// Blocks for one outstanding request of ours, if they all share a communicator; false: blocking would stop
  /// progress of something else. `returns_with_first`: the call completes with the first request that ends.
  bool wait_for_ours(const MpiProcess& process, bool returns_with_first);
  /// Blocks for the first outstanding request of ours, even if everything else makes progress only now and
  /// then.
  void wait_for_first();

 private:
  /// Whether waiting for one outstanding request of ours makes progress with all.
  bool share_communicator();

  std::array<Ours, 16> few_;
  std::vector<Ours> many_;
  std::span<Ours> ours_;
  MPI_Request* requests_;
  bool has_native_ = false, has_stale_ = false;
  bool share_communicator_ = false;  ///< known to be so
  std::size_t first_ = 0;            ///< those before it have ended
  std::size_t next_tested_ = 0;
};

/// The outcome of a finished request: MPI_SUCCESS or an error code that has not been raised yet, and the
/// communicator whose error handler gets it.
struct RequestOutcome {
  int code = MPI_SUCCESS;
  MPI_Comm comm{};
};

/// Finishes a request of ours whose test() is true. Unless it is persistent it is destroyed, and `handle`
/// becomes null.
RequestOutcome finish(MpiRequest& request, MPI_Request& handle);

/// Makes `status` the one of a call without a message; leaves MPI_ERROR as it is.
void set_empty(MPI_Status* status);

/// A wait in which native MPI and HiPS make progress in alternation. Yields after each round without success,
/// since peers may need the core, and sleeps once it has waited for long.
class AlternatingWait {
 public:
  explicit AlternatingWait(const MpiProcess& process) : process_(process) {}
  /// Lets native MPI make progress, and yields the core.
  void next();
  /// Long enough that a blocking wait in HiPS would begin to ask for missing ranks.
  [[nodiscard]] bool has_waited_long() const { return is_long_; }

 private:
  const MpiProcess& process_;
  int rounds_ = 0;
  std::int64_t begin_ns_ = 0;
  bool is_long_ = false;
};

}  // namespace hips::mpi

#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <hips/status.hpp>

#include "lib/mpi/requests.hpp"

namespace hips::mpi {

class Process;

/// The requests of a call, ours and the host's. While this lives null requests stand in the places of ours,
/// so that the host can be given the whole array: it completes what is its own and gives each index and each
/// empty status as MPI wants it.
///
/// Owns     the places of our handles until it goes: those that are not finished then stand there again.
/// Threads  one.
class Mixed {
 public:
  struct Ours {
    int index;
    HipsRequest* request;  ///< null: a handle of ours whose request has gone
    MPI_Request handle;    ///< what stands there afterwards
  };

  Mixed(int count, MPI_Request* requests);
  ~Mixed();
  Mixed(const Mixed&) = delete;
  Mixed& operator=(const Mixed&) = delete;

  [[nodiscard]] std::span<Ours> ours() { return ours_; }
  /// Is there any request but ours and null ones?
  [[nodiscard]] bool has_hosts() const { return has_hosts_; }
  /// One of our handles is of no request any longer.
  [[nodiscard]] bool has_stale() const { return has_stale_; }

  /// Is any of ours to be completed? Persistent ones that were not started are not.
  [[nodiscard]] bool has_active() const;

  /// Moves ours on, in a time that does not grow with their number. True where all of them have ended.
  bool test();
  /// Blocks for one that is under way, of those alone that move each other; false: it must not, because
  /// something else would stand still. `any_may_do`: the call returns with the first that ends.
  bool wait_for_ours(const Process& process, bool any_may_do);
  /// Blocks for the first one under way, whatever stands still but for a turn now and then.
  void wait_for_first();

 private:
  /// Do those under way move each other on while one is waited for?
  bool share_communicator();

  std::array<Ours, 16> few_;
  std::vector<Ours> many_;
  std::span<Ours> ours_;
  MPI_Request* requests_;
  bool has_hosts_ = false, has_stale_ = false;
  bool share_communicator_ = false;  ///< all of ours that are under way: known to be so
  std::size_t first_ = 0;            ///< those before it have ended
  std::size_t turn_ = 0;
};

/// Ends one of ours, whose test() is true: the request goes, unless it is persistent, and `handle` becomes
/// null with it. The outcome is MPI_SUCCESS or an error code, which nobody has raised yet; `comm` is whose
/// handler is to have it.
struct Finished {
  int code = MPI_SUCCESS;
  MPI_Comm comm{};
};
Finished finish(HipsRequest& request, MPI_Request& handle);

/// What MPI says of a call without a message; leaves MPI_ERROR as it is.
void set_empty(MPI_Status* status);

/// A wait in which the host and HiPS move in turn: yields after each turn that brought nothing, because the
/// peers may need the core, and naps once it has waited for long.
class Turns {
 public:
  explicit Turns(const Process& process) : process_(process) {}
  /// Gives the host its turn, and the core away.
  void next();
  /// Long enough for whoever looks after blocking calls to have a look at this one.
  [[nodiscard]] bool has_waited_long() const { return is_long_; }

 private:
  const Process& process_;
  int turns_ = 0;
  std::int64_t begin_ns_ = 0;
  bool is_long_ = false;
};

}  // namespace hips::mpi

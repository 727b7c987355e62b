#pragma once

#include <mpi.h>

#include "lib/base/config/config.hpp"
#include "lib/base/result.hpp"

namespace hips::mpi {

/// What the ranks have agreed on about the adoption of communicators: when a communicator of HiPS is set up for one of the
/// program's.
///
/// Until then native MPI executes all calls, and a call costs a counter. Real programs split communicators by the thousand
/// and call few collectives on each: a set-up would cost more than HiPS can save there.
struct AdoptionTerms {
  bool at_once =
      false;  ///< at the first collective: HIPS_ADOPT=always, or somebody wants to see HiPS at work
  bool one_node = false;  ///< all processes of MPI_COMM_WORLD
  /// Communicators may be derived: in no process do several threads call MPI at once, so set-ups have one order.
  bool derives = false;
  /// A thread of HiPS completes requests in some process: it may call no function of the program, and not native MPI, which
  /// expect the thread that started the request.
  bool computes_elsewhere = false;
};

/// Exchanges what the ranks of a communicator want. One rank that wants communicators adopted at once decides for all: a
/// variable may be set on some nodes only, and the set-up, which compares all of them, then says so. Collective.
///
/// At once are adopted communicators where HIPS_ADOPT=always, HIPS_GUARD=off or HIPS_REPRODUCIBLE says so, where a topology or
/// plan is named for ranks on one node (people want to see the plan run), and where a variable is wrong (people want to hear
/// of it before the program has computed for an hour). `is_wrong` says the last. `derives` and `computes_elsewhere` are those of
/// this process.
///
/// Cost     one MPI_Allgather of 24 bytes of native MPI.
/// Errors   kAborted: native MPI's error.
Result<AdoptionTerms> agree_on_adoption(MPI_Comm comm, int size, const Config& config, bool is_wrong,
                                        bool derives, bool computes_elsewhere);

}  // namespace hips::mpi

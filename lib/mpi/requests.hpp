#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/mpi/abi.hpp"
#include "lib/mpi/hips_request.hpp"
#include "lib/mpi/request_handle.hpp"

namespace hips::mpi {

/// All requests of this process that HiPS carries, by handle.
///
/// Asked by every MPI_Wait and MPI_Test of the program, most of which are none of its business: while there
/// is none of ours that is one load, else a comparison for each handle.
///
/// Threads  any; one request is one thread's at a time, as in MPI.
class Requests {
 public:
  static constexpr int kMost = 1 << 18;

  static Requests& process();

  /// Is there any? Also under an MPI of another ABI, whose handles must not even be read.
  [[nodiscard]] static bool exist() { return s_num.load(std::memory_order_relaxed) > 0; }
  [[nodiscard]] static bool is_ours(MPI_Request handle) { return range().contains(handle); }
  /// Any of ours among these?
  [[nodiscard]] static bool any_of(int count, const MPI_Request* handles) {
    if (!exist() || handles == nullptr) return false;
    for (int i = 0; i < count; ++i)
      if (is_ours(handles[i])) return true;
    return false;
  }

  /// Keeps a request; its handle, or none (false) where there are as many as can be.
  bool add(std::unique_ptr<HipsRequest> request, MPI_Request& handle);
  /// Null where the handle, one of ours, is of no request any longer.
  [[nodiscard]] HipsRequest* find(MPI_Request handle) const;
  /// The handle is of no request from here on.
  std::unique_ptr<HipsRequest> remove(MPI_Request handle);
  /// For each, of a process that makes none any more. Where there have been any, exist() stays true: the
  /// program may still have handles of ours, which the host must not see.
  void remove_all(const std::function<void(HipsRequest&)>& before);

#ifdef HIPS_MPI_ABI_OPENMPI
  /// For Fortran: one of ours to its INTEGER and back.
  [[nodiscard]] static MPI_Fint to_fortran(MPI_Request handle) {
    return FortranHandles::at(range().index_of(handle));
  }
  [[nodiscard]] static bool is_ours_in_fortran(MPI_Fint handle) {
    return exist() && FortranHandles::contains(handle) && FortranHandles::index_of(handle) < kMost;
  }
  [[nodiscard]] static MPI_Request from_fortran(MPI_Fint handle) {
    return range().at(FortranHandles::index_of(handle));
  }
#else
  /// Fortran's handles are those of C.
  [[nodiscard]] static bool is_ours_in_fortran(MPI_Fint handle) {
    return exist() && is_ours(handle);
  }
#endif

 private:
  using Entry = std::atomic<HipsRequest*>;

  static RequestHandles<MPI_Request> range() {
    return make_range<MPI_Request>();
  }
  template <typename Handle>
  static RequestHandles<Handle> make_range() {
    if constexpr (std::is_pointer_v<Handle>)
      return {reinterpret_cast<std::uintptr_t>(s_entries.data()), sizeof(Entry), kMost};
    else
      return {RequestHandles<Handle>::kFirstInt, 1, kMost};
  }

  // Zeros, and costs no memory before it is used.
  static constinit inline std::array<Entry, kMost> s_entries{};
  static constinit inline std::atomic<int> s_num{0};

  std::mutex mutex_;
  std::vector<int> free_;  ///< indices that have been used and are free again
  int num_used_ = 0;       ///< indices that have ever been used
};

}  // namespace hips::mpi

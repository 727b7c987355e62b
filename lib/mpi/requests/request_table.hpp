#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/mpi/native/abi.hpp"
#include "lib/mpi/requests/mpi_request.hpp"
#include "lib/mpi/requests/request_handle.hpp"

namespace hips::mpi {

/// All requests of this process that HiPS executes, by handle.
///
/// Every MPI_Wait and MPI_Test of the program queries it, mostly with requests of native MPI. That costs one load
/// while HiPS has no request, else one comparison for each handle.
///
/// Threads  any; one request is used by one thread at a time, as in MPI.
class RequestTable {
 public:
  static constexpr int kMost = 1 << 18;

  static RequestTable& process();

  /// True if there is a request of HiPS. Also valid under an MPI of another ABI; it reads no handle.
  [[nodiscard]] static bool any() { return s_num.load(std::memory_order_relaxed) > 0; }
  [[nodiscard]] static bool is_ours(MPI_Request handle) { return range().contains(handle); }
  /// True if any of these is a request of HiPS.
  [[nodiscard]] static bool any_of(int count, const MPI_Request* handles) {
    if (!any() || handles == nullptr) return false;
    for (int i = 0; i < count; ++i)
      if (is_ours(handles[i])) return true;
    return false;
  }

  /// Stores a request and sets its handle; false if the table is full.
  bool add(std::unique_ptr<MpiRequest> request, MPI_Request& handle);
  /// Null if the handle, which is ours, has no request any more.
  [[nodiscard]] MpiRequest* find(MPI_Request handle) const;
  /// Removes and returns the request of the handle.
  std::unique_ptr<MpiRequest> remove(MPI_Request handle);
  /// Calls `before` for each request and removes it, in a process that makes no more. any() stays true if there
  /// was one: the program may still have handles of ours, which native MPI must not see.
  void remove_all(const std::function<void(MpiRequest&)>& before);

#ifdef HIPS_MPI_ABI_OPENMPI
  /// For Fortran: a handle of ours to its INTEGER and back.
  [[nodiscard]] static MPI_Fint to_fortran(MPI_Request handle) {
    return FortranHandles::at(range().index_of(handle));
  }
  [[nodiscard]] static bool is_ours_in_fortran(MPI_Fint handle) {
    return any() && FortranHandles::contains(handle) && FortranHandles::index_of(handle) < kMost;
  }
  [[nodiscard]] static MPI_Request from_fortran(MPI_Fint handle) {
    return range().at(FortranHandles::index_of(handle));
  }
#else
  /// Fortran's handles are those of C.
  [[nodiscard]] static bool is_ours_in_fortran(MPI_Fint handle) {
    return any() && is_ours(handle);
  }
#endif

 private:
  using Entry = std::atomic<MpiRequest*>;

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

  // Zeros, which cost no memory before they are used.
  static constinit inline std::array<Entry, kMost> s_entries{};
  static constinit inline std::atomic<int> s_num{0};

  std::mutex mutex_;
  std::vector<int> free_;  ///< indices that have been used and are free again
  int num_used_ = 0;       ///< indices that have ever been used
};

}  // namespace hips::mpi

#include "lib/mpi/requests/request_table.hpp"

namespace hips::mpi {

RequestTable& RequestTable::process() {
  // Never destroyed: programs also call MPI_Finalize from exit handlers.
  static RequestTable& instance = *new RequestTable;
  return instance;
}

bool RequestTable::add(std::unique_ptr<MpiRequest> request, MPI_Request& handle) {
  const std::lock_guard lock(mutex_);
  int index = num_used_;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else if (num_used_ < kMost) {
    // So that remove() never allocates.
    free_.reserve(static_cast<std::size_t>(num_used_) + 1);
    ++num_used_;
  } else {
    return false;
  }
  s_entries[static_cast<std::size_t>(index)].store(request.release(), std::memory_order_release);
  s_num.fetch_add(1, std::memory_order_relaxed);
  handle = range().at(index);
  return true;
}

MpiRequest* RequestTable::find(MPI_Request handle) const {
  return s_entries[static_cast<std::size_t>(range().index_of(handle))].load(std::memory_order_acquire);
}

std::unique_ptr<MpiRequest> RequestTable::remove(MPI_Request handle) {
  const int index = range().index_of(handle);
  std::unique_ptr<MpiRequest> request(
      s_entries[static_cast<std::size_t>(index)].exchange(nullptr, std::memory_order_acq_rel));
  if (!request) return request;
  const std::lock_guard lock(mutex_);
  free_.push_back(index);
  s_num.fetch_sub(1, std::memory_order_relaxed);
  return request;
}

void RequestTable::remove_all(const std::function<void(MpiRequest&)>& before) {
  for (int index = 0; index < num_used_; ++index) {
    MpiRequest* const request = s_entries[static_cast<std::size_t>(index)].load(std::memory_order_acquire);
    if (request == nullptr) continue;
    before(*request);
    remove(range().at(index));
  }
  if (num_used_ > 0) s_num.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace hips::mpi

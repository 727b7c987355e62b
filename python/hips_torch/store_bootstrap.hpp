#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <hips/hips.h>

#include "python/hips_torch/torch_api.hpp"

namespace hips::torch_backend {

/// How the ranks of a process group find each other: allgathers through the group's Store.
class StoreBootstrap {
 public:
  StoreBootstrap(c10::intrusive_ptr<c10d::Store> store, int rank, int size);

  /// Used while hips_comm_create() runs, and as long as this lives.
  [[nodiscard]] hips_bootstrap_t callbacks();

 private:
  static int allgather(void* context, const void* send, void* receive, std::size_t bytes) noexcept;
  void gather(const std::uint8_t* send, std::uint8_t* receive, std::size_t bytes);
  /// Looks again and again: other threads cannot use a TCPStore while one waits in it.
  void wait_for(const std::string& key);
  [[nodiscard]] std::string key(std::uint64_t round, int rank) const;

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_, size_;
  std::uint64_t round_ = 0;
};

}  // namespace hips::torch_backend

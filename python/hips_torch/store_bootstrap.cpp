#include "python/hips_torch/store_bootstrap.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

namespace hips::torch_backend {

StoreBootstrap::StoreBootstrap(c10::intrusive_ptr<c10d::Store> store, int rank, int size)
    : store_(std::move(store)), rank_(rank), size_(size) {}

hips_bootstrap_t StoreBootstrap::callbacks() {
  hips_bootstrap_t callbacks{};
  callbacks.struct_size = sizeof callbacks;
  callbacks.rank = rank_;
  callbacks.size = size_;
  callbacks.allgather = allgather;
  callbacks.context = this;
  return callbacks;
}

int StoreBootstrap::allgather(void* context, const void* send, void* receive, std::size_t bytes) noexcept {
  try {
    static_cast<StoreBootstrap*>(context)->gather(static_cast<const std::uint8_t*>(send), static_cast<std::uint8_t*>(receive),
                                                  bytes);
    return 0;
  } catch (const std::exception&) {
    return 1;  // hips_comm_create() then says that the exchange has failed
  }
}

std::string StoreBootstrap::key(std::uint64_t round, int rank) const {
  return "hips/" + std::to_string(round) + "/" + std::to_string(rank);
}

void StoreBootstrap::wait_for(const std::string& key) {
  constexpr std::chrono::microseconds kShortest{50}, kLongest{5000};
  const auto end = std::chrono::steady_clock::now() + store_->getTimeout();
  for (auto nap = kShortest; !store_->check({key}); nap = std::min(2 * nap, kLongest)) {
    if (std::chrono::steady_clock::now() >= end) throw std::runtime_error("the key " + key + " is missing");
    std::this_thread::sleep_for(nap);
  }
}

void StoreBootstrap::gather(const std::uint8_t* send, std::uint8_t* receive, std::size_t bytes) {
  store_->set(key(round_, rank_), std::vector<std::uint8_t>(send, send + bytes));
  for (int rank = 0; rank < size_; ++rank) {
    wait_for(key(round_, rank));
    const std::vector<std::uint8_t> value = store_->get(key(round_, rank));
    if (value.size() != bytes) throw std::runtime_error("ranks exchanged different numbers of bytes");
    std::copy(value.begin(), value.end(), receive + bytes * static_cast<std::size_t>(rank));
  }
  // All ranks are in this round, so none reads the last one any more.
  if (round_ > 0) store_->deleteKey(key(round_ - 1, rank_));
  ++round_;
}

}  // namespace hips::torch_backend

#include "lib/exec/output_loan.hpp"

#include <algorithm>

namespace hips::exec {

const transport::RemoteRegion* OutputLoan::on(transport::Transport& transport, std::byte* address,
                                              std::size_t bytes) {
  const auto lent = std::find_if(lent_.begin(), lent_.end(),
                                 [&](const auto& loan) { return loan.transport == &transport; });
  if (lent != lent_.end()) return &lent->region.remote;
  auto region = transport.register_memory({.address = address, .bytes = bytes});
  if (!region) return nullptr;
  return &lent_.emplace_back(OnTransport{&transport, *region}).region.remote;
}

void OutputLoan::end() {
  for (const OnTransport& loan : lent_) loan.transport->deregister(loan.region.local);
  lent_.clear();
}

}  // namespace hips::exec

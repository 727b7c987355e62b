#include "lib/exec/temporary_registration.hpp"

#include <algorithm>

namespace hips::exec {

const transport::RemoteRegion* TemporaryRegistration::on(transport::Transport& transport, std::byte* address,
                                                         std::size_t bytes) {
  const auto found = std::find_if(registered_.begin(), registered_.end(),
                                  [&](const Entry& entry) { return entry.transport == &transport; });
  if (found != registered_.end()) return &found->region.remote;
  auto region = transport.register_memory({.address = address, .bytes = bytes});
  if (!region) return nullptr;
  return &registered_.emplace_back(Entry{&transport, *region}).region.remote;
}

void TemporaryRegistration::end() {
  for (const Entry& entry : registered_) entry.transport->deregister(entry.region.local);
  registered_.clear();
}

}  // namespace hips::exec

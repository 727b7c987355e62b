#include "lib/exec/user_regions.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/log.hpp"

namespace hips::exec {

UserRegions::~UserRegions() {
  for (auto& [id, region] : regions_) deregister(*region);
  for (auto& region : leaving_) deregister(*region);
}

UserRegion& UserRegions::of(const UserRange& range) {
  // forget() needs no memory.
  leaving_.reserve(num_regions() + 1);
  auto& region = regions_[range.id];
  if (region == nullptr) region = std::make_unique<UserRegion>();
  return *region;
}

void UserRegions::register_on(UserRegion& region, const UserRange& range, std::size_t port,
                              transport::Transport& transport) {
  if (port >= region.by_port.size()) region.by_port.resize(port + 1);
  UserRegion::OnPort& here = region.by_port[port];
  if (here.state != UserRegion::OnPort::State::kUntried) return;
  auto registered = transport.register_memory({.address = range.address, .bytes = range.bytes});
  here.transport = &transport;
  if (registered) {
    here.state = UserRegion::OnPort::State::kRegistered;
    here.region = *registered;
    return;
  }
  here.state = UserRegion::OnPort::State::kRefused;
  log_refusal(range, registered.error());
}

void UserRegions::log_refusal(const UserRange& range, const Status& status) {
  const auto level = warned_ ? log::LogLevel::kInfo : log::LogLevel::kWarn;
  warned_ = true;
  if (log::passes(log::Subsystem::kTransport, level))
    log::write(log::Subsystem::kTransport, level,
               fmt::format("{} bytes of registered memory go through staging instead: {}", range.bytes,
                           status.message));
}

const transport::RemoteRegion* UserRegions::grant_on(UserRegion& region, const UserRange& range,
                                                     std::size_t port, transport::Transport& transport) {
  if (port >= region.by_port.size()) region.by_port.resize(port + 1);
  UserRegion::OnPort& here = region.by_port[port];
  if (here.grant_state == UserRegion::OnPort::State::kUntried) {
    here.transport = &transport;
    auto registered = transport.register_memory({.address = range.address, .bytes = range.bytes});
    here.grant_state =
        registered ? UserRegion::OnPort::State::kRegistered : UserRegion::OnPort::State::kRefused;
    if (registered) {
      here.grant = *registered;
    } else {
      log_refusal(range, registered.error());
    }
  }
  return here.grant_state == UserRegion::OnPort::State::kRegistered ? &here.grant.remote : nullptr;
}

void UserRegions::revoke(UserRegion& region) {
  for (UserRegion::OnPort& here : region.by_port) {
    if (here.grant_state != UserRegion::OnPort::State::kRegistered) continue;
    here.transport->deregister(here.grant.local);
    here.grant_state = UserRegion::OnPort::State::kUntried;
  }
}

void UserRegions::forget(std::uint64_t range) {
  const auto at = regions_.find(range);
  if (at == regions_.end()) return;
  auto region = std::move(at->second);
  regions_.erase(at);
  revoke(*region);
  if (region->posts > 0) {
    region->forgotten = true;
    leaving_.push_back(std::move(region));
    return;
  }
  deregister(*region);
}

void UserRegions::posted_done(UserRegion& region) {
  if (--region.posts > 0 || !region.forgotten) return;
  deregister(region);
  std::erase_if(leaving_, [&](const auto& leaving) { return leaving.get() == &region; });
}

void UserRegions::deregister(UserRegion& region) {
  revoke(region);
  for (UserRegion::OnPort& here : region.by_port) {
    if (here.state == UserRegion::OnPort::State::kRegistered) here.transport->deregister(here.region.local);
  }
}

}  // namespace hips::exec

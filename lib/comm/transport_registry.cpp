#include "lib/comm/transport_registry.hpp"

#include <array>
#include <string>

#include <fmt/format.h>

#include "transports/shm/shm.hpp"

namespace hips::comm {
namespace {

bool same_host(const ProcessInfo& a, const ProcessInfo& b) {
  return a.host_key == b.host_key;
}

Result<std::unique_ptr<transport::Transport>> make_shm() {
  return shm::create({});
}

constexpr std::array kTransports{
    TransportEntry{"shm", "shared memory between processes of one host", same_host, make_shm},
};

}  // namespace

std::span<const TransportEntry> transport_entries() {
  return kTransports;
}

const TransportEntry* transport_between(std::string_view choice, const ProcessInfo& a, const ProcessInfo& b) {
  for (const TransportEntry& entry : kTransports)
    if ((choice == "auto" || choice == entry.name) && entry.reaches(a, b)) return &entry;
  return nullptr;
}

Status check_transport_choice(std::string_view choice) {
  std::string names = "auto";
  for (const TransportEntry& entry : kTransports) {
    if (choice == entry.name) return Status::success();
    names += fmt::format(", {}", entry.name);
  }
  if (choice == "auto") return Status::success();
  return Status::error(Code::kInvalidArgument,
                       fmt::format("HIPS_TRANSPORT=\"{}\" is wrong: give one of {}", choice, names));
}

}  // namespace hips::comm

#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/lab/guest/guests.hpp"
#include "tools/lab/network/network.hpp"
#include "tools/lab/network/wiring.hpp"

namespace hips::lab {

/// Counters of a guest's devices: device, then name, as in /sys/class/infiniband/rxe0/ports/1/hw_counters.
using DeviceCounters = std::map<std::string, std::map<std::string, std::int64_t>>;

/// All counters of a lab at one moment.
struct Counters {
  std::map<std::string, InterfaceCounters> interfaces;
  std::vector<DeviceCounters> guests;
  std::vector<std::map<std::string, std::int64_t>> drops;  ///< by guest and its interface: by its queue
  std::vector<bool> up;                                    ///< by guest: it answered
};

/// Reads all counters of the lab. A guest that does not answer in time has none.
Result<Counters> read_counters(Guests& guests);

/// What was counted between two moments, as JSON.
///
/// Shapes   {"topology", "servers": [{"server", "up", "nics": [{"nic", "device", "ip", "mac", "sent_bytes",
///          "received_bytes", "sent_packets", "received_packets", "dropped_packets"}], "devices": {"rxe0":
///          {counter: n}}}], "trunks": [{"from", "to", "bytes", "packets", "dropped_packets"}]}. "Sent" and
///          "received" are the guest's; in the lab of one guest there are no NICs to count at. Dropped are
///          packets in both directions, by interfaces and by the queues of --rate, --loss and --delay. A
///          guest that went down has "up": false and no devices; servers that are namespaces have none, and
///          their NICs no "device".
std::string counters_json(const std::string& topology, const Wiring& wiring, const Counters& before,
                          const Counters& after);

}  // namespace hips::lab

#pragma once

#include <cstdint>
#include <string>

#include "lib/base/result.hpp"

namespace hips::lab {

/// The bucket of a lab of namespaces, whose rates are higher than an emulator's.
inline constexpr std::int64_t kNamespaceBucketBytes = std::int64_t{256} << 10;

/// A jumbo frame of a rail.
inline constexpr std::int64_t kLeastQueueBytes = 9018;

/// What is done to the packets of every NIC, in both directions.
struct Shaping {
  std::string rate{};   ///< of one direction, as tc writes it: "4mbit"; empty: as fast as it goes
  std::string loss{};   ///< of what a server sends: "1%"; empty: none
  std::string delay{};  ///< of what a server sends, one way: "2ms"; empty: none
  std::int64_t bucket_bytes = std::int64_t{64}
                              << 10;  ///< sent at once after a pause; holds several jumbo frames
  std::int64_t queue_bytes = std::int64_t{4} << 20;
};

/// Errors   kInvalidArgument: no rate, percentage, time or queue that tc would take, with one that it does.
Status check_shaping(const Shaping& shaping);

/// The token bucket of a rate, as tc takes it.
std::string bucket_of(const Shaping& shaping);

/// Lines for `tc -batch` that shape what leaves an interface; `sends` where it is a server's own end, which alone loses
/// and delays packets. A token bucket delays packets and drops none as
/// long as the queue is deep enough: rxe answers a drop by sending everything since then again.
std::string shaping_commands(const Shaping& shaping, const std::string& interface, bool sends);

}  // namespace hips::lab

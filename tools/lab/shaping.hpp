#pragma once

#include <cstdint>
#include <string>

#include "lib/base/result.hpp"

namespace hips::lab {

/// What is done to the packets of every NIC, in both directions.
struct Shaping {
  std::string rate;  ///< of one direction, as tc writes it: "4mbit"; empty: as fast as it goes
  std::string loss;  ///< of what a guest sends: "1%"; empty: none
  std::int64_t queue_bytes = std::int64_t{4} << 20;
};

/// Errors   kInvalidArgument: no rate or no percentage that tc would take, with one that it does.
Status check_shaping(const Shaping& shaping);

/// Lines for `tc -batch` that shape what leaves an interface. A token bucket delays packets and drops none as
/// long as the queue is deep enough: rxe answers a drop by sending everything since then again.
std::string shaping_commands(const Shaping& shaping, const std::string& interface, bool with_loss);

}  // namespace hips::lab

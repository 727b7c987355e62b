#include "tools/lab/network/shaping.hpp"

#include <regex>

#include <fmt/format.h>

namespace hips::lab {

Status check_shaping(const Shaping& shaping) {
  static const std::regex kRate("[1-9][0-9]{0,5}(\\.[0-9]+)?(kbit|mbit|gbit)");
  static const std::regex kDelay("[0-9]{1,6}(\\.[0-9]+)?(us|ms|s)");
  static const std::regex kLoss("([0-9]|[1-9][0-9])(\\.[0-9]+)?%");
  if (!shaping.rate.empty() && !std::regex_match(shaping.rate, kRate)) {
    return Status::error(
        Code::kInvalidArgument,
        fmt::format("lab: \"{}\" is no rate; write --rate 4mbit (kbit, mbit or gbit)", shaping.rate));
  }
  if (!shaping.loss.empty() && !std::regex_match(shaping.loss, kLoss)) {
    return Status::error(Code::kInvalidArgument,
                         fmt::format("lab: \"{}\" is no loss below 100%; write --loss 1%", shaping.loss));
  }
  if (!shaping.delay.empty() && !std::regex_match(shaping.delay, kDelay)) {
    return Status::error(
        Code::kInvalidArgument,
        fmt::format("lab: \"{}\" is no delay; write --delay 2ms (us, ms or s)", shaping.delay));
  }
  // Below one frame of the rails nothing would pass; tc stores 32 bits.
  if (shaping.queue_bytes < kLeastQueueBytes || shaping.queue_bytes > UINT32_MAX) {
    return Status::error(
        Code::kInvalidArgument,
        fmt::format("lab: a queue of {} bytes is not possible (valid: {} to {}); write --queue 4M",
                    shaping.queue_bytes, kLeastQueueBytes, UINT32_MAX));
  }
  return Status::success();
}

std::string bucket_of(const Shaping& shaping) {
  return fmt::format("tbf rate {} burst {} limit {}", shaping.rate, shaping.bucket_bytes,
                     shaping.queue_bytes);
}

std::string shaping_commands(const Shaping& shaping, const std::string& interface, bool sends) {
  const std::string bucket = bucket_of(shaping);
  if (!sends || (shaping.loss.empty() && shaping.delay.empty())) {
    return shaping.rate.empty() ? "" : fmt::format("qdisc add dev {} root {}\n", interface, bucket);
  }
  std::string commands = fmt::format("qdisc add dev {} root handle 1: netem limit 100000", interface);
  if (!shaping.loss.empty()) commands += " loss " + shaping.loss;
  if (!shaping.delay.empty()) commands += " delay " + shaping.delay;
  commands += '\n';
  if (!shaping.rate.empty())
    commands += fmt::format("qdisc add dev {} parent 1:1 handle 2: {}\n", interface, bucket);
  return commands;
}

}  // namespace hips::lab

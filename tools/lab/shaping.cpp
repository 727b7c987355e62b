#include "tools/lab/shaping.hpp"

#include <regex>

#include <fmt/format.h>

namespace hips::lab {

Status check_shaping(const Shaping& shaping) {
  static const std::regex kRate("[1-9][0-9]{0,5}(\\.[0-9]+)?(kbit|mbit|gbit)");
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
  return Status::success();
}

std::string shaping_commands(const Shaping& shaping, const std::string& interface, bool with_loss) {
  // A jumbo frame has to fit into the bucket; 64 KiB hold several.
  const auto bucket = fmt::format("tbf rate {} burst 64k limit {}", shaping.rate, shaping.queue_bytes);
  if (!with_loss || shaping.loss.empty()) {
    return shaping.rate.empty() ? "" : fmt::format("qdisc add dev {} root {}\n", interface, bucket);
  }
  std::string commands =
      fmt::format("qdisc add dev {} root handle 1: netem loss {} limit 100000\n", interface, shaping.loss);
  if (!shaping.rate.empty())
    commands += fmt::format("qdisc add dev {} parent 1:1 handle 2: {}\n", interface, bucket);
  return commands;
}

}  // namespace hips::lab

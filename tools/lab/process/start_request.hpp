#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::lab {

/// A program for an agent to start. Its standard input is empty.
struct StartRequest {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  ///< added to the agent's own
  std::string folder;                      ///< where it starts; "/" where empty or missing in the guest
  bool shared = false;  ///< `env` also becomes the agent's own: what is started later inherits it
};

std::string to_json(const StartRequest& request);

/// Errors   kInvalidArgument: not what to_json() makes.
Result<StartRequest> parse_start_request(std::string_view json);

}  // namespace hips::lab

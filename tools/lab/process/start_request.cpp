#include "tools/lab/process/start_request.hpp"

#include <nlohmann/json.hpp>

namespace hips::lab {

std::string to_json(const StartRequest& request) {
  const nlohmann::json json = {
      {"argv", request.argv}, {"env", request.env}, {"folder", request.folder}, {"shared", request.shared}};
  // Arguments and variables are bytes, and not always UTF-8; what is not is replaced.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<StartRequest> parse_start_request(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    StartRequest request;
    request.argv = json.at("argv").get<std::vector<std::string>>();
    request.env = json.at("env").get<std::map<std::string, std::string>>();
    request.folder = json.at("folder").get<std::string>();
    request.shared = json.at("shared").get<bool>();
    if (request.argv.empty()) return fail(Code::kInvalidArgument, "lab: a program to start has no name");
    return request;
  } catch (const nlohmann::json::exception& error) {
    return fail(Code::kInvalidArgument,
                std::string("lab: a program to start cannot be read: ") + error.what());
  }
}

}  // namespace hips::lab

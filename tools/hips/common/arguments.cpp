#include "tools/hips/common/arguments.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/common/unknown_argument.hpp"

namespace hips::cli {
namespace {

/// `app` and the nested subcommands that were typed.
std::vector<const CLI::App*> typed(const CLI::App& app) {
  std::vector<const CLI::App*> path{&app};
  for (auto next = app.get_subcommands(); !next.empty(); next = path.back()->get_subcommands())
    path.push_back(next.front());
  return path;
}

/// The public subcommands of `app`: those with a group in the help.
std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!child->get_name().empty() && !child->get_group().empty()) names.push_back(child->get_name());
  }
  return names;
}

/// The message for an unknown or missing command or argument; "" for other errors.
std::string command_error(const CLI::App& app, const CLI::Error& error) {
  const CLI::App& last = *typed(app).back();
  const bool missing = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  const bool unknown = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  if (!missing && !unknown) return "";
  const std::vector<std::string> commands = commands_of(last);
  const std::vector<std::string> rest = last.remaining();
  if (!commands.empty() && !rest.empty() && !rest.front().starts_with('-'))
    return fmt::format("unknown command \"{}\"; expected one of {}", rest.front(), fmt::join(commands, ", "));
  if (!commands.empty() && missing && rest.empty())
    return fmt::format("missing command; expected one of {}", fmt::join(commands, ", "));
  return unknown_argument(app);
}

}  // namespace

std::string command_name(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : typed(app)) names.push_back(command->get_name());
  names.erase(names.begin());
  return fmt::format("{}", fmt::join(names, " "));
}

void remove_separator(const CLI::App& app, std::vector<char*>& arguments) {
  if (arguments.size() < 2 || std::string_view(arguments[1]) != "run") return;
  const CLI::App& command = *app.get_subcommand("run");
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (word == "--") {
      arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
    if (!word.starts_with('-')) return;  // the program; a "--" behind it is the program's
    const CLI::Option* const option = command.get_option_no_throw(std::string(word));
    if (option != nullptr && option->get_items_expected_min() > 0) ++i;  // its value
  }
}

std::vector<std::string> take_program(std::vector<char*>& arguments) {
  const auto word = [&](std::size_t i) { return std::string_view(i < arguments.size() ? arguments[i] : ""); };
  if (word(1) != "lab" || (word(2) != "run" && word(2) != "exec")) return {};
  const auto separator = std::find_if(arguments.begin(), arguments.end(),
                                      [](const char* one) { return std::string_view(one) == "--"; });
  if (separator == arguments.end()) return {};
  std::vector<std::string> program(separator + 1, arguments.end());
  arguments.erase(separator, arguments.end());
  return program;
}

std::string argument_error(const CLI::App* app, const CLI::Error& error) {
  const std::string command = command_name(*app);
  std::string text = command_error(*app, error);
  if (text.empty()) text = error.what();
  return fmt::format("hips: {}{}{}\nRun hips{}{} --help for more information.\n", command,
                     command.empty() ? "" : ": ", text, command.empty() ? "" : " ", command);
}

}  // namespace hips::cli

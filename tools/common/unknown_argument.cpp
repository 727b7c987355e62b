#include "tools/common/unknown_argument.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "lib/base/edit_distance.hpp"

namespace hips::cli {
namespace {

/// The option without a value that is attached to it: "--bytes=64M" and "-b64M" are "--bytes" and "-b".
std::string_view option_of(std::string_view argument) {
  if (argument.starts_with("--")) return argument.substr(0, argument.find('='));
  return argument.substr(0, 2);
}

std::vector<std::string> long_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// The known option that is most similar to an unknown one; "" if none is similar.
std::string nearest_option(const CLI::App& app, std::string_view unknown) {
  if (!unknown.starts_with("--")) return "";
  std::string best;
  std::size_t least = unknown.size() / 2;  // so that half of the letters agree
  for (const std::string& name : long_options(app)) {
    const bool is_part = unknown.size() > 5 && name.find(unknown.substr(2)) != std::string::npos;
    const std::size_t distance = is_part ? 1 : edit_distance(unknown, name);
    if (distance >= least) continue;
    least = distance;
    best = name;
  }
  return best;
}

const CLI::App& last_typed(const CLI::App& app) {
  const auto typed = app.get_subcommands();
  return typed.empty() ? app : last_typed(*typed.front());
}

}  // namespace

std::string unknown_argument(const CLI::App& app, std::span<const RefusedOption> refused,
                             std::string_view origin) {
  const std::vector<std::string> rest = app.remaining(true);
  if (rest.empty()) return "";
  const std::string& first = rest.front();
  if (!first.starts_with('-') || first == "-") return fmt::format("unexpected argument \"{}\"", first);
  const std::string_view name = option_of(first);
  const auto known_elsewhere = std::ranges::find_if(refused, [&](const RefusedOption& option) {
    return name == option.long_name || (name == option.short_name && !option.short_name.empty());
  });
  if (known_elsewhere != refused.end()) {
    const std::string both =
        known_elsewhere->short_name.empty()
            ? std::string(known_elsewhere->long_name)
            : fmt::format("{} ({})", known_elsewhere->short_name, known_elsewhere->long_name);
    return fmt::format("option {} of {} is unsupported: {}", both, origin, known_elsewhere->why);
  }
  const std::string nearest = nearest_option(last_typed(app), name);
  if (nearest.empty()) return fmt::format("unknown option \"{}\"", name);
  return fmt::format("unknown option \"{}\"; did you mean {}?", name, nearest);
}

}  // namespace hips::cli

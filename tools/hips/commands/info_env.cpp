#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/base/config/config_file.hpp"
#include "tools/hips/commands/info.hpp"

namespace hips::cli {
namespace {

/// A variable as this process sees it.
struct VariableRow {
  const ConfigVariable* variable = nullptr;
  std::string value, origin;  ///< the default and "default" if it is not set
  std::string expected;       ///< if the value is invalid, the valid values
};

struct Variables {
  std::vector<VariableRow> rows;
  std::vector<std::string> problems;  ///< unreadable files and unknown names
};

Variables read_variables() {
  const Environment environment = process_environment();
  const GatheredSettings gathered = gather_settings(environment, config_files(environment));
  std::map<std::string_view, const Setting*> by_name;
  for (const Setting& setting : gathered.settings) by_name.emplace(setting.name, &setting);
  Variables variables;
  for (const ConfigVariable& variable : config_variables()) {
    VariableRow row{&variable, std::string(variable.default_value), "default", ""};
    if (const auto found = by_name.find(variable.name); found != by_name.end()) {
      row.value = found->second->value;
      row.origin = found->second->origin;
      Config scratch;
      if (variable.set != nullptr) row.expected = variable.set(scratch, row.value);
    }
    variables.rows.push_back(std::move(row));
  }
  if (!gathered.status.ok()) variables.problems.push_back(gathered.status.message);
  const LoadedConfig loaded = load_config(gathered.settings);
  variables.problems.insert(variables.problems.end(), loaded.warnings.begin(), loaded.warnings.end());
  return variables;
}

void print_json(const Variables& variables) {
  nlohmann::ordered_json json = {{"variables", nlohmann::ordered_json::array()},
                                 {"problems", variables.problems}};
  for (const VariableRow& row : variables.rows) {
    nlohmann::ordered_json each = {{"name", row.variable->name},     {"value", row.value},
                                   {"origin", row.origin},           {"default", row.variable->default_value},
                                   {"values", row.variable->values}, {"meaning", row.variable->doc}};
    if (!row.expected.empty()) each["wrong"] = "give " + row.expected;
    json["variables"].push_back(std::move(each));
  }
  // A value need not be UTF-8.
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace

void print_variables(bool with_meaning) {
  const Variables variables = read_variables();
  const auto text = [](std::string_view value) { return value.empty() ? std::string_view("-") : value; };
  std::size_t name_width = 0, value_width = 0;
  for (const VariableRow& row : variables.rows) {
    name_width = std::max(name_width, row.variable->name.size());
    value_width = std::max(value_width, row.value.size());
  }
  fmt::print("  {:<{}}  {:<{}}  {}\n", "variable", name_width, "value", value_width, "from");
  for (const VariableRow& row : variables.rows) {
    const bool set = row.origin != "default";
    fmt::print("{} {:<{}}  {:<{}}  {}{}\n", set ? "*" : " ", row.variable->name, name_width, text(row.value),
               value_width, row.origin,
               set ? fmt::format("; default {}", text(row.variable->default_value)) : "");
    if (with_meaning) fmt::print("      {}: {}\n", row.variable->values, row.variable->doc);
    if (!row.expected.empty()) fmt::print("      invalid; give {}\n", row.expected);
  }
  for (const std::string& problem : variables.problems) fmt::print("\n! {}\n", problem);
  fmt::print(
      "\nThe environment overrides ~/.hips.conf, which overrides /etc/hips.conf. Both files have lines such "
      "as "
      "HIPS_LOG=info.\n");
}

void add_info_env(CLI::App& info) {
  struct Arguments {
    bool json = false, meaning = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* const env =
      info.add_subcommand("env", "List every variable: its value, the origin of the value, its default");
  env->add_flag("-v,--verbose", arguments->meaning, "Explain each variable, too");
  env->add_flag("--json", arguments->json, "Print JSON");
  env->callback(
      [arguments] { arguments->json ? print_json(read_variables()) : print_variables(arguments->meaning); });
}

}  // namespace hips::cli

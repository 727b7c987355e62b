#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/hips/command.hpp"

// The words come from the command line parser, so that a new option completes without a change here.

namespace hips::cli {
namespace {

/// The words that may follow the subcommands in `path`.
struct Words {
  std::string path;  ///< "", "info", "info select"
  std::vector<std::string> subcommands, options;
  std::vector<std::string> taking_values;  ///< the `options` that take a value
};

void collect(const CLI::App& app, const std::string& path, std::vector<Words>& all) {
  Words words;
  words.path = path;
  for (const CLI::Option* option : app.get_options()) {
    const auto add = [&](const std::string& name) {
      words.options.push_back(name);
      if (option->get_expected_max() > 0 && option->get_type_size() > 0) words.taking_values.push_back(name);
    };
    for (const std::string& name : option->get_lnames()) add("--" + name);
    for (const std::string& name : option->get_snames()) add("-" + name);
  }
  const auto children = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* child : children) {
    // Groups of options have no name, and internal commands no group in the help.
    if (!child->get_name().empty() && !child->get_group().empty())
      words.subcommands.push_back(child->get_name());
  }
  all.push_back(std::move(words));
  for (const CLI::App* child : children) {
    if (child->get_name().empty() || child->get_group().empty()) continue;
    collect(*child, path.empty() ? child->get_name() : path + " " + child->get_name(), all);
  }
}

/// Prints one shell function for all commands. It walks over the typed subcommands, then offers the words
/// that may follow them. Values, and the arguments of the program of `hips run`, complete as the shell does
/// by default.
void print_bash(const std::vector<Words>& all) {
  fmt::print(R"(# bash completion of hips, made by `hips completion bash`: source <(hips completion bash)
_hips() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" path="" i subcommands options values
  for ((i = 1; i <= COMP_CWORD; i++)); do
    subcommands="" options="" values=""
    case "$path" in
)");
  for (const Words& words : all) {
    fmt::print(
        "      \"{}\")\n        subcommands=\"{}\"\n        options=\"{}\"\n        values=\"{}\" ;;\n",
        words.path, fmt::join(words.subcommands, " "), fmt::join(words.options, " "),
        fmt::join(words.taking_values, " "));
  }
  fmt::print(R"(    esac
    if ((i < COMP_CWORD)); then
      if [[ "${{COMP_WORDS[i]}}" == -- ]]; then return; fi
      if [[ " $subcommands " == *" ${{COMP_WORDS[i]}} "* ]]; then path="${{path:+$path }}${{COMP_WORDS[i]}}"; fi
    fi
  done
  if [[ " $values " == *" $before "* ]]; then return; fi
  if [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$subcommands" -- "$word"))
  fi
}}
complete -o bashdefault -o default -F _hips hips
)");
}

}  // namespace

void add_completion(CLI::App& app) {
  CLI::App* const completion =
      app.add_subcommand("completion", "Print the completion script of hips for a shell");
  completion->footer(
      "In this bash:     source <(hips completion bash)\nIn every bash:    hips completion bash > "
      "~/.local/share/bash-completion/completions/hips\nIn zsh, ~/.zshrc: source <(hips completion zsh)");
  completion->require_subcommand(1);
  const auto words = [&app] {
    std::vector<Words> all;
    collect(app, "", all);
    return all;
  };
  completion->add_subcommand("bash", "Completion script for bash")->callback([words] {
    print_bash(words());
  });
  completion->add_subcommand("zsh", "Completion script for zsh, based on bashcompinit")->callback([words] {
    fmt::print("autoload -Uz compinit bashcompinit && compinit && bashcompinit\n");
    print_bash(words());
  });
}

}  // namespace hips::cli

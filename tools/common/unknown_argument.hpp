#pragma once

#include <span>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace hips::cli {

/// An option of a program whose command lines people bring along, and why it has no counterpart here.
struct RefusedOption {
  std::string_view short_name;  ///< "-z", or ""
  std::string_view long_name;   ///< "--blocking"
  std::string_view why;         ///< "has no GPU streams", said of the program
};

/// What is wrong with the first argument that `app` and its subcommands did not recognise: `unknown option
/// "--byte"; did you mean --bytes?`, `unexpected argument "64M"`, or for one of `refused`: `option -z (--blocking)
/// of nccl-tests is unsupported: there are no GPU streams`. "" if all were recognised.
///
/// `origin` names the program that `refused` comes from.
std::string unknown_argument(const CLI::App& app, std::span<const RefusedOption> refused = {},
                             std::string_view origin = {});

}  // namespace hips::cli

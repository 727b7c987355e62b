#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tools/hips/run/interposers.hpp"

namespace hips::cli {

/// Finds a file that belongs to this program: in a build tree at `built`, relative to the folder of the
/// program; when installed at `installed`, relative to the folder of the libraries.
///
/// Example  find_beside("../../lib/mpi/libhips_mpi.so", "libhips_mpi.so")
std::optional<std::string> find_beside(const std::filesystem::path& built,
                                       const std::filesystem::path& installed);

/// The library of an interposer; nullopt if it was not built.
std::optional<std::string> find_library(const Interposer& interposer);

}  // namespace hips::cli

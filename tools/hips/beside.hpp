#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "tools/hips/interposers.hpp"

namespace hips::cli {

/// A file that belongs to this program: in the build tree at `built`, from the folder of the program, or as
/// installed at `installed`, from the folder of the libraries.
///
/// Example  find_beside("../../lib/mpi/libhips_mpi.so", "libhips_mpi.so")
std::optional<std::string> find_beside(const std::filesystem::path& built,
                                       const std::filesystem::path& installed);

/// The library of an interposer; nothing where it was not built.
std::optional<std::string> find_library(const Interposer& interposer);

}  // namespace hips::cli

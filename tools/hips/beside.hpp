#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace hips::cli {

/// A file that belongs to this program: in the build tree at `built`, from the folder of the program, or as
/// installed at `installed`, from the folder of the libraries.
///
/// Example  find_beside("../../lib/mpi/libhips_mpi.so", "libhips_mpi.so")
std::optional<std::string> find_beside(const std::filesystem::path& built,
                                       const std::filesystem::path& installed);

}  // namespace hips::cli

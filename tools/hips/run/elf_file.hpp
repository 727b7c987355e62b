#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hips::cli {

/// What the headers of a program or library tell.
struct ElfFile {
  std::string interpreter{};          ///< its dynamic loader; empty: it is static, or a library
  std::vector<std::string> needed{};  ///< the libraries that it names itself: "libmpi.so.40"
};

/// Reads the headers of a file, some KiB of it; none if it is no ELF file of this machine's byte order, or a broken one.
std::optional<ElfFile> read_elf(const std::string& path);

}  // namespace hips::cli

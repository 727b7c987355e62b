#include "tools/hips/common/beside.hpp"

#include <system_error>

#include <fmt/format.h>

namespace hips::cli {

std::optional<std::string> find_beside(const std::filesystem::path& built,
                                       const std::filesystem::path& installed) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return std::nullopt;
  for (const fs::path& path :
       {self.parent_path() / built, self.parent_path() / HIPS_LIBDIR_FROM_BINDIR / installed}) {
    const fs::path file = fs::weakly_canonical(path, error);
    if (!error && fs::exists(file, error)) return file.string();
  }
  return std::nullopt;
}

std::optional<std::string> find_library(const Interposer& interposer) {
  return find_beside(fmt::format("../../lib/mpi/{}", interposer.library), std::string(interposer.library));
}

}  // namespace hips::cli

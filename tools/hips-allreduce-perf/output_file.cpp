#include "tools/hips-allreduce-perf/output_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "lib/base/result.hpp"
#include "tools/hips-allreduce-perf/group.hpp"

namespace hips::perf {
namespace {

/// The errno of writing a file; 0 if it is possible.
int error_of_writing(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return EISDIR;
  // Files are made new, beside one that is there; what is no file, such as a terminal or a pipe, is written itself.
  const bool is_other =
      std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  return access((is_other ? path : folder).c_str(), is_other ? W_OK : W_OK | X_OK) == 0 ? 0 : errno;
}

}  // namespace

void expect_writable(PerfGroup& group, const std::string& path) {
  const auto error = static_cast<int>(group.sum(group.rank() == 0 ? error_of_writing(path) : 0));
  if (error == 0) return;
  throw Error(
      Status::error(Code::kInvalidArgument, fmt::format("cannot write {}: {}", path, std::strerror(error))));
}

}  // namespace hips::perf

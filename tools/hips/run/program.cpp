#include "tools/hips/run/program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "tools/hips/run/elf_file.hpp"

namespace hips::cli {
namespace {

bool is_regular_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

/// Whether the program gets rights that this process has not: of another user or group, or capabilities.
bool gets_rights(const std::string& path) {
  struct stat info {};
  struct statvfs mount {};
  if (stat(path.c_str(), &info) != 0 || statvfs(path.c_str(), &mount) != 0) return false;
  if ((mount.f_flag & ST_NOSUID) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return false;
  if ((info.st_mode & S_ISUID) != 0 && info.st_uid != geteuid()) return true;
  if ((info.st_mode & S_ISGID) != 0 && (info.st_mode & S_IXGRP) != 0 && info.st_gid != getegid()) return true;
  return geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

/// The output of `loader --list program`: one line for each library, "libmpi.so.40 => /usr/lib/... (0x...)".
std::string list_libraries(const std::string& loader, const std::string& program) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const char* const argv[] = {loader.c_str(), "--list", program.c_str(), nullptr};
  pid_t child = -1;
  const int error = posix_spawn(&child, loader.c_str(), &actions, nullptr, const_cast<char**>(argv), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  if (error == 0) {
    char buffer[4096];
    ssize_t got = 0;
    while ((got = read(ends[0], buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR)) {
      if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  close(ends[0]);
  return text;
}

/// Whether a file contains one of the names by which a program imports functions that load a library or start
/// another program. A shell or Python has them, and may call MPI in that way.
bool can_reach_mpi_later(const std::string& path) {
  using namespace std::string_view_literals;
  constexpr std::array kNames = {"\0dlopen\0"sv,      "\0execve\0"sv,       "\0execv\0"sv,  "\0execvp\0"sv,
                                 "\0execvpe\0"sv,     "\0execl\0"sv,        "\0execlp\0"sv, "\0execle\0"sv,
                                 "\0posix_spawn\0"sv, "\0posix_spawnp\0"sv, "\0system\0"sv, "\0popen\0"sv};
  // The names stand near the beginning of a file of any size, so that it is read by pieces. Each piece begins with
  // the end of the one before, where a name may have begun. memmem() does not stop at each of a program's many NULs.
  constexpr std::size_t kPiece = 1 << 18, kLongest = 16;
  std::ifstream file(path, std::ios::binary);
  std::string text(kLongest + kPiece, '\1');
  while (file.read(text.data() + kLongest, kPiece), file.gcount() > 0) {
    const std::size_t bytes = kLongest + static_cast<std::size_t>(file.gcount());
    const auto is_there = [&](std::string_view name) {
      return memmem(text.data(), bytes, name.data(), name.size()) != nullptr;
    };
    if (std::ranges::any_of(kNames, is_there)) return true;
    std::memmove(text.data(), text.data() + bytes - kLongest, kLongest);
  }
  return false;
}

}  // namespace

Result<std::string> find_program(const std::string& name, std::string_view path_variable) {
  const auto failed = [&](int error, std::string_view why) {
    Status status = Status::error(Code::kInvalidArgument, fmt::format("program \"{}\" {}", name, why));
    status.sys_errno = error;
    return tl::unexpected<Status>(std::move(status));
  };
  if (name.find('/') != std::string::npos) {
    if (!is_regular_file(name)) {
      return access(name.c_str(), F_OK) == 0 ? failed(EACCES, "is not a regular file")
                                             : failed(ENOENT, "does not exist");
    }
    if (access(name.c_str(), X_OK) != 0) return failed(EACCES, "is not executable; run chmod +x on it");
    return name;
  }
  bool seen = false;
  for (std::size_t begin = 0; begin <= path_variable.size();) {
    const std::size_t end = std::min(path_variable.find(':', begin), path_variable.size());
    const std::string_view folder = path_variable.substr(begin, end - begin);
    begin = end + 1;
    const std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (!is_regular_file(candidate)) continue;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    seen = true;
  }
  if (seen) return failed(EACCES, "is in PATH, but not executable; run chmod +x on it");
  return is_regular_file(name) ? failed(ENOENT, fmt::format("is not in PATH; write ./{}", name))
                               : failed(ENOENT, "is not in PATH");
}

MpiAbi abi_of_library(std::string_view soname) {
  if (soname.starts_with("libmpich") || soname.starts_with("libmpifort.so") ||
      soname.starts_with("libmpicxx.so"))
    return MpiAbi::kMpich;
  // The version decides: Open MPI's are 20 (1.7) to 40 (4.x and 5.x), that of MPICH's ABI is 12.
  if (soname.starts_with("libmpi.so.12")) return MpiAbi::kMpich;
  if (soname.starts_with("libmpi.so") || soname.starts_with("libmpi_mpifh.so") ||
      soname.starts_with("libmpi_usempi") || soname.starts_with("libmpi_cxx.so"))
    return MpiAbi::kOpenMpi;
  return MpiAbi::kUnknown;
}

MpiProgram inspect_program(const std::string& path) {
  MpiProgram program;
  program.path = path;
  const std::optional<ElfFile> elf = read_elf(path);
  if (!elf) return program;
  if (elf->interpreter.empty()) {
    program.is_static = true;
    return program;
  }
  program.is_secure = gets_rights(path);
  const auto take = [&](const std::string& library) {
    if (library.starts_with("libhips.so")) program.uses_hips_library = true;
    const MpiAbi abi = abi_of_library(library);
    if (abi == MpiAbi::kUnknown || program.abi != MpiAbi::kUnknown) return;
    program.abi = abi;
    program.mpi_library = library;
  };
  std::ranges::for_each(elf->needed, take);
  if (program.abi != MpiAbi::kUnknown) return program;
  // Libraries of its libraries: the loader takes milliseconds.
  std::istringstream lines(list_libraries(elf->interpreter, path));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    take(name.substr(name.rfind('/') + 1));
  }
  program.makes_no_mpi_calls =
      program.abi == MpiAbi::kUnknown && !program.uses_hips_library && !can_reach_mpi_later(path);
  return program;
}

}  // namespace hips::cli

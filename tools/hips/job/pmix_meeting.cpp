#include "tools/hips/job/pmix_meeting.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "lib/base/result.hpp"
#include "tools/hips/common/beside.hpp"

namespace hips::cli {

void meet_by_pmix(std::string_view command, const std::vector<std::string>& arguments) {
  const auto helper = find_beside("../doctor/hips-meet", "hips/hips-meet");
  if (!helper)
    throw Error(Status::error(
        Code::kUnsupported,
        fmt::format(
            "{0}: this build has no PMIx (libpmix-dev), which mpirun's ranks need to find each other; set "
            "rank 0's address: mpirun -x HIPS_ROOT=node0:18500 hips {0}",
            command)));
  constexpr const char* kTimeoutS = "60";
  const std::string name(command);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<const char*> argv{helper->c_str(), kTimeoutS, name.c_str(), self.c_str()};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  argv.push_back(nullptr);
  execv(argv[0], const_cast<char* const*>(argv.data()));
  throw Error(Status::error(
      Code::kSystem, fmt::format("{}: cannot execute {}: {}", command, *helper, std::strerror(errno))));
}

void end_when_stuck(std::string_view command, int timeout_s, Rank rank) {
  constexpr int kMeetingAndLookingS = 120;
  const int seconds = timeout_s + kMeetingAndLookingS;
  std::thread([seconds, rank, name = std::string(command)] {
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    std::fprintf(stderr,
                 "hips: %s: rank %d is not done after %d s; a device or driver does not respond, see dmesg\n",
                 name.c_str(), rank, seconds);
    _exit(1);
  }).detach();
}

}  // namespace hips::cli

#include "transports/shm/machine.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include <fmt/format.h>

namespace hips::shm {

Machine Machine::current() {
  Machine machine;
  std::ifstream boot_id("/proc/sys/kernel/random/boot_id");
  std::getline(boot_id, machine.boot_id);
  struct stat info {};
  if (stat("/proc/self/ns/pid", &info) == 0) machine.pid_namespace = info.st_ino;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) machine.hostname = name.data();
  return machine;
}

std::string Machine::to_string() const {
  return fmt::format("{}/{}/{}", boot_id, pid_namespace, hostname);
}

}  // namespace hips::shm

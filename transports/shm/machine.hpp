#pragma once

#include <cstdint>
#include <string>

namespace hips::shm {

/// What must be equal for two processes to reach one another's memory through /proc.
struct Machine {
  std::string boot_id;              ///< of the running kernel; "" where it cannot be read
  std::uint64_t pid_namespace = 0;  ///< inode; process numbers mean something only inside it. 0: not readable
  std::string hostname;

  /// The machine this process runs on.
  static Machine current();

  /// One word, without spaces, to compare and to print: "BOOT-ID/4026531836/node07".
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Machine&, const Machine&) = default;
};

}  // namespace hips::shm

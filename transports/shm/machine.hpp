#pragma once

#include <cstdint>
#include <string>

namespace hips::shm {

/// Properties that two processes must share to open each other's memory through /proc.
struct Machine {
  std::string boot_id;              ///< of the running kernel; "" if it cannot be read
  std::uint64_t pid_namespace = 0;  ///< inode; process numbers are valid only inside it. 0: not readable
  std::string hostname;

  /// Those of this process.
  static Machine current();

  /// One word, without spaces, to compare and to print: "BOOT-ID/4026531836/node07".
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Machine&, const Machine&) = default;
};

}  // namespace hips::shm

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hips::doctor {

/// Reads the kernel's small files (/sys, /proc) below a root, which is "/" except in tests.
///
/// Threads  pure reading; any thread.
/// Errors   none: a missing or unreadable file gives an empty result, since drivers differ in the files they
/// have.
class FileTree {
 public:
  explicit FileTree(std::filesystem::path root = "/") : root_(std::move(root)) {}

  /// The first line without its newline; nullopt if there is no such file.
  [[nodiscard]] std::optional<std::string> line(std::string_view path) const;
  /// All lines.
  [[nodiscard]] std::vector<std::string> lines(std::string_view path) const;
  /// The number in a file that holds one whole number.
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view path) const;
  /// The names in a folder, sorted; numbers by value (port 2 before port 10).
  [[nodiscard]] std::vector<std::string> names(std::string_view path) const;
  /// The last part of the target of a symbolic link: "mlx5_core" for .../device/driver.
  [[nodiscard]] std::optional<std::string> link_name(std::string_view path) const;
  [[nodiscard]] bool exists(std::string_view path) const;
  /// Is this the tree of the running system, whose devices can be queried, too?
  [[nodiscard]] bool is_machine() const { return root_ == "/"; }

 private:
  [[nodiscard]] std::filesystem::path at(std::string_view path) const;
  std::filesystem::path root_;
};

/// Parses "12", with or without blanks around it; nullopt for anything else.
std::optional<std::int64_t> parse_whole(std::string_view text);

}  // namespace hips::doctor

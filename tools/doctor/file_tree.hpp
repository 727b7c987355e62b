#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hips::doctor {

/// The kernel's small files (/sys, /proc) below a root, which is "/" outside tests.
///
/// Threads  pure reading; any thread.
/// Errors   none: what is not there, or refuses to be read, is empty. Drivers differ in what they have.
class FileTree {
 public:
  explicit FileTree(std::filesystem::path root = "/") : root_(std::move(root)) {}

  /// The first line without its newline; nothing where there is no such file.
  [[nodiscard]] std::optional<std::string> line(std::string_view path) const;
  /// All lines.
  [[nodiscard]] std::vector<std::string> lines(std::string_view path) const;
  /// A file that holds one whole number.
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view path) const;
  /// Names in a folder, sorted, numbers by their value (port 2 before port 10).
  [[nodiscard]] std::vector<std::string> names(std::string_view path) const;
  /// The last part of what a link points at: "mlx5_core" for .../device/driver.
  [[nodiscard]] std::optional<std::string> link_name(std::string_view path) const;
  [[nodiscard]] bool exists(std::string_view path) const;
  /// Is it the machine's own tree, where devices may be asked, too?
  [[nodiscard]] bool is_machine() const { return root_ == "/"; }

 private:
  [[nodiscard]] std::filesystem::path at(std::string_view path) const;
  std::filesystem::path root_;
};

/// "12", with blanks around it; nothing for anything else.
std::optional<std::int64_t> parse_whole(std::string_view text);

}  // namespace hips::doctor

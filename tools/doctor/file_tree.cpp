#include "tools/doctor/file_tree.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <system_error>

namespace hips::doctor {

namespace fs = std::filesystem;

std::optional<std::int64_t> parse_whole(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

fs::path FileTree::at(std::string_view path) const {
  while (!path.empty() && path.front() == '/') path.remove_prefix(1);
  return root_ / path;
}

std::optional<std::string> FileTree::line(std::string_view path) const {
  std::ifstream file(at(path));
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  return text;
}

std::vector<std::string> FileTree::lines(std::string_view path) const {
  std::ifstream file(at(path));
  std::vector<std::string> all;
  for (std::string text; std::getline(file, text);) all.push_back(text);
  return all;
}

std::optional<std::int64_t> FileTree::number(std::string_view path) const {
  const auto text = line(path);
  return text ? parse_whole(*text) : std::nullopt;
}

std::vector<std::string> FileTree::names(std::string_view path) const {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(at(path), error), end; !error && it != end; it.increment(error))
    found.push_back(it->path().filename().string());
  std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    const auto as_number = [](const std::string& name) { return parse_whole(name).value_or(-1); };
    return std::pair(as_number(a), std::string_view(a)) < std::pair(as_number(b), std::string_view(b));
  });
  return found;
}

std::optional<std::string> FileTree::link_name(std::string_view path) const {
  std::error_code error;
  const fs::path target = fs::read_symlink(at(path), error);
  if (error) return std::nullopt;
  return target.filename().string();
}

bool FileTree::exists(std::string_view path) const {
  std::error_code error;
  return fs::exists(at(path), error);
}

}  // namespace hips::doctor

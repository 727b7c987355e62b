#include "lib/base/config/config_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include <fmt/format.h>

namespace hips {
namespace {

constexpr std::string_view kPrefix = "HIPS_";
// A file with a commented line for each variable has a few KiB.
constexpr std::size_t kMostFileBytes = std::size_t{1} << 20U;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool is_name(std::string_view text) {
  return text.starts_with(kPrefix) && std::ranges::all_of(text, [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
         });
}

/// Makes text of an arbitrary file printable, for one line of an error.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 60)) out += c < ' ' || c > '~' ? '?' : c;
  return out;
}

/// Empty if the file does not exist for this process.
Result<std::vector<Setting>> read_config_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  // An unreadable file of another user is ignored.
  if (!file && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) return std::vector<Setting>();
  std::string text(kMostFileBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file && !file.eof()) {
    // A resource limit of this process is not an error of the file.
    const bool is_short = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    return fail(is_short ? Code::kSystem : Code::kInvalidArgument,
                fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostFileBytes)
    return fail(Code::kInvalidArgument, fmt::format("{}: is larger than {} bytes", path, kMostFileBytes));
  return parse_config_file(path, text);
}

}  // namespace

Result<std::vector<Setting>> parse_config_file(std::string_view name, std::string_view text) {
  std::vector<Setting> settings;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const auto wrong = [&](std::string_view what) {
      return fail(Code::kInvalidArgument,
                  fmt::format("{}: line {}: \"{}\" {}; a line looks like HIPS_LOG=info", name, number,
                              shown(line), what));
    };
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return wrong("has no \"=\"");
    const std::string_view variable = trim(line.substr(0, equals));
    if (!is_name(variable)) return wrong("does not begin with a HIPS_ variable");
    if (std::ranges::any_of(settings, [&](const Setting& other) { return other.name == variable; }))
      return wrong("names a variable for the second time");
    settings.push_back({std::string(variable), std::string(trim(line.substr(equals + 1))),
                        fmt::format("{}:{}", name, number)});
  }
  return settings;
}

std::vector<std::string> config_files(const Environment& environment) {
  std::vector<std::string> files{"/etc/hips.conf"};
  for (const auto& [name, value] : environment) {
    if (name == "HOME" && !value.empty()) files.push_back(value + "/.hips.conf");
  }
  return files;
}

GatheredSettings gather_settings(const Environment& environment, std::span<const std::string> files) {
  GatheredSettings gathered;
  std::map<std::string, Setting> by_name;
  for (const std::string& path : files) {
    auto read = read_config_file(path);
    if (!read) {
      if (gathered.status.ok()) gathered.status = std::move(read).error();
      continue;
    }
    for (Setting& setting : *read) by_name.insert_or_assign(setting.name, std::move(setting));
  }
  for (const auto& [name, value] : environment) {
    if (name.starts_with(kPrefix)) by_name.insert_or_assign(name, Setting{name, value, "environment"});
  }
  for (auto& [name, setting] : by_name) gathered.settings.push_back(std::move(setting));
  return gathered;
}

}  // namespace hips

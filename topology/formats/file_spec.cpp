#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/base/os/replace_file.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/formats/yaml_tree.hpp"
#include "topology/spec.hpp"

// Specs that name a topology file: [file:]PATH[#DIGEST][/RANKS]. A path may contain slashes, so the text
// after the last one is the number of ranks only if a file name ends before it.

namespace hips::topology {
namespace {

constexpr std::size_t kDigestDigits = 16;

bool ends_in_yaml(std::string_view text) {
  return text.ends_with(".yaml") || text.ends_with(".yml");
}

bool all_digits(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

/// Why the bytes of a file are no text that a reader takes, and what to do; "" if they may be.
std::string_view why_no_text(std::string_view bytes) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("PK\x03\x04"sv))
    return "is a zip archive, as Excel files are, and no text; save the table as CSV";
  if (bytes.starts_with("\xd0\xcf\x11\xe0"sv))
    return "is an old Excel file and no text; save the table as CSV";
  if (bytes.starts_with("\xff\xfe"sv) || bytes.starts_with("\xfe\xff"sv))
    return "is text in UTF-16; convert it to UTF-8, by iconv -f UTF-16 -t UTF-8 FILE > NEW";
  return "";
}

/// Removes "#0123456789abcdef" from the end.
std::optional<std::string> cut_digest(std::string_view& text) {
  if (text.size() <= kDigestDigits || text[text.size() - kDigestDigits - 1] != '#') return std::nullopt;
  const std::string_view digits = text.substr(text.size() - kDigestDigits);
  if (!all_digits(digits, "0123456789abcdef")) return std::nullopt;
  text.remove_suffix(kDigestDigits + 1);
  return std::string(digits);
}

/// Splits "file:wiring/2" if the file system has a file "wiring", whose name does not show where it ends.
FileSpec without_ranks(const FileSpec& spec) {
  const std::size_t slash = spec.path.rfind('/');
  std::error_code error;
  if (spec.ranks_per_server || spec.digest || slash == std::string::npos ||
      !all_digits(std::string_view(spec.path).substr(slash + 1), "0123456789") ||
      !std::filesystem::exists(spec.path.substr(0, slash), error) ||
      std::filesystem::exists(spec.path, error)) {
    return spec;
  }
  FileSpec cut = spec;
  cut.ranks_per_server = spec.path.substr(slash + 1);
  cut.path.resize(slash);
  return cut;
}

std::vector<TopologyFormat>& added_formats() {
  static std::vector<TopologyFormat> formats;
  return formats;
}

/// The name of the format of topology files, which is not added.
constexpr std::string_view kOwnFormat = "hips";

/// The names of the formats that files must have, by path.
std::map<std::string, std::string>& named_formats() {
  static std::map<std::string, std::string> formats;
  return formats;
}

const TopologyFormat* format_called(std::string_view name) {
  const auto found = std::ranges::find(added_formats(), name, &TopologyFormat::name);
  return found == added_formats().end() ? nullptr : &*found;
}

/// How files are read that are not read by their content, by path.
std::map<std::string, std::function<Result<TopologyFile>()>>& own_readers() {
  static std::map<std::string, std::function<Result<TopologyFile>()>> readers;
  return readers;
}

/// The one that is named for the file, or recognises the text; null: that of topology files.
const TopologyFormat* added_format(const std::string& path, std::string_view text) {
  const auto& formats = added_formats();
  if (const auto named = named_formats().find(path); named != named_formats().end())
    return format_called(named->second);
  const auto found =
      std::ranges::find_if(formats, [&](const TopologyFormat& format) { return format.recognises(text); });
  return found == formats.end() ? nullptr : &*found;
}

}  // namespace

void add_topology_format(const TopologyFormat& format) {
  added_formats().push_back(format);
}

Result<void> insist_on_format(const std::string& path, std::string_view name) {
  if (name != kOwnFormat && format_called(name) == nullptr) {
    std::vector<std::string_view> known{kOwnFormat};
    for (const TopologyFormat& format : added_formats()) known.push_back(format.name);
    return fail(Code::kInvalidArgument, fmt::format("unknown format {}; expected one of {}", in_quotes(name),
                                                    fmt::join(known, ", ")));
  }
  named_formats()[path] = std::string(name);
  return {};
}

void read_path_by(const std::string& path, std::function<Result<TopologyFile>()> read) {
  own_readers()[path] = std::move(read);
}

bool has_added_format(const std::string& path, std::string_view text) {
  return own_readers().contains(path) || added_format(path, text) != nullptr;
}

std::optional<FileSpec> file_spec(std::string_view spec) {
  constexpr std::string_view kPrefix = "file:";
  FileSpec file;
  file.text = std::string(spec);
  const bool prefixed = spec.starts_with(kPrefix);
  if (prefixed) spec.remove_prefix(kPrefix.size());
  if (const std::size_t slash = spec.rfind('/'); slash != std::string_view::npos) {
    std::string_view before = spec.substr(0, slash);
    auto digest = cut_digest(before);
    if (digest || ends_in_yaml(before)) {
      file.ranks_per_server = std::string(spec.substr(slash + 1));
      file.digest = std::move(digest);
      file.path = std::string(before);
      return file;
    }
  }
  file.digest = cut_digest(spec);
  std::error_code error;
  // Specs of families have a ":".
  const auto has = [&](char c) { return spec.find(c) != std::string_view::npos; };
  // "/" and "." are folders, too, but nobody means them.
  const bool is_name = spec.find_first_not_of("./") != std::string_view::npos;
  const bool has_path =
      !has(':') && ((has('/') && has('.')) || std::filesystem::exists(spec, error)) && is_name;
  if (!prefixed && !file.digest && !ends_in_yaml(spec) && !has_path) return std::nullopt;
  file.path = std::string(spec);
  return file;
}

std::string path_of(const FileSpec& spec) {
  return without_ranks(spec).path;
}

Result<TopologyFile> read_file_spec(const FileSpec& given) {
  const FileSpec spec = without_ranks(given);
  if (spec.path.empty()) return bad_spec(spec.text, "no path follows \"file:\"; write file:PATH.yaml");
  auto file = read_topology_file(spec.path);
  if (!file) return fail(file.error());
  Topology& topology = file->topology;
  if (spec.digest && !topology.spec.ends_with("#" + *spec.digest)) {
    return bad_spec(spec.text,
                    fmt::format("the file has changed since this spec was made; write file:{}", spec.path));
  }
  if (!spec.ranks_per_server) return file;
  if (topology.ranks_per_server != 1) {
    return bad_spec(spec.text, fmt::format("the file already has ranks-per-server: {}; leave \"/{}\" out",
                                           topology.ranks_per_server, *spec.ranks_per_server));
  }
  if (auto added = add_node_level(spec.text, *spec.ranks_per_server, topology); !added)
    return fail(added.error());
  return file;
}

Result<TopologyFile> load_topology(std::string_view spec) {
  if (const auto file = file_spec(spec)) return read_file_spec(*file);
  auto topology = parse(spec);
  if (!topology) return fail(topology.error());
  TopologyFile file;
  file.topology = std::move(*topology);
  return file;
}

Result<std::string> read_text_file(const std::string& path, std::size_t most) {
  const auto reject = [&](std::string_view why) {
    return fail(Code::kInvalidArgument, fmt::format("{} {}", topology::in_quotes(path), why));
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return reject(fmt::format("cannot be read: {}", std::strerror(errno)));
  std::string text;
  std::array<char, 1 << 16> buffer{};
  while (file.read(buffer.data(), buffer.size()) || file.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > most) return reject(fmt::format("is larger than {} MiB", most >> 20U));
  }
  if (file.bad()) return reject("cannot be read");
  if (const std::string_view why = why_no_text(text); !why.empty()) return reject(why);
  return text;
}

Result<std::vector<NamedText>> read_text_folder(const std::string& path, std::size_t most) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error))
    if (entry.is_regular_file(error) && !entry.path().filename().string().starts_with("."))
      paths.push_back(entry.path().string());
  if (paths.empty())
    return fail(Code::kInvalidArgument,
                fmt::format("the folder {} has no files that can be read", in_quotes(path)));
  std::ranges::sort(paths);
  std::vector<NamedText> texts;
  for (const std::string& one : paths) {
    auto text = read_text_file(one, most);
    if (!text) return fail(text.error());
    most -= text->size();
    texts.push_back({one, *std::move(text)});
  }
  return texts;
}

Result<TopologyFile> read_topology_file(const std::string& path) {
  if (const auto own = own_readers().find(path); own != own_readers().end()) return own->second();
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    const auto texts = read_text_folder(path, kMostYamlBytes);
    if (!texts) return fail(Code::kInvalidArgument, "topology: " + texts.error().message);
    const auto named = named_formats().find(path);
    for (const TopologyFormat& format : added_formats()) {
      if (format.read_folder != nullptr && (named == named_formats().end() || named->second == format.name))
        return format.read_folder(path, *texts);
    }
    if (named != named_formats().end())
      return fail(Code::kInvalidArgument,
                  fmt::format("topology: {} is a folder, and a topology of the format {} is one file",
                              in_quotes(path), named->second));
    return fail(Code::kInvalidArgument,
                fmt::format("topology: {} is a folder; name a topology file", in_quotes(path)));
  }
  const auto text = read_text_file(path, kMostYamlBytes);
  if (!text) return fail(Code::kInvalidArgument, "topology file " + text.error().message);
  if (text->find_first_not_of(" \t\r\n") == std::string::npos)
    return fail(Code::kInvalidArgument,
                fmt::format("{}: the file is empty; check the command that wrote it", path));
  const TopologyFormat* const added = added_format(path, *text);
  if (added != nullptr) return added->read(path, *text);
  auto read = parse_topology_file(path, *text);
  const bool is_unlike =
      std::ranges::none_of(std::initializer_list<const char*>{"hips-topology", "spec:", "shape:"},
                           [&](const char* key) { return text->find(key) != std::string::npos; });
  if (read || !is_unlike || added_formats().empty() || named_formats().contains(path)) return read;
  std::string names;
  for (const TopologyFormat& format : added_formats()) names += std::string(format.name) + ", ";
  const std::size_t first = text->find_first_not_of(" \t\r\n");
  const std::string_view line =
      std::string_view(*text).substr(first, text->find_first_of("\r\n", first) - first);
  return fail(
      Code::kInvalidArgument,
      fmt::format(
          "{}: line {}: {} begins no format that HiPS knows: {}or a topology file with the line \"hips-topology: 1\"; "
          "hips topo --from FORMAT tells what is wrong with it as one of them",
          path, 1 + std::count(text->begin(), text->begin() + static_cast<std::ptrdiff_t>(first), '\n'),
          in_quotes(line), names));
}

Result<void> write_topology_file(const std::string& path, const TopologyFile& file) {
  const auto text = topology_file_text(file, false);
  if (!text) return fail(text.error());
  Status status = replace_file(path, *text);
  if (status.ok()) return {};
  status.message = fmt::format("topology file {} {}", topology::in_quotes(path), status.message);
  return fail(std::move(status));
}

}  // namespace hips::topology

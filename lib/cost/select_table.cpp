#include "lib/cost/select_table.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "lib/base/os/replace_file.hpp"
#include "lib/plan/algorithms/algorithms.hpp"
#include "lib/plan/builder.hpp"

namespace hips::cost {
namespace {

constexpr std::string_view kRight =
    "topology=bcube:3,1 up_to=65536 algorithm=recursive-doubling pattern=default";
/// Larger than any table; limits what is read of other files.
constexpr std::size_t kMostFileBytes = 1U << 20U;

/// A path in a spec may contain characters that separate words and lines. They are escaped as in a URL,
/// "my%20net.yaml".
bool needs_escape(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  return byte <= ' ' || byte == 0x7f || letter == '%';
}

std::string escaped(std::string_view spec) {
  std::string text;
  for (const char letter : spec) {
    if (needs_escape(letter))
      text += fmt::format("%{:02X}", static_cast<unsigned char>(letter));
    else
      text += letter;
  }
  return text;
}

/// None if two hexadecimal digits do not follow a %.
std::optional<std::string> unescaped(std::string_view text) {
  std::string spec;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      spec += text[i];
      continue;
    }
    unsigned byte = 0;
    const char* const end = text.data() + std::min(i + 3, text.size());
    const auto [at, error] = std::from_chars(text.data() + i + 1, end, byte, 16);
    if (error != std::errc() || at != text.data() + i + 3) return std::nullopt;
    spec += static_cast<char>(byte);
    i += 2;
  }
  return spec;
}

/// Reads one line. Returns "" or what is wrong with it.
std::string read_line(std::string_view line, std::string& spec, ChosenPlan& plan) {
  constexpr std::array<std::string_view, 4> kNames = {"topology", "up_to", "algorithm", "pattern"};
  std::array<std::string_view, 4> values;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    if (!word.starts_with(kNames[i]) || word.size() <= kNames[i].size() + 1 || word[kNames[i].size()] != '=')
      return fmt::format("found \"{}\"; expected {}=...", word.substr(0, 80), kNames[i]);
    values[i] = word.substr(kNames[i].size() + 1);
  }
  if (!line.empty()) return fmt::format("unexpected \"{}\" after pattern", line.substr(0, 80));
  auto named = unescaped(values[0]);
  if (!named)
    return fmt::format("topology={}: two hexadecimal digits must follow %", values[0].substr(0, 80));
  spec = *std::move(named);
  if (values[1] != "any") {
    const auto [end, error] =
        std::from_chars(values[1].data(), values[1].data() + values[1].size(), plan.up_to_bytes);
    if (error != std::errc() || end != values[1].data() + values[1].size() || plan.up_to_bytes == UINT64_MAX)
      return fmt::format("up_to={} is neither a number of bytes nor any", values[1]);
  }
  const auto algorithms = plan::algorithms();
  const bool is_auto = values[2] == ChosenPlan::kAuto;
  if (!is_auto &&
      std::ranges::none_of(algorithms, [&](const auto& known) { return known.name == values[2]; }))
    return fmt::format("unknown algorithm={}; expected auto or an algorithm of `hips plan --list`",
                       values[2]);
  plan.algorithm = values[2];
  if (is_auto && values[3] != "default")
    return fmt::format("invalid pattern={} for algorithm=auto (valid: default)", values[3].substr(0, 80));
  if (values[3] != "default") {
    plan.pattern = values[3];
    if (const auto patterns = plan::parse_patterns(plan.pattern); !patterns)
      return "pattern=" + plan.pattern + ": " + patterns.error().message;
  }
  return {};
}

Status system_error(const std::string& path, const char* what) {
  const int code = errno;
  Status status = Status::error(Code::kSystem,
                                fmt::format("selection table {}: {}: {}", path, what, std::strerror(code)));
  status.sys_errno = code;
  return status;
}

}  // namespace

Result<SelectTable> SelectTable::parse(std::string_view text, std::string_view name) {
  const auto wrong = [&](std::size_t number, const std::string& what) {
    return fail(Code::kInvalidArgument, fmt::format("selection table {}: line {}: {}", name, number, what));
  };
  SelectTable table;
  std::map<std::string, std::size_t> last_lines;
  for (std::size_t number = 1; number == 1 || !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (number == 1 && line != kTitle)
      return wrong(1, fmt::format("found \"{}\"; the first line must be \"{}\"", line.substr(0, 80), kTitle));
    if (line.empty() || line.starts_with('#')) continue;
    std::string spec;
    ChosenPlan plan;
    if (const std::string what = read_line(line, spec, plan); !what.empty())
      return wrong(number, fmt::format("{}; a line looks like \"{}\"", what, kRight));
    std::vector<ChosenPlan>& plans = table.plans_[spec];
    if (!plans.empty() && plans.back().up_to_bytes >= plan.up_to_bytes)
      return wrong(number,
                   fmt::format("the lines of {} must ascend, but up to {} follows {}", spec, plan.up_to_bytes,
                               plans.back().up_to_bytes == UINT64_MAX
                                   ? "any size"
                                   : fmt::format("up to {}", plans.back().up_to_bytes)));
    plans.push_back(std::move(plan));
    last_lines[spec] = number;
  }
  for (const auto& [spec, plans] : table.plans_) {
    if (plans.back().up_to_bytes != UINT64_MAX)
      return wrong(last_lines[spec],
                   fmt::format("{} has no plan for vectors above {} bytes; its last line needs up_to=any",
                               spec, plans.back().up_to_bytes));
  }
  return table;
}

Result<SelectTable> SelectTable::read(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(system_error(path, "cannot be opened"));
  std::string text(kMostFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return fail(system_error(path, "cannot be read"));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostFileBytes)
    return fail(Code::kInvalidArgument,
                fmt::format("selection table {}: the file is larger than {} bytes, the limit of a table",
                            path, kMostFileBytes));
  return parse(text, path);
}

const std::vector<ChosenPlan>* SelectTable::find(std::string_view spec) const {
  const auto found = plans_.find(spec);
  return found == plans_.end() ? nullptr : &found->second;
}

std::string SelectTable::text() const {
  std::string text = std::string(kTitle) + "\n";
  for (const auto& [spec, plans] : plans_) {
    for (const ChosenPlan& plan : plans)
      text += fmt::format("topology={} up_to={} algorithm={} pattern={}\n", escaped(spec),
                          plan.up_to_bytes == UINT64_MAX ? "any" : std::to_string(plan.up_to_bytes),
                          plan.algorithm, plan.pattern.empty() ? "default" : plan.pattern);
  }
  return text;
}

Status SelectTable::write(const std::string& path) const {
  Status status = replace_file(path, text());
  if (!status.ok()) status.message = fmt::format("selection table {}: {}", path, status.message);
  return status;
}

std::string to_string(const std::vector<ChosenPlan>& plans) {
  std::string text;
  for (const ChosenPlan& plan : plans) {
    text += text.empty() ? "" : ", else ";
    text += plan.algorithm;
    if (!plan.pattern.empty()) text += " " + plan.pattern;
    if (plan.up_to_bytes != UINT64_MAX) text += fmt::format(" up to {}", plan.up_to_bytes);
  }
  return text;
}

}  // namespace hips::cost

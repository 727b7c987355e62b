#include "lib/mpi/tuning/guard_table.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace hips::mpi {
namespace {

constexpr std::string_view kTitle = "# HiPS guard table 1";
constexpr std::string_view kExample =
    "hosts=2x4 transport=verbs mpi=Open_MPI_v4.1.4 op=sum bytes=512-1023 winner=hips hips_ns=900 "
    "host_ns=1500";

std::string line_text(const GuardTable::Key& key, const TuningDecision& decision) {
  const auto& [scope, of] = key;
  return fmt::format("hosts={} transport={} mpi={} op={} bytes={}-{} winner={} hips_ns={} host_ns={}",
                     scope.nodes, scope.transport, scope.native, to_string(of.kind), of.least_bytes(),
                     of.most_bytes(), decision.winner == TuningChoice::kNative ? "host" : "hips",
                     decision.hips_ns, decision.native_ns);
}

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<CallKind> kind_named(std::string_view name) {
  for (int kind = 0; kind < CallKind::kNum; ++kind)
    if (name == to_string(CallKind::of_index(kind))) return CallKind::of_index(kind);
  return std::nullopt;
}

/// "512-1023"; empty unless it is exactly one class.
std::optional<CallClass> class_of(CallKind kind, std::string_view range) {
  const std::size_t dash = range.find('-');
  if (dash == range.npos) return std::nullopt;
  const auto least = number<std::uint64_t>(range.substr(0, dash));
  const auto most = number<std::uint64_t>(range.substr(dash + 1));
  if (!least || !most || *least == 0) return std::nullopt;
  const CallClass of = CallClass::of(*least, kind);
  if (of.least_bytes() != *least || of.most_bytes() != *most) return std::nullopt;
  return of;
}

/// Reads one line; returns "" or what is wrong with it.
std::string read_line(std::string_view line, GuardTable::Key& key, TuningDecision& decision) {
  constexpr std::string_view kNames[] = {"hosts", "transport", "mpi",     "op",
                                         "bytes", "winner",    "hips_ns", "host_ns"};
  std::vector<std::string_view> values;
  for (const std::string_view name : kNames) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    if (!word.starts_with(name) || word.size() <= name.size() + 1 || word[name.size()] != '=')
      return fmt::format("expected {}=..., found \"{}\"", name, word);
    values.push_back(word.substr(name.size() + 1));
  }
  if (!line.empty()) return fmt::format("unexpected \"{}\" after host_ns", line);
  const auto kind = kind_named(values[3]);
  if (!kind) return fmt::format("unknown op={}", values[3]);
  const auto of = class_of(*kind, values[4]);
  if (!of)
    return fmt::format("invalid bytes={} (valid: from a power of two to one less than the next)", values[4]);
  if (values[5] != "hips" && values[5] != "host")
    return fmt::format("invalid winner={} (valid: hips, host)", values[5]);
  const auto hips_ns = number<std::int64_t>(values[6]), native_ns = number<std::int64_t>(values[7]);
  if (!hips_ns || !native_ns)
    return fmt::format("invalid {}={} (valid: whole ns from 0)", !hips_ns ? "hips_ns" : "host_ns",
                       !hips_ns ? values[6] : values[7]);
  key = {{std::string(values[0]), std::string(values[1]), std::string(values[2])}, *of};
  decision = {values[5] == "host" ? TuningChoice::kNative : TuningChoice::kHips, *hips_ns, *native_ns};
  return {};
}

}  // namespace

Result<GuardTable> GuardTable::parse(std::string_view text, std::string_view name) {
  const auto wrong = [&](int number, const std::string& what) {
    return fail(Code::kInvalidArgument, fmt::format("guard table {}: line {}: {}", name, number, what));
  };
  GuardTable table;
  for (int number = 1; number == 1 || !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    // Errors do not repeat more than this of a line that belongs to a file of another kind.
    constexpr std::size_t kMostLine = 512;
    const std::string_view line = text.substr(0, std::min(end, kMostLine));
    const bool is_cut = end == text.size() || end > kMostLine;
    text.remove_prefix(std::min(end + 1, text.size()));
    if (number == 1) {
      if (line != kTitle)
        return wrong(1, fmt::format("not a guard table: its first line is not \"{}\"", kTitle));
      continue;
    }
    if (line.empty() || line.starts_with('#')) continue;
    if (is_cut) return wrong(number, "the line is truncated");
    Key key;
    TuningDecision decision;
    if (const std::string problem = read_line(line, key, decision); !problem.empty())
      return wrong(number, fmt::format("{}; example of a line: {}", problem, kExample));
    if (!table.decisions_.emplace(key, decision).second)
      return wrong(number, "an earlier line has the same key");
  }
  return table;
}

std::string GuardTable::text() const {
  std::string text =
      fmt::format("{}\n# Which is faster, HiPS or native MPI. Delete a line to measure again.\n", kTitle);
  for (const auto& [key, decision] : decisions_) text += line_text(key, decision) + "\n";
  return text;
}

std::string nodes_text(const std::vector<std::string>& node_of_rank) {
  std::vector<std::pair<std::string_view, int>> nodes;
  for (const std::string& node : node_of_rank) {
    const auto known =
        std::ranges::find(nodes, std::string_view(node), &std::pair<std::string_view, int>::first);
    if (known == nodes.end())
      nodes.emplace_back(node, 1);
    else
      ++known->second;
  }
  std::string text;
  for (std::size_t first = 0; first < nodes.size();) {
    std::size_t end = first;
    while (end < nodes.size() && nodes[end].second == nodes[first].second) ++end;
    text += fmt::format("{}{}x{}", first == 0 ? "" : ",", end - first, nodes[first].second);
    first = end;
  }
  return text;
}

}  // namespace hips::mpi

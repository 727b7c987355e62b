#include "topology/cabling/host_texts.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "topology/cabling/cabling_builder.hpp"
#include "topology/formats/server_names.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

bool are_dashes(std::string_view line) {
  constexpr std::size_t kLeast = 8;  // clush writes 15, dshbak 16
  return line.size() >= kLeast && line.find_first_not_of('-') == std::string_view::npos;
}

/// The hosts of a block that begins with a line of dashes: "n7" or "n[1-4] (4)", and dashes again.
std::optional<HostLine> block_of(std::string_view dashes, TextLines below) {
  dashes = without_blanks(dashes);
  if (!are_dashes(dashes)) return std::nullopt;
  const auto hosts = below.next(), end = below.next();
  if (!hosts || !end || without_blanks(*end) != dashes) return std::nullopt;
  std::string_view rest = *hosts;
  HostLine block{.hosts = take_word(rest), .is_in_block = true};
  const bool are_names = std::ranges::all_of(block.hosts, [](char c) {
    return is_name_character(c) || std::string_view("[],").find(c) != std::string_view::npos;
  });
  if (block.hosts.empty() || !are_names) return std::nullopt;
  rest = without_blanks(rest);
  if (rest.empty()) return block;
  if (rest.size() < 3 || rest.front() != '(' || rest.back() != ')') return std::nullopt;
  block.count = rest.substr(1, rest.size() - 2);
  return std::ranges::all_of(block.count, is_digit) ? std::optional(block) : std::nullopt;
}

/// The host before a line of pdsh, "n7: lldp.eth0.via=LLDP"; empty if there is none.
std::string_view host_before(std::string_view line) {
  const std::size_t colon = line.find(": ");
  if (colon == std::string_view::npos ||
      line.substr(0, colon).find_first_of(" \t\"{}=") != std::string_view::npos)
    return {};
  return line.substr(0, colon);
}

/// The hosts of a line, at most `most`.
Result<std::vector<std::string>> names_of(std::string_view file, const HostLine& line, std::size_t most) {
  std::vector<std::string> names{std::string(line.hosts)};
  const std::int64_t where = line.is_in_block ? line.number - 2 : line.number;
  if (line.hosts.find_first_of("[,") != std::string_view::npos) {
    auto expanded = expand_names(line.hosts, most);
    if (!expanded) return bad_line(file, where, expanded.error().message);
    names = *std::move(expanded);
  }
  if (names.size() > most)
    return bad_line(file, where,
                    fmt::format("more than {} hosts; give those of one cluster", kMostCabledNodes));
  if (!line.count.empty() && line.count != std::to_string(names.size()))
    return bad_line(
        file, where,
        fmt::format("the header names {} of {} hosts: {}; let clush name each of them, without groups",
                    names.size(), line.count, in_quotes(line.hosts)));
  return names;
}

}  // namespace

std::optional<HostLine> HostLines::next() {
  while (const auto line = lines_.next()) {
    if (auto block = block_of(*line, lines_)) {
      block_ = block;
      lines_.next();
      lines_.next();
      continue;
    }
    HostLine made = block_.value_or(HostLine{.hosts = host_before(*line)});
    made.text = made.is_in_block || made.hosts.empty() ? *line : line->substr(made.hosts.size() + 2);
    made.number = lines_.number();
    return made;
  }
  return std::nullopt;
}

Result<std::vector<HostText>> split_by_host(std::string_view file, std::string_view text) {
  std::vector<HostText> texts;
  std::map<std::string, std::size_t, std::less<>> known;  // by the hosts as they are written
  std::size_t left = kMostCabledNodes;
  HostLines lines(text);
  while (const auto line = lines.next()) {
    if (line->hosts.empty()) continue;
    auto found = known.find(line->hosts);
    if (found == known.end()) {
      auto names = names_of(file, *line, left);
      if (!names) return fail(names.error());
      left -= names->size();
      found = known.emplace(std::string(line->hosts), texts.size()).first;
      texts.push_back({.hosts = *std::move(names), .line = line->is_in_block ? line->number : 0});
    }
    texts[found->second].text += line->text;
    texts[found->second].text += '\n';
  }
  return texts;
}

}  // namespace hips::topology

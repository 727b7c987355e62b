#include <algorithm>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "topology/discover/draft.hpp"

namespace hips::topology {
namespace {

/// Removes line ends, as names come from other hosts and must not end a comment.
std::string on_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~'; },
      '?');
  return text;
}

/// Identifies the lines that topology_file_text() writes.
class Lines {
 public:
  /// Identifies the next line; none if no remark can refer to it.
  std::optional<std::pair<DraftLine, std::size_t>> next(const std::string& line) {
    if (!line.starts_with(' ')) {
      section_ = line.substr(0, line.find(':'));
      index_ = 0;
      if (section_ == "shape") return std::pair(DraftLine::kShape, std::size_t{0});
      if (section_ == "ranks-per-server") return std::pair(DraftLine::kRanks, std::size_t{0});
      if (section_ == "relay") return std::pair(DraftLine::kRelay, std::size_t{0});
      return std::nullopt;
    }
    if (section_ == "levels") return std::pair(DraftLine::kLevel, index_++);
    if (section_ == "links") return std::pair(DraftLine::kLink, index_++);
    if (section_ == "switches" && line.starts_with("  count:"))
      return std::pair(DraftLine::kSwitches, std::size_t{0});
    if (section_ == "servers" && line.starts_with("  names:"))
      return std::pair(DraftLine::kNames, std::size_t{0});
    if (section_ == "servers" && line.starts_with("  devices:"))
      return std::pair(DraftLine::kDevices, std::size_t{0});
    return std::nullopt;
  }

 private:
  std::string section_;
  std::size_t index_ = 0;
};

}  // namespace

std::string draft_text(const Draft& draft) {
  std::string text =
      "# A draft by hips topo discover. Values that were not observed are marked \"guessed\"; correct them, "
      "and\n"
      "# name the file with -t or in HIPS_TOPO.\n";
  for (const std::string& note : draft.notes) text += fmt::format("# Note: {}.\n", on_one_line(note));
  // A draft only lists cables that differ from their level, so this cannot fail.
  std::istringstream file(value_or_throw(topology_file_text(draft.file, false)));
  Lines lines;
  for (std::string line; std::getline(file, line);) {
    const auto which = lines.next(line);
    text += line;
    std::string seen, guessed;
    for (const Remark& remark : draft.remarks) {
      if (!which || remark.line != which->first || remark.index != which->second) continue;
      std::string& part = remark.guessed ? guessed : seen;
      part += fmt::format("{}{}", part.empty() ? "" : "; ", on_one_line(remark.text));
    }
    if (!guessed.empty()) text += "  # guessed: " + guessed;
    if (!seen.empty()) text += (guessed.empty() ? "  # " : "; ") + seen;
    text += '\n';
  }
  return text;
}

}  // namespace hips::topology

#include <algorithm>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "topology/discover/draft.hpp"

namespace hips::topology {
namespace {

/// Names come from other hosts: nothing of them ends a comment.
std::string on_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~'; },
      '?');
  return text;
}

/// Tells the lines apart that topology_file_text() writes.
class Lines {
 public:
  /// Which one the next line is; nothing where no remark can be about it.
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
      "# A draft of hips topo discover. What nobody has measured is marked \"guessed\"; correct it, and name "
      "the\n"
      "# file with -t or in HIPS_TOPO.\n";
  for (const std::string& note : draft.notes) text += fmt::format("# Note: {}.\n", on_one_line(note));
  // A draft lists no cables but odd ones, so that there is nothing to refuse.
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

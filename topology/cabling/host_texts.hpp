#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "topology/cabling/text_lines.hpp"

namespace hips::topology {

/// A line of a text in which several hosts wrote.
struct HostLine {
  std::string_view hosts{};  ///< "n7", or "n[1-4]" where all of them wrote it; empty: not told
  std::string_view count{};  ///< the number of these hosts, if the text tells it
  std::string_view text{};   ///< without the host
  bool is_in_block = false;  ///< below a header, rather than behind "HOST: "
  std::int64_t number = 0;   ///< of the text, from 1
};

/// The lines of a text in which several hosts wrote: `HOST: ` before each line, as pdsh and clush write it, or blocks below the
/// host or hosts between two lines of dashes, as dshbak and clush -b write it. Lines before the first block are read in the first way.
///
/// Example  HostLines lines(text); while (const auto line = lines.next()) use(line->hosts, line->text);
class HostLines {
 public:
  explicit HostLines(std::string_view text) : lines_(text) {}

  std::optional<HostLine> next();

 private:
  TextLines lines_;
  std::optional<HostLine> block_;
};

/// What one host wrote, or several that wrote the same.
struct HostText {
  std::vector<std::string> hosts{};
  std::string text{};
  std::int64_t line = 0;  ///< where the text begins; 0: its lines are spread over the file
};

/// The texts of HostLines, in the order in which the hosts occur first. Lines without a host are left out.
///
/// Cost     linear in the text and in the hosts that it names, of which there are at most kMostCabledNodes.
/// Errors   kInvalidArgument: `file`, line, what is wrong with the hosts and what would be right.
Result<std::vector<HostText>> split_by_host(std::string_view file, std::string_view text);

}  // namespace hips::topology

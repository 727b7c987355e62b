#include "topology/clusters/slurm_source.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/cabling/text_lines.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

class IncludeReader {
 public:
  explicit IncludeReader(const std::string& name) : made_{.source = {.name = name}} {}

  Result<SlurmText> read(const std::string& path, std::string_view text) {
    if (auto added = add(path, text); !added) return fail(added.error());
    return std::move(made_);
  }

 private:
  static tl::unexpected<Status> bad(const std::string& file, std::size_t line, std::string_view problem) {
    return fail(Code::kInvalidArgument, fmt::format("{}:{}: {}", file, line, problem));
  }

  /// The file itself, by which a cycle is known however the path is written.
  static std::string identity(const std::string& path) {
    std::error_code error;
    const auto known = std::filesystem::weakly_canonical(path, error);
    return error ? path : known.string();
  }

  Result<void> add(const std::string& path, std::string_view text) {
    open_.push_back(identity(path));
    begin_piece(path, 1);
    std::size_t number = 0;
    bool continues = false;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++number;
      if (!continues && is_include_line(line)) {
        if (auto included = include(path, number, line); !included) return included;
        begin_piece(path, number + 1);
        continue;
      }
      made_.text += line;
      made_.text += '\n';
      ++lines_;
      const std::size_t last = line.find_last_not_of(kBlanks);
      continues = last != std::string_view::npos && line[last] == '\\' && line.find('#') > last;
    }
    open_.pop_back();
    return {};
  }

  void begin_piece(const std::string& path, std::size_t line) {
    if (!made_.source.pieces.empty() && made_.source.pieces.back().first == lines_ + 1)
      made_.source.pieces.pop_back();
    made_.source.pieces.push_back({lines_ + 1, path, line});
  }

  Result<void> include(const std::string& path, std::size_t number, std::string_view line) {
    line = line.substr(0, line.find('#'));
    take_word(line);
    std::string_view word = take_word(line);
    if (word.size() > 2 && word.front() == '"' && word.back() == '"') word = word.substr(1, word.size() - 2);
    if (word.empty()) return bad(path, number, "no file follows Include; write Include FILE");
    if (const std::string_view more = take_word(line); !more.empty())
      return bad(path, number,
                 fmt::format("{} follows Include {}; write one file in each line", in_quotes(more), word));
    if (++includes_ > kMostSlurmIncludes)
      return bad(path, number,
                 fmt::format("this is Include number {} (valid: up to {})", includes_, kMostSlurmIncludes));
    const std::string file = (std::filesystem::path(path).parent_path() / word).string();
    if (std::ranges::find(open_, identity(file)) != open_.end())
      return bad(path, number,
                 fmt::format("Include {} forms a cycle, as {} is being read; remove one of the lines", word,
                             in_quotes(file)));
    // Each file is at most as large as what is left.
    const auto text = read_text_file(file, kMostSlurmBytes - std::min(made_.text.size(), kMostSlurmBytes));
    if (!text)
      return bad(path, number,
                 fmt::format("Include {}: {}; paths are relative to the folder of the including file", word,
                             text.error().message));
    return add(file, *text);
  }

  SlurmText made_;
  std::vector<std::string> open_;  ///< the files that are being read, each included by the one before
  std::size_t lines_ = 0;          ///< of the text so far
  std::size_t includes_ = 0;
};

}  // namespace

std::string SlurmSource::where(std::size_t line) const {
  const auto next = std::ranges::upper_bound(pieces, line, {}, &Piece::first);
  if (next == pieces.begin()) return fmt::format("{}: line {}", name, line);
  const Piece& piece = *std::prev(next);
  return fmt::format("{}: line {}", piece.file, piece.line + line - piece.first);
}

bool is_include_line(std::string_view line) {
  return in_lower_case(take_word(line)) == "include";
}

Result<SlurmText> with_includes(const std::string& path, std::string_view text) {
  return IncludeReader(path).read(path, text);
}

}  // namespace hips::topology

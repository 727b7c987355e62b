#include "topology/clusters/slurm.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "topology/clusters/slurm_source.hpp"
#include "topology/clusters/slurm_torus.hpp"
#include "topology/clusters/slurm_tree.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

constexpr SlurmWords kConfWords{.switch_name = "SwitchName",
                                .block_name = "BlockName",
                                .switches = "Switches",
                                .nodes = "Nodes",
                                .assign = "=",
                                .entry = "line"};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// Does a list of topologies begin here, as in a topology.yaml?
bool is_slurm_yaml_line(std::string_view line) {
  if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  for (const char sign : {'-', '{'}) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with(sign)) {
      line.remove_prefix(1);
    } else if (sign == '-') {
      return false;
    }
  }
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line.starts_with("topology:");
}

/// Does one of the lines fit?
template <typename Fits>
bool has_line(std::string_view text, Fits&& fits) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (fits(text.substr(0, end))) return true;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return false;
}

/// Without the spaces around "=", and without those in values in quotes, where no name has one.
std::string tidied(std::string_view text) {
  std::string out;
  bool is_quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') is_quoted = !is_quoted;
    if (c != ' ' && c != '\t') {
      out += c;
      continue;
    }
    // One space of several does.
    const std::size_t next = std::min(text.find_first_not_of(" \t", at), text.size());
    const std::string_view word =
        text.substr(next, std::min(text.find_first_of(" \t", next), text.size()) - next);
    at = next - 1;
    // A key without a value stays one.
    const bool behind_sign = out.ends_with('=') && word.find('=') == std::string_view::npos;
    if (!is_quoted && !word.starts_with('=') && !behind_sign) out += ' ';
  }
  return out;
}

class SlurmReader {
 public:
  SlurmReader(const SlurmSource& source, std::string_view text, const SlurmOptions& options)
      : source_(source), text_(text), options_(options), tree_(source, kConfWords), rings_(source, "ring") {}

  Result<ClusterTopology> read() {
    if (auto read = read_lines(); !read) return fail(read.error());
    add_notes();
    const std::string_view which = options_.which;
    std::string_view ring = which;
    if (ring.starts_with("default:")) ring.remove_prefix(8);
    if (!rings_.empty()) return rings_.finish(ring == "default" ? "" : ring, options_, std::move(notes_));
    if (!which.empty() && which != "default") {
      return bad(1, fmt::format("unknown topology {}; the file has one topology, \"default\", and no rings",
                                in_quotes(which)));
    }
    if (tree_.empty()) {
      return bad(1,
                 "the file has no switch, block or ring; write lines such as SwitchName=leaf0 Nodes=n[0-3]");
    }
    return tree_.finish(options_, std::move(notes_));
  }

 private:
  [[nodiscard]] tl::unexpected<Status> bad(std::size_t line, std::string_view problem) const {
    return tree_.bad(line, problem);
  }

  Result<void> read_lines() {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
    std::size_t number = 0;
    std::string joined;
    std::size_t first = 0;
    for (std::string_view rest = text_; !rest.empty();) {
      const std::size_t end = rest.find('\n');
      std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      ++number;
      if (joined.empty()) first = number;
      line = line.substr(0, line.find('#'));
      while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.remove_suffix(1);
      const bool is_continued = !line.empty() && line.back() == '\\';
      if (is_continued) line.remove_suffix(1);
      // As in Slurm: a space at the beginning of the next line separates words.
      joined += line;
      if (is_continued && rest.empty()) return bad(number, "\"\\\" continues the last line; remove it");
      if (is_continued) continue;
      if (auto read = read_line(first, tidied(joined)); !read) return read;
      joined.clear();
    }
    return {};
  }

  Result<void> read_line(std::size_t line, std::string_view text) {
    constexpr std::string_view kSpace = " \t\r\v\f";
    std::map<std::string, std::string_view> values;  // by key, in lower case
    for (std::size_t at = text.find_first_not_of(kSpace); at != std::string_view::npos;
         at = text.find_first_not_of(kSpace, at)) {
      // A value in quotes may have spaces.
      const std::size_t quote = std::min(text.find('"', at), text.size());
      std::size_t end = std::min(text.find_first_of(kSpace, at), text.size());
      const bool is_quoted = quote < end && quote > at && text[quote - 1] == '=';
      if (is_quoted) {
        end = text.find('"', quote + 1);
        if (end == std::string_view::npos)
          return bad(line, "a \" is missing at the end of a value in quotes");
        ++end;
      }
      const std::string_view word = text.substr(at, end - at);
      at = end;
      if (lower(word) == "include")
        return bad(line, "Include is followed in files only; give the path of the file");
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos || equals == 0)
        return bad(line, fmt::format("{} is not KEY=VALUE; write such as SwitchName=leaf0", in_quotes(word)));
      const std::string key = lower(word.substr(0, equals));
      std::string_view value = word.substr(equals + 1);
      if (is_quoted) value = value.substr(1, value.size() - 2);
      if (value.empty() && key == "nodes" && values.contains("blockname")) continue;
      if (value.empty())
        return bad(line, fmt::format("nothing follows {}=; write a value or leave the key out",
                                     word.substr(0, equals)));
      if (!values.emplace(key, value).second)
        return bad(line, fmt::format("{} occurs twice; write it once", in_quotes(word.substr(0, equals))));
      if (at == text.size()) break;
    }
    if (values.empty()) return {};
    return add(line, values);
  }

  Result<void> add(std::size_t line, std::map<std::string, std::string_view>& values) {
    const auto take = [&](const char* key) -> std::optional<std::string_view> {
      const auto found = values.find(key);
      if (found == values.end()) return std::nullopt;
      const std::string_view value = found->second;
      values.erase(found);
      return value;
    };
    const auto switch_name = take("switchname"), block_name = take("blockname"), ring_name = take("ringname");
    const auto switches = take("switches"), nodes = take("nodes");
    // As scontrol shows them.
    const bool is_shown = take("level").has_value();
    // As scontrol shows the larger blocks that blocks form, with the nodes again.
    if (take("aggregatedblock")) return {};
    if (block_name) {
      take("blockindex");
      take("blocksize");
    }
    for (const auto& [key, value] : values) {
      const auto [ignored, is_new] = ignored_.try_emplace(key, Ignored{line, std::string(value)});
      ++ignored->second.count;
    }
    if (ring_name) return add_ring(line, *ring_name, switch_name || block_name || switches, nodes);
    if (!switch_name && !block_name) {
      if (switches || nodes)
        return bad(line, "Switches and Nodes belong to a switch or a block; begin the line with SwitchName=");
      return {};
    }
    if (switch_name && block_name)
      return bad(line, "SwitchName and BlockName are on one line; write two lines");
    if (!rings_.empty()) return bad(line, "the file has rings and switches; keep one of them");
    const bool is_block = block_name.has_value();
    if (blocks_.value_or(is_block) != is_block) {
      return bad(line, "the file has switches and blocks; keep either SwitchName or BlockName lines");
    }
    blocks_ = is_block;
    const auto text_of = [](std::optional<std::string_view> value) {
      return value ? std::optional<std::string>(*value) : std::nullopt;
    };
    return tree_.add({.line = line,
                      .is_block = is_block,
                      .is_shown = is_shown,
                      .name = std::string(is_block ? *block_name : *switch_name),
                      .switches = text_of(switches),
                      .nodes = text_of(nodes)});
  }

  Result<void> add_ring(std::size_t line, std::string_view ring, bool with_others,
                        std::optional<std::string_view> nodes) {
    if (with_others || !tree_.empty())
      return bad(line, "the file has rings and switches; keep one of them, RingName= with Nodes=");
    if (!nodes)
      return bad(line, fmt::format("RingName={} has no Nodes; write them in the order of the ring",
                                   in_quotes(ring)));
    return rings_.add(
        {.line = line, .name = std::string(ring), .regions = {{.line = line, .nodes = std::string(*nodes)}}});
  }

  /// One for each kind of thing that is ignored.
  void add_notes() {
    for (const auto& [key, first] : ignored_) {
      const bool known = key == "linkspeed" || key == "blocksizes";
      const std::string more = first.count > 1 ? fmt::format(" (and {} more)", first.count - 1) : "";
      notes_.push_back(fmt::format("{}: {}={} {}{}; ignored", source_.where(first.line), key,
                                   in_quotes(first.value),
                                   known ? "does not describe the wiring" : "is unknown", more));
    }
  }

  /// Where something that is ignored is first, and how often it is there.
  struct Ignored {
    std::size_t line = 0;
    std::string value;
    std::size_t count = 0;
  };

  const SlurmSource& source_;
  std::string_view text_;
  const SlurmOptions& options_;
  SlurmTree tree_;
  SlurmToruses rings_;
  std::vector<std::string> notes_;
  std::map<std::string, Ignored> ignored_;  ///< by key
  std::optional<bool> blocks_;              ///< blocks or switches; none before the first
};

}  // namespace

bool is_slurm(std::string_view text) {
  return has_line(text, [is_first = true](std::string_view line) mutable {
    if (is_slurm_yaml_line(line)) return true;
    const std::size_t first = line.find_first_not_of(" \t\r\xef\xbb\xbf");
    if (first == std::string_view::npos || line[first] == '#') return false;
    line.remove_prefix(first);
    // A file may do nothing but include others; in other formats such a line begins none.
    const bool was_first = std::exchange(is_first, false);
    if (was_first && is_include_line(line)) return true;
    return std::ranges::any_of(std::array{"switchname=", "blockname=", "ringname="},
                               [&](std::string_view key) {
                                 return line.size() >= key.size() && lower(line.substr(0, key.size())) == key;
                               });
  });
}

Result<ClusterTopology> read_slurm(std::string_view name, std::string_view text,
                                   const SlurmOptions& options) {
  if (has_line(text, is_slurm_yaml_line)) return read_slurm_yaml(name, text, options);
  return read_slurm_topology(name, text, options);
}

Result<ClusterTopology> read_slurm_topology(std::string_view name, std::string_view text,
                                            const SlurmOptions& options) {
  const SlurmSource source{.name = std::string(name)};
  return SlurmReader(source, text, options).read();
}

Result<ClusterTopology> read_slurm_file(const std::string& path, std::string_view text,
                                        SlurmOptions options) {
  const bool is_yaml =
      path.ends_with(".yaml") || path.ends_with(".yml") || has_line(text, is_slurm_yaml_line);
  options.path = path;
  if (is_yaml) return read_slurm_yaml(path, text, options);
  const auto whole = with_includes(path, text);
  if (!whole) return fail(whole.error());
  return SlurmReader(whole->source, whole->text, options).read();
}

}  // namespace hips::topology

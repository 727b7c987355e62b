#include "topology/clusters/slurm.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "topology/cabling/text_lines.hpp"
#include "topology/clusters/slurm_lines.hpp"
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
    SlurmLines lines(text_);
    while (const auto line = lines.next()) {
      if (line->is_cut) return bad(line->number, "\"\\\" continues the last line; remove it");
      if (auto read = read_line(line->number, line->text); !read) return read;
    }
    return {};
  }

  /// The values of a line, by their keys in lower case.
  using Values = std::map<std::string, SlurmPair>;

  Result<void> read_line(std::size_t line, std::string_view text) {
    if (is_include_line(text))
      return bad(line, "Include is followed in files only; give the path of the file");
    Values values;
    for (;;) {
      const auto pair = take_pair(text);
      if (!pair) return bad(line, pair.error().message);
      if (!*pair) break;
      const std::string key = in_lower_case((*pair)->key);
      if ((*pair)->value.empty() && key == "nodes" && values.contains("blockname")) continue;
      if ((*pair)->value.empty())
        return bad(line,
                   fmt::format("nothing follows {}=; write a value or leave the key out", (*pair)->key));
      if (!values.emplace(key, **pair).second)
        return bad(line, fmt::format("{} occurs twice; write it once", in_quotes((*pair)->key)));
    }
    if (values.empty()) return {};
    return add(line, values);
  }

  Result<void> add(std::size_t line, Values& values) {
    const auto take = [&](const char* key) -> std::optional<std::string_view> {
      const auto found = values.find(key);
      if (found == values.end()) return std::nullopt;
      const std::string_view value = found->second.value;
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
    for (const auto& [key, pair] : values) {
      const auto [ignored, is_new] =
          ignored_.try_emplace(key, Ignored{line, std::string(pair.key), std::string(pair.value)});
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
      notes_.push_back(fmt::format("{}: {}={} {}{}; ignored", source_.where(first.line), first.key,
                                   in_quotes(first.value),
                                   known ? "does not describe the wiring" : "is unknown", more));
    }
  }

  /// Where something that is ignored is first, and how often it is there.
  struct Ignored {
    std::size_t line = 0;
    std::string key;  ///< as it is written
    std::string value;
    std::size_t count = 0;
  };

  const SlurmSource& source_;
  std::string_view text_;
  const SlurmOptions& options_;
  SlurmTree tree_;
  SlurmToruses rings_;
  std::vector<std::string> notes_;
  std::map<std::string, Ignored> ignored_;  ///< by key, in lower case
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
    return std::ranges::any_of(
        std::array{"switchname=", "blockname=", "ringname="}, [&](std::string_view key) {
          return line.size() >= key.size() && in_lower_case(line.substr(0, key.size())) == key;
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

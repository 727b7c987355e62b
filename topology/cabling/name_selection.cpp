#include "topology/cabling/name_selection.hpp"

#include <regex.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "topology/cabling/text_lines.hpp"
#include "topology/formats/server_names.hpp"
#include "topology/spec.hpp"
#include "topology/union_find.hpp"

namespace hips::topology {
namespace {

using Kind = CabledNode::Kind;

/// An expression, or none, which matches nothing.
class NameRegex {
 public:
  static Result<NameRegex> create(std::string_view flag, const std::string& text) {
    NameRegex made;
    if (text.empty()) return made;
    if (const std::string_view problem = problem_of(text); !problem.empty())
      return fail(Code::kInvalidArgument, fmt::format("{} {}: {}", flag, in_quotes(text), problem));
    auto compiled = std::make_unique<regex_t>();
    if (const int error = regcomp(compiled.get(), text.c_str(), REG_EXTENDED | REG_NOSUB); error != 0) {
      std::array<char, 128> why{};
      regerror(error, compiled.get(), why.data(), why.size());
      return fail(Code::kInvalidArgument,
                  fmt::format("{} {}: {}; write an extended regular expression such as \"^gpu[0-9]+$\"", flag,
                              in_quotes(text), why.data()));
    }
    made.compiled_ = std::shared_ptr<regex_t>(compiled.release(), [](regex_t* regex) {
      regfree(regex);
      delete regex;
    });
    return made;
  }

  [[nodiscard]] bool is_given() const { return compiled_ != nullptr; }

  [[nodiscard]] bool matches(const std::string& name) const {
    return is_given() && name.size() <= kMostMatchedName &&
           regexec(compiled_.get(), name.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  static std::string_view problem_of(std::string_view text) {
    if (text.size() > kMostRegexBytes) return "the expression is longer than 1024 bytes; shorten it";
    if (std::ranges::count(text, '{') > 1)
      return "the expression has more than one count in braces; write one";
    if (const std::size_t brace = text.find('{'); brace != std::string_view::npos) {
      std::size_t digits = 0;
      for (const char c : text.substr(brace)) {
        digits = is_digit(c) ? digits + 1 : 0;
        if (digits > 3) return "the count in braces has more than three digits; write a smaller one";
        if (c == '}') break;
      }
    }
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      if (text[i] == '\\' && is_digit(text[i + 1]))
        return "references such as \\1 are not supported; leave them out";
      if (text[i] == '\\') ++i;
    }
    return text.find('\0') == std::string_view::npos ? "" : "the expression has a zero byte; leave it out";
  }

  std::shared_ptr<regex_t> compiled_;
};

/// The kind of a node, or none if it is left out.
struct Chosen {
  bool is_kept = true;
  Kind kind = Kind::kUnknown;
};

class Selector {
 public:
  Selector(NameRegex hosts, NameRegex exclude, NameRegex switches)
      : hosts_(std::move(hosts)), exclude_(std::move(exclude)), switches_(std::move(switches)) {}

  [[nodiscard]] Chosen choose(const CabledNode& node) const {
    if (exclude_.matches(node.name)) return {false, node.kind};
    Kind kind = node.kind;
    if (kind == Kind::kUnknown && hosts_.is_given())
      kind = hosts_.matches(node.name) ? Kind::kServer : Kind::kSwitch;
    if (kind == Kind::kUnknown && switches_.is_given())
      kind = switches_.matches(node.name) ? Kind::kSwitch : Kind::kServer;
    if (kind == Kind::kServer && hosts_.is_given() && !hosts_.matches(node.name)) return {false, kind};
    if (kind == Kind::kSwitch && switches_.is_given() && !switches_.matches(node.name)) return {false, kind};
    return {true, kind};
  }

 private:
  NameRegex hosts_, exclude_, switches_;
};

/// Unmarks switches with fewer than two cables to marked nodes, and those that have fewer without them.
void drop_dangling(const Cabling& cabling, std::vector<bool>& kept) {
  std::vector<std::vector<std::size_t>> neighbours(cabling.nodes.size());
  std::vector<std::size_t> degree(cabling.nodes.size(), 0), dangling;
  for (const Cable& cable : cabling.cables) {
    if (!kept[cable.a.node] || !kept[cable.b.node]) continue;
    for (const auto& [from, to] :
         {std::pair(cable.a.node, cable.b.node), std::pair(cable.b.node, cable.a.node)}) {
      neighbours[from].push_back(to);
      ++degree[from];
    }
  }
  const auto is_dangling = [&](std::size_t i) {
    return kept[i] && cabling.nodes[i].kind == Kind::kSwitch && degree[i] < 2;
  };
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (is_dangling(i)) dangling.push_back(i);
  }
  while (!dangling.empty()) {
    const std::size_t node = dangling.back();
    dangling.pop_back();
    if (!kept[node]) continue;
    kept[node] = false;
    for (const std::size_t other : neighbours[node]) {
      --degree[other];
      if (is_dangling(other)) dangling.push_back(other);
    }
  }
}

/// The marked nodes, without switches that join nothing then.
Cabling marked_part(Cabling cabling, std::vector<bool> kept, std::string_view why) {
  drop_dangling(cabling, kept);
  Cabling selected;
  selected.has_uplinks = cabling.has_uplinks;
  selected.heard_by_servers = cabling.heard_by_servers;
  selected.tier_rates = std::move(cabling.tier_rates);
  std::vector<std::size_t> index(kept.size(), 0);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    index[i] = selected.nodes.size();
    selected.nodes.push_back(std::move(cabling.nodes[i]));
  }
  for (Cable& cable : cabling.cables) {
    if (!kept[cable.a.node] || !kept[cable.b.node]) continue;
    cable.a.node = index[cable.a.node];
    cable.b.node = index[cable.b.node];
    selected.cables.push_back(std::move(cable));
  }
  selected.notes = std::move(cabling.notes);
  if (const std::size_t left_out = kept.size() - selected.nodes.size(); left_out > 0)
    selected.notes.push_back(fmt::format("{} of {} nodes are left out{}", left_out, kept.size(), why));
  return selected;
}

/// The options that were given, as they are typed.
std::string given(const NameSelection& selection) {
  std::string text;
  const auto add = [&](std::string_view option, const std::string& value) {
    if (!value.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : " ", option, in_quotes(value));
  };
  add("--hosts", selection.hosts);
  add("--exclude", selection.exclude);
  add("--switches", selection.switches);
  return text;
}

}  // namespace

Cabling select_job(Cabling cabling, std::span<const std::string> hosts) {
  const HostNames wanted(hosts);
  std::vector<bool> kept(cabling.nodes.size());
  for (std::size_t i = 0; i < kept.size(); ++i)
    kept[i] = cabling.nodes[i].kind != Kind::kServer || wanted.has(cabling.nodes[i].name);
  return marked_part(std::move(cabling), std::move(kept), ": those of other jobs and what only they need");
}

Cabling select_network(Cabling cabling, std::span<const std::string> hosts) {
  const HostNames wanted(hosts);
  UnionFind joined(cabling.nodes.size());
  for (const Cable& cable : cabling.cables) joined.join(cable.a.node, cable.b.node);
  std::vector<bool> of_job(cabling.nodes.size(), false), kept(cabling.nodes.size());
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (wanted.has(cabling.nodes[i].name)) of_job[joined.find(i)] = true;
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = of_job[joined.find(i)];
  return marked_part(std::move(cabling), std::move(kept), ": no cables join them with the hosts of the job");
}

Result<Cabling> select_nodes(Cabling cabling, const NameSelection& selection) {
  if (selection.hosts.empty() && selection.exclude.empty() && selection.switches.empty()) return cabling;
  auto hosts = NameRegex::create("--hosts", selection.hosts);
  if (!hosts) return fail(hosts.error());
  auto exclude = NameRegex::create("--exclude", selection.exclude);
  if (!exclude) return fail(exclude.error());
  auto switches = NameRegex::create("--switches", selection.switches);
  if (!switches) return fail(switches.error());
  const Selector selector(*std::move(hosts), *std::move(exclude), *std::move(switches));

  std::vector<bool> kept(cabling.nodes.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const Chosen chosen = selector.choose(cabling.nodes[i]);
    kept[i] = chosen.is_kept;
    cabling.nodes[i].kind = chosen.kind;
  }
  const std::size_t all = kept.size();
  Cabling selected = marked_part(std::move(cabling), std::move(kept), " by their names");
  const auto has = [&](bool is_switch) {
    return std::ranges::any_of(selected.nodes, [is_switch](const CabledNode& node) {
      return (node.kind == Kind::kSwitch) == is_switch;
    });
  };
  const bool has_servers = has(false);
  if (has_servers && (selection.switches.empty() || has(true))) return selected;
  return fail(Code::kInvalidArgument, fmt::format("{}: none of {} nodes is a {} then; widen the expressions",
                                                  given(selection), all, has_servers ? "switch" : "server"));
}

}  // namespace hips::topology

#include "topology/cabling/dot.hpp"

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "topology/cabling/cabling_builder.hpp"
#include "topology/cabling/dot_tokens.hpp"
#include "topology/cabling/node_role.hpp"
#include "topology/cabling/rate_words.hpp"
#include "topology/cabling/text_lines.hpp"
#include "topology/rates.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

using Attributes = std::vector<std::pair<std::string, std::string>>;

class DotReader {
 public:
  DotReader(std::string_view file, std::string_view text) : builder_(file), tokens_(file, text) {}

  Result<Cabling> read() {
    if (auto read = read_graph(); !read) return fail(read.error());
    const auto index = add_all();
    auto cabling = builder_.finish(R"(write edges such as "leaf1":"swp1" -- "spine1":"swp2")");
    for (std::size_t i = 0; cabling && i < nodes_.size(); ++i)
      if (nodes_[i].is_assumed) cabling->nodes[index[i]].is_assumed = true;
    return cabling;
  }

 private:
  struct Node {
    std::string id, label{}, shape{};
    CabledNode::Kind kind = CabledNode::Kind::kUnknown;
    std::int64_t line = 0;
    bool is_assumed = false;
  };
  struct Edge {
    CableEnd a, b;
    double rate = 0;
    double latency_ns = 0;
    bool up = true;
    bool is_rate_assumed = false;
    std::int64_t line = 0;
  };

  Result<void> advance() {
    auto token = tokens_.next();
    if (!token) return fail(token.error());
    token_ = *std::move(token);
    return {};
  }

  [[nodiscard]] tl::unexpected<Status> unexpected(std::string_view right) const {
    const std::string seen =
        token_.kind == DotToken::Kind::kEnd ? "the end of the file" : in_quotes(token_.text);
    return builder_.bad(token_.line, fmt::format("{} is unexpected; expected {}", seen, right));
  }

  Result<void> read_graph() {
    if (auto next = advance(); !next) return next;
    if (is_keyword("strict")) {
      if (auto next = advance(); !next) return next;
    }
    if (!is_keyword("graph") && !is_keyword("digraph")) return unexpected("\"graph\" or \"digraph\"");
    if (auto next = advance(); !next) return next;
    if (token_.kind == DotToken::Kind::kName) {
      if (auto next = advance(); !next) return next;
    }
    std::vector<std::size_t> members;
    return read_group(members, 0);
  }

  /// { STATEMENT ... }, whose nodes are added to `members`.
  Result<void> read_group(std::vector<std::size_t>& members, double rate) {
    constexpr std::size_t kMostGroups = 100;
    if (!token_.is('{')) return unexpected("\"{\"");
    if (rates_.size() >= kMostGroups)
      return builder_.bad(
          token_.line, fmt::format("groups are {} deep (valid: up to {})", rates_.size() + 1, kMostGroups));
    rates_.push_back(rate);
    if (auto next = advance(); !next) return next;
    while (!token_.is('}')) {
      if (token_.kind == DotToken::Kind::kEnd) return unexpected("\"}\"");
      if (is_too_much()) return too_much();
      if (auto read = token_.is(';') || token_.is(',') ? advance() : read_statement(members); !read)
        return read;
    }
    rates_.pop_back();
    return advance();
  }

  [[nodiscard]] bool is_too_much() const {
    return builder_.is_full() || edges_.size() > 2 * kMostCables || nodes_.size() > kMostCabledNodes;
  }
  [[nodiscard]] tl::unexpected<Status> too_much() const {
    return builder_.bad(token_.line, "more nodes and edges than a cluster can have");
  }

  [[nodiscard]] bool is_keyword(std::string_view word) const {
    return token_.kind == DotToken::Kind::kName && !token_.is_quoted && in_lower_case(token_.text) == word;
  }

  Result<void> read_statement(std::vector<std::size_t>& members) {
    const bool is_edge = is_keyword("edge");
    if (is_edge || is_keyword("graph") || is_keyword("node")) {
      if (auto next = advance(); !next) return next;
      Attributes defaults;
      if (token_.is('=')) return skip_value();
      if (auto read = read_attributes(defaults); !read) return read;
      for (const auto& [key, value] : defaults)
        if (is_edge && is_one_of(key, {"speed", "rate", "bandwidth"})) rates_.back() = rate_of_words(value);
      return {};
    }
    return read_nodes(members);
  }

  Result<void> skip_value() {
    if (auto next = advance(); !next) return next;
    if (token_.kind != DotToken::Kind::kName) return unexpected("a value");
    return advance();
  }

  /// A node or a group, or a chain of edges between them, with what follows it in brackets.
  Result<void> read_nodes(std::vector<std::size_t>& members) {
    const std::int64_t line = token_.line;
    const bool is_group = token_.is('{') || is_keyword("subgraph");
    std::vector<std::vector<CableEnd>> chain(1);
    if (auto read = read_ends(chain.back()); !read) return read;
    if (!is_group && token_.is('=')) {
      // An attribute of the graph: no node.
      if (is_new_) {
        by_id_.erase(nodes_.back().id);
        nodes_.pop_back();
      }
      return skip_value();
    }
    while (token_.kind == DotToken::Kind::kEdge) {
      if (auto next = advance(); !next) return next;
      if (auto read = read_ends(chain.emplace_back()); !read) return read;
    }
    Attributes attributes;
    if (auto read = read_attributes(attributes); !read) return read;
    for (const auto& ends : chain)
      for (const CableEnd& end : ends) members.push_back(end.node);
    if (chain.size() == 1 && !is_group) describe(nodes_[chain[0][0].node], attributes, line);
    if (chain.size() > 1) add_edges(chain, look_of(attributes, line));
    return is_too_much() ? too_much() : Result<void>();
  }

  /// A cable of each end to each next one.
  void add_edges(const std::vector<std::vector<CableEnd>>& chain, const Edge& look) {
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
      for (const CableEnd& a : chain[i]) {
        if (is_too_much()) return;
        for (const CableEnd& b : chain[i + 1]) {
          Edge edge = look;
          edge.a.node = a.node;
          edge.b.node = b.node;
          if (!a.port.empty()) edge.a.port = a.port;
          if (!b.port.empty()) edge.b.port = b.port;
          edges_.push_back(std::move(edge));
        }
      }
    }
  }

  /// One end of an edge, or all nodes of a group.
  Result<void> read_ends(std::vector<CableEnd>& ends) {
    if (is_keyword("subgraph")) {
      if (auto next = advance(); !next) return next;
      if (token_.kind == DotToken::Kind::kName) {
        if (auto next = advance(); !next) return next;
      }
    }
    if (!token_.is('{')) {
      auto end = read_end();
      if (!end) return fail(end.error());
      ends.push_back(*std::move(end));
      return {};
    }
    std::vector<std::size_t> members;
    if (auto read = read_group(members, rates_.back()); !read) return read;
    std::unordered_set<std::size_t> seen;
    for (const std::size_t node : members)
      if (seen.insert(node).second) ends.push_back({.node = node});
    return {};
  }

  /// NODE or NODE:PORT or NODE:PORT:COMPASS
  Result<CableEnd> read_end() {
    if (token_.kind != DotToken::Kind::kName) return unexpected("the name of a node");
    CableEnd end;
    const auto [known, is_new] = by_id_.try_emplace(token_.text, nodes_.size());
    is_new_ = is_new;
    if (is_new) nodes_.push_back({.id = token_.text, .line = token_.line});
    end.node = known->second;
    if (auto next = advance(); !next) return fail(next.error());
    for (int i = 0; token_.is(':'); ++i) {
      if (auto next = advance(); !next) return fail(next.error());
      if (token_.kind != DotToken::Kind::kName) return unexpected("the name of a port");
      if (i == 0) end.port = token_.text;
      if (auto next = advance(); !next) return fail(next.error());
    }
    return end;
  }

  Result<void> read_attributes(Attributes& attributes) {
    while (token_.is('[')) {
      if (auto next = advance(); !next) return next;
      while (!token_.is(']')) {
        if (token_.is(',') || token_.is(';')) {
          if (auto next = advance(); !next) return next;
          continue;
        }
        if (token_.kind != DotToken::Kind::kName) return unexpected("\"]\" or an attribute");
        attributes.emplace_back(in_lower_case(token_.text), "true");
        if (auto next = advance(); !next) return next;
        if (!token_.is('=')) continue;
        if (auto next = advance(); !next) return next;
        if (token_.kind != DotToken::Kind::kName) return unexpected("a value");
        attributes.back().second = token_.text;
        if (auto next = advance(); !next) return next;
      }
      if (auto next = advance(); !next) return next;
    }
    return {};
  }

  void ignore_attribute(std::int64_t line) {
    builder_.note("attributes of nodes and edges are ignored", line);
  }

  void describe(Node& node, const Attributes& attributes, std::int64_t line) {
    for (const auto& [key, value] : attributes) {
      if (key == "label") {
        node.label = value;
      } else if (key == "shape") {
        node.shape = value;
      } else if (key == "function" || key == "role") {
        node.kind = kind_of_role(value);
      } else if (key == "assumed") {
        node.is_assumed = in_lower_case(value) == "true";
      } else if (key != "style") {
        ignore_attribute(line);
      }
    }
  }

  /// What the attributes tell of an edge: ports, rate and state.
  Edge look_of(const Attributes& attributes, std::int64_t line) {
    Edge edge{.a = {}, .b = {}, .rate = rates_.back(), .line = line};
    for (const auto& [key, value] : attributes) {
      if (key == "taillabel") {
        edge.a.port = value;
      } else if (key == "headlabel") {
        edge.b.port = value;
      } else if (is_one_of(key, {"label", "speed", "rate", "bandwidth"})) {
        // A number alone is no rate: it may be anything.
        const bool has_unit = !value.empty() && !is_digit(value.back()) && value.back() != '.';
        if (in_lower_case(value) == "down") {
          edge.up = false;
        } else if (const double rate = has_unit || key != "label" ? rate_of_words(value) : 0; rate > 0) {
          edge.rate = rate;
        } else {
          ignore_attribute(line);
        }
      } else if (key == "assumed") {
        edge.is_rate_assumed = in_lower_case(value) == "true";
      } else if (const auto latency = key == "latency" ? read_latency_ns(value) : std::nullopt) {
        edge.latency_ns = *latency;
      } else if (key != "style") {
        ignore_attribute(line);
      }
    }
    return edge;
  }

  /// Result   by node, its index in the cabling.
  std::vector<std::size_t> add_all() {
    std::unordered_set<std::string_view> labels;
    bool are_names = true, are_shapes = true;
    for (const Node& node : nodes_) {
      are_names = are_names && !node.label.empty() && labels.insert(node.label).second;
      are_shapes = are_shapes && is_one_of(node.shape, {"box", "ellipse"});
    }
    std::vector<std::size_t> index;
    for (const Node& node : nodes_) {
      CabledNode::Kind kind = node.kind;
      if (kind == CabledNode::Kind::kUnknown && are_names && are_shapes)
        kind = node.shape == "box" ? CabledNode::Kind::kSwitch : CabledNode::Kind::kServer;
      index.push_back(builder_.node(are_names ? node.label : node.id, kind, node.line));
    }
    for (Edge& edge : edges_) {
      builder_.add({.a = {index[edge.a.node], std::move(edge.a.port)},
                    .b = {index[edge.b.node], std::move(edge.b.port)},
                    .bandwidth_bytes_per_s = edge.rate,
                    .latency_ns = edge.latency_ns,
                    .up = edge.up,
                    .line = edge.line,
                    .is_rate_assumed = edge.is_rate_assumed && edge.rate > 0});
    }
    return index;
  }

  CablingBuilder builder_;
  DotTokens tokens_;
  DotToken token_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, std::size_t> by_id_;
  std::vector<Edge> edges_;
  std::vector<double> rates_;  ///< of edges that tell none, by group around them; 0: not known
  bool is_new_ = false;        ///< did read_end() add its node?
};

}  // namespace

bool is_dot(std::string_view text) {
  DotTokens tokens("", text);
  auto token = tokens.next();
  if (token && token->kind == DotToken::Kind::kName && in_lower_case(token->text) == "strict")
    token = tokens.next();
  if (!token || token->kind != DotToken::Kind::kName || token->is_quoted) return false;
  const std::string word = in_lower_case(token->text);
  if (word != "graph" && word != "digraph") return false;
  token = tokens.next();
  if (token && token->kind == DotToken::Kind::kName) token = tokens.next();
  return token && token->is('{');
}

Result<Cabling> read_dot(std::string_view name, std::string_view text) {
  if (text.size() > kMostDotBytes) {
    return bad_line(name, 1,
                    fmt::format("the file has {} bytes (valid: up to {}); leave attributes out", text.size(),
                                kMostDotBytes));
  }
  return DotReader(name, text).read();
}

}  // namespace hips::topology

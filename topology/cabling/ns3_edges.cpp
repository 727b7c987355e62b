#include "topology/cabling/ns3_edges.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/counted.hpp"
#include "topology/cabling/cabling_builder.hpp"
#include "topology/cabling/rate_words.hpp"
#include "topology/cabling/text_lines.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

std::optional<std::size_t> number_of(std::string_view word) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

/// A delay: "1000ns", "0.001ms"; none if it is no delay.
std::optional<double> delay_ns(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || !(value >= 0) || value > 1e10) return std::nullopt;
  const std::string_view unit = word.substr(static_cast<std::size_t>(end - word.data()));
  if (unit == "ns") return value;
  if (unit == "us") return value * 1e3;
  if (unit == "ms") return value * 1e6;
  if (unit == "s" && value <= 10) return value * 1e9;
  return std::nullopt;
}

struct EdgesHeader {
  std::size_t num_nodes = 0, num_switches = 0, num_links = 0;
};

std::optional<EdgesHeader> read_edges_header(std::string_view line) {
  std::array<std::size_t, 3> numbers{};
  for (std::size_t& number : numbers) {
    const auto read = number_of(take_word(line));
    if (!read) return std::nullopt;
    number = *read;
  }
  if (!take_word(line).empty()) return std::nullopt;
  return EdgesHeader{numbers[0], numbers[1], numbers[2]};
}

class EdgesReader {
 public:
  EdgesReader(std::string_view file, std::string_view text) : lines_(text), builder_(file) {}

  Result<Cabling> read() {
    std::string_view line = next_line();
    const auto header = read_edges_header(line);
    if (!header)
      return bad(
          fmt::format("{} is not NODES SWITCHES LINKS; write three numbers such as 7 3 6", in_quotes(line)));
    header_ = *header;
    if (header_.num_nodes == 0 || header_.num_nodes > kMostCabledNodes || header_.num_links > kMostCables) {
      return bad(fmt::format("{} and {} are out of range (valid: 1 to {} and up to {})",
                             counted(header_.num_nodes, "node"), counted(header_.num_links, "link"),
                             kMostCabledNodes, kMostCables));
    }
    if (auto read = read_switches(); !read) return fail(read.error());
    if (auto read = read_links(); !read) return fail(read.error());
    add_cabling();
    while (!next_line().empty())
      builder_.note("lines behind the declared number of links are ignored", lines_.number());
    return builder_.finish("write lines of FROM TO RATE DELAY ERROR, such as 0 4 100Gbps 1000ns 0");
  }

 private:
  [[nodiscard]] tl::unexpected<Status> bad(std::string_view problem) const {
    return builder_.bad(std::max<std::int64_t>(1, lines_.number()), problem);
  }

  /// The next line with text; empty at the end.
  std::string_view next_line() {
    while (const auto line = lines_.next()) {
      if (const std::string_view text = without_blanks(*line); !text.empty()) return text;
    }
    return {};
  }

  Result<std::size_t> read_node(std::string_view word) const {
    const auto node = number_of(word);
    if (!node || *node >= header_.num_nodes)
      return bad(fmt::format("{} is no node; the nodes are 0 to {}", in_quotes(word), header_.num_nodes - 1));
    return *node;
  }

  /// The numbers of the switches may be spread over several lines.
  Result<void> read_switches() {
    are_switches_.resize(header_.num_nodes, false);
    for (std::size_t found = 0; found < header_.num_switches;) {
      std::string_view line = next_line();
      if (line.empty())
        return bad(fmt::format("{} of {} switches are named; name all of them behind the first line", found,
                               header_.num_switches));
      for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
        const auto node = read_node(word);
        if (!node) return fail(node.error());
        if (are_switches_[*node]) return bad(fmt::format("switch {} is named twice; name it once", *node));
        if (++found > header_.num_switches)
          return bad(fmt::format("more switches are named than the {} of the first line; make them equal",
                                 header_.num_switches));
        are_switches_[*node] = true;
      }
    }
    return {};
  }

  Result<void> read_links() {
    for (std::size_t i = 0; i < header_.num_links; ++i) {
      std::string_view line = next_line();
      if (line.empty())
        return bad(fmt::format("the file has {}, and the first line declares {}; make them equal",
                               counted(i, "link"), header_.num_links));
      const auto from = read_node(take_word(line));
      if (!from) return fail(from.error());
      const auto to = read_node(take_word(line));
      if (!to) return fail(to.error());
      const std::string_view rate_word = take_word(line);
      const double rate = rate_word.empty() || is_digit(rate_word.back()) ? 0 : rate_of_words(rate_word);
      if (rate == 0) return bad(fmt::format("{} is no rate; write such as 100Gbps", in_quotes(rate_word)));
      const std::string_view delay_word = take_word(line);
      const auto delay = delay_ns(delay_word);
      if (!delay) return bad(fmt::format("{} is no delay; write such as 1000ns", in_quotes(delay_word)));
      const auto end = [&](std::size_t node) { return CableEnd{node, std::to_string(++ports_[node])}; };
      const CableEnd a = end(*from), b = end(*to);
      cables_.push_back(
          {.a = a, .b = b, .bandwidth_bytes_per_s = rate, .latency_ns = *delay, .line = lines_.number()});
    }
    return {};
  }

  /// Adds the nodes that have links: a file of a few bytes may declare many that have none.
  void add_cabling() {
    std::map<std::size_t, std::size_t> index_of;
    for (const auto& [node, ports] : ports_) {
      const auto kind = are_switches_[node] ? CabledNode::Kind::kSwitch : CabledNode::Kind::kServer;
      index_of[node] = builder_.node(std::to_string(node), kind, 1);
    }
    for (Cable& cable : cables_) {
      cable.a.node = index_of.at(cable.a.node);
      cable.b.node = index_of.at(cable.b.node);
      builder_.add(std::move(cable));
    }
    if (const std::size_t unlinked = header_.num_nodes - ports_.size(); unlinked > 0)
      builder_.note("nodes without links are left out", 1, unlinked);
  }

  TextLines lines_;
  CablingBuilder builder_;
  EdgesHeader header_;
  std::vector<bool> are_switches_;
  std::map<std::size_t, std::size_t> ports_;  ///< by node: those that links take
  std::vector<Cable> cables_;                 ///< of which nodes are the numbers of the file
};

}  // namespace

bool is_ns3_edges(std::string_view text) {
  // A first line that is wrong, too: the reader says so. Tables have separators there.
  TextLines lines(text);
  bool has_header = false;
  while (const auto line = lines.next()) {
    std::string_view rest = without_blanks(*line);
    if (rest.empty()) continue;
    if (!has_header) {
      has_header = read_edges_header(rest) || rest.find_first_of(",;\t") == std::string_view::npos;
      if (!has_header) return false;
      continue;
    }
    // The numbers of switches, up to the first link.
    for (std::size_t words = 1; !rest.empty(); ++words) {
      const std::string_view word = take_word(rest);
      if (words == 3 && in_lower_case(word).ends_with("bps")) return true;
      if (!number_of(word)) return false;
    }
  }
  return false;
}

Result<Cabling> read_ns3_edges(std::string_view name, std::string_view text) {
  return EdgesReader(name, text).read();
}

}  // namespace hips::topology

#include "topology/cabling/cabling_builder.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "topology/cabling/text_lines.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

/// A key of the port; names may contain any character but NUL.
std::string key_of(const CableEnd& end) {
  return fmt::format("{}{}{}", end.node, '\0', end.port);
}

}  // namespace

std::size_t CablingBuilder::node(std::string_view name, CabledNode::Kind kind, std::int64_t line) {
  if (is_full()) return 0;
  const auto [known, is_new] = nodes_.try_emplace(std::string(name), result_.nodes.size());
  if (is_new) {
    result_.nodes.push_back({std::string(name), kind, line});
  } else if (result_.nodes[known->second].kind == CabledNode::Kind::kUnknown) {
    result_.nodes[known->second].kind = kind;
  }
  return known->second;
}

void CablingBuilder::complete(Cable& known, const Cable& cable) {
  const auto lower_of = [](double a, double b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); };
  known.bandwidth_bytes_per_s = lower_of(known.bandwidth_bytes_per_s, cable.bandwidth_bytes_per_s);
  known.latency_ns = std::max(known.latency_ns, cable.latency_ns);
  known.up = known.up && cable.up;
}

void CablingBuilder::add_unnamed(Cable cable) {
  const bool forth = cable.a.node < cable.b.node;
  Unnamed& between = forth ? unnamed_[{cable.a.node, cable.b.node}] : unnamed_[{cable.b.node, cable.a.node}];
  auto& same = forth ? between.forth : between.back;
  const auto& opposite = forth ? between.back : between.forth;
  if (same.size() < opposite.size()) {
    const std::size_t known = opposite[same.size()];
    complete(result_.cables[known], cable);
    same.push_back(known);
    return;
  }
  same.push_back(result_.cables.size());
  result_.cables.push_back(std::move(cable));
}

void CablingBuilder::add(Cable cable) {
  if (is_full()) return;
  if (cable.a.node == cable.b.node) {
    note("cables from a node to itself are ignored", cable.line, 1,
         fmt::format("{} to {}", end_text(cable.a), end_text(cable.b)));
    return;
  }
  if (cable.a.port.empty() || cable.b.port.empty()) return add_unnamed(std::move(cable));
  std::string a = key_of(cable.a), b = key_of(cable.b);
  if (b < a) std::swap(a, b);
  const auto [known, is_new] = cables_.try_emplace(a + '\0' + b, result_.cables.size());
  if (!is_new) return complete(result_.cables[known->second], cable);
  for (const CableEnd& end : {cable.a, cable.b}) {
    if (++ports_[key_of(end)] == 2) note("ports have more than one cable", cable.line, 1, end_text(end));
  }
  result_.cables.push_back(std::move(cable));
}

void CablingBuilder::note(std::string_view what, std::int64_t line, std::size_t count,
                          std::string_view example) {
  auto found = noted_.find(what);
  if (found == noted_.end()) {
    const bool has_example = !example.empty();
    std::string text = has_example ? fmt::format("{}, such as {}", what, example) : std::string(what);
    found = noted_.emplace(std::string(what), Noted{line, 0, std::move(text), has_example}).first;
  }
  found->second.count += count;
}

/// "n7 mlx5_0", of which an error or a note may be made.
std::string CablingBuilder::end_text(const CableEnd& end) const {
  const std::string& name = result_.nodes[end.node].name;
  return in_quotes(end.port.empty() ? name : name + " " + end.port);
}

tl::unexpected<Status> CablingBuilder::bad(std::int64_t line, std::string_view problem) const {
  return bad_line(file_, line, problem);
}

Result<Cabling> CablingBuilder::finish(std::string_view right) {
  if (is_full()) {
    const bool are_nodes = result_.nodes.size() > kMostCabledNodes;
    const std::int64_t line = are_nodes ? result_.nodes.back().line : result_.cables.back().line;
    return bad(line, fmt::format("more than {} {}; give a file of one cluster",
                                 are_nodes ? kMostCabledNodes : kMostCables, are_nodes ? "nodes" : "cables"));
  }
  std::vector<Noted> notes;
  for (auto& [what, noted] : noted_) notes.push_back(std::move(noted));
  std::ranges::sort(notes, {},
                    [](const Noted& noted) { return std::pair(noted.line, std::string_view(noted.text)); });
  for (Noted& noted : notes)
    if (noted.count > 1) noted.text += fmt::format(" ({} in all)", noted.count);
  if (result_.cables.empty()) {
    const auto why = std::ranges::find(notes, true, &Noted::has_example);
    if (why == notes.end()) return bad(1, fmt::format("the file has no cables; {}", right));
    return bad(std::max<std::int64_t>(1, why->line),
               fmt::format("the file has no cables: {}; {}", why->text, right));
  }
  for (const Noted& noted : notes) {
    const std::string line = noted.line == 0 ? "" : fmt::format(":{}", noted.line);
    result_.notes.push_back(fmt::format("{}{}: {}", file_, line, noted.text));
  }
  return std::move(result_);
}

}  // namespace hips::topology

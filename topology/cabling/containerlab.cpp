#include "topology/cabling/containerlab.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "topology/cabling/cabling_builder.hpp"
#include "topology/cabling/node_role.hpp"
#include "topology/cabling/text_lines.hpp"
#include "topology/formats/yaml_tree.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

const YamlNode* find_key(const YamlNode* mapping, std::string_view key) {
  if (mapping == nullptr || mapping->kind != YamlNode::Kind::kMapping) return nullptr;
  const auto found = std::ranges::find(mapping->items, key, &YamlNode::key);
  return found == mapping->items.end() ? nullptr : &*found;
}

std::string_view scalar_of(const YamlNode* node) {
  return node == nullptr || node->kind != YamlNode::Kind::kScalar ? std::string_view() : node->scalar;
}

class LabReader {
 public:
  explicit LabReader(std::string_view file) : builder_(file) {}

  Result<Cabling> read(const YamlNode& root) {
    const YamlNode* topology = find_key(&root, "topology");
    const YamlNode* nodes = find_key(topology, "nodes");
    const YamlNode* links = find_key(topology, "links");
    if (nodes == nullptr || nodes->kind != YamlNode::Kind::kMapping)
      return bad(topology == nullptr ? root : *topology,
                 "topology has no nodes; write nodes: with a mapping of them");
    if (links == nullptr || links->kind != YamlNode::Kind::kSequence)
      return bad(*topology, R"(topology has no links; write such as links: [{endpoints: ["a:e1", "b:e1"]}])");
    const std::string_view default_kind = scalar_of(find_key(find_key(topology, "defaults"), "kind"));
    for (const YamlNode& node : nodes->items) {
      const std::string_view own_kind = scalar_of(find_key(&node, "kind"));
      known_.emplace(node.key, builder_.node(node.key,
                                             kind_of(own_kind.empty() ? default_kind : own_kind,
                                                     scalar_of(find_key(&node, "group"))),
                                             line_of(node)));
    }
    for (const YamlNode& link : links->items) {
      if (auto read = read_link(link); !read) return fail(read.error());
    }
    return builder_.finish(R"(write links such as endpoints: ["a:e1", "b:e1"])");
  }

 private:
  static std::int64_t line_of(const YamlNode& node) { return static_cast<std::int64_t>(node.line); }

  [[nodiscard]] tl::unexpected<Status> bad(const YamlNode& node, std::string_view problem) const {
    return builder_.bad(line_of(node), problem);
  }

  static CabledNode::Kind kind_of(std::string_view kind, std::string_view group) {
    if (const auto told = kind_of_role(group); told != CabledNode::Kind::kUnknown) return told;
    return is_one_of(kind, {"", "linux"}) ? CabledNode::Kind::kUnknown : CabledNode::Kind::kSwitch;
  }

  Result<void> read_link(const YamlNode& link) {
    const YamlNode* endpoints = find_key(&link, "endpoints");
    const bool to_machine = is_one_of(scalar_of(find_key(&link, "type")),
                                      {"host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy"});
    if (to_machine) {
      ignore_link(link);
      return {};
    }
    if (endpoints == nullptr || endpoints->kind != YamlNode::Kind::kSequence || endpoints->items.size() != 2)
      return bad(link, R"(a link must have two endpoints, such as endpoints: ["a:e1", "b:e1"])");
    CableEnd ends[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const YamlNode& endpoint = endpoints->items[i];
      std::string_view node = scalar_of(find_key(&endpoint, "node"));
      std::string_view port = scalar_of(find_key(&endpoint, "interface"));
      if (endpoint.kind == YamlNode::Kind::kScalar) {
        const std::size_t colon = endpoint.scalar.find(':');
        node = std::string_view(endpoint.scalar).substr(0, colon);
        if (colon != std::string::npos) port = std::string_view(endpoint.scalar).substr(colon + 1);
      }
      if (node.empty() || port.empty())
        return bad(endpoint, fmt::format("the endpoint {} is not NODE:INTERFACE, such as \"leaf1:eth1\"",
                                         in_quotes(endpoint.scalar)));
      const auto known = known_.find(std::string(node));
      if (known == known_.end()) {
        if (is_one_of(node, {"host", "mgmt-net", "macvlan"})) {
          ignore_link(link);
          return {};
        }
        return bad(endpoint, fmt::format("the endpoint {} names the unknown node {}; add it to nodes",
                                         in_quotes(fmt::format("{}:{}", node, port)), in_quotes(node)));
      }
      ends[i] = {known->second, std::string(port)};
    }
    builder_.add({.a = std::move(ends[0]), .b = std::move(ends[1]), .line = line_of(link)});
    return {};
  }

  void ignore_link(const YamlNode& link) {
    builder_.note("links that lead out of the lab are ignored", line_of(link));
  }

  CablingBuilder builder_;
  std::unordered_map<std::string, std::size_t> known_;
};

}  // namespace

bool is_containerlab(std::string_view text) {
  bool has_topology = false;
  TextLines lines(text);
  while (const auto line = lines.next()) {
    if (line->starts_with("topology:")) has_topology = true;
    if (has_topology && line->find("endpoints") != std::string_view::npos) return true;
  }
  return false;
}

Result<Cabling> read_containerlab(std::string_view name, std::string_view text) {
  const auto root = read_yaml(name, text);
  if (!root) return fail(root.error());
  return LabReader(name).read(*root);
}

}  // namespace hips::topology

#include "topology/formats/file_values.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/rates.hpp"
#include "topology/spec.hpp"

namespace hips::topology {

tl::unexpected<Status> FileValues::bad(const YamlNode& node, std::string_view problem) const {
  return fail(Code::kInvalidArgument, fmt::format("{}: line {}: {}", name_, node.line, problem));
}

const YamlNode* FileValues::find(const YamlNode& mapping, std::string_view key) {
  const auto found = std::ranges::find(mapping.items, key, &YamlNode::key);
  return found == mapping.items.end() ? nullptr : &*found;
}

Result<void> FileValues::keys(const YamlNode& node, std::string_view what,
                              std::span<const std::string_view> known,
                              std::span<const std::string_view> elsewhere) const {
  const auto expected = [&] {
    std::vector<std::string_view> keys(known.begin(), known.end());
    std::erase_if(keys,
                  [&](std::string_view key) { return std::ranges::find(elsewhere, key) != elsewhere.end(); });
    return fmt::format("{}", fmt::join(keys, ", "));
  };
  if (node.kind != YamlNode::Kind::kMapping) {
    return bad(node,
               fmt::format("{} must be a mapping; write KEY: VALUE, with the keys {}", what, expected()));
  }
  for (const YamlNode& value : node.items) {
    if (std::ranges::find(known, value.key) == known.end())
      return bad(value, fmt::format("{} has the unknown key {}; expected {}", what, in_quotes(value.key),
                                    expected()));
  }
  return {};
}

Result<void> FileValues::sequence(const YamlNode& node) const {
  if (node.kind == YamlNode::Kind::kSequence) return {};
  return bad(node, fmt::format("{} must be a list; write [A, B], or a line \"- A\" for each",
                               node.key.empty() ? "the value" : node.key));
}

Result<std::string> FileValues::text(const YamlNode& node) const {
  if (node.kind == YamlNode::Kind::kScalar) return node.scalar;
  return bad(node, fmt::format("{} is a {}; write one value", node.key.empty() ? "the value" : node.key,
                               node.kind == YamlNode::Kind::kSequence ? "list" : "mapping"));
}

Result<std::int64_t> FileValues::number(const YamlNode& node, std::int64_t least, std::int64_t most) const {
  const auto read = text(node);
  if (!read) return fail(read.error());
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(read->data(), read->data() + read->size(), value);
  const bool whole = error == std::errc() && end == read->data() + read->size();
  if (whole && value >= least && value <= most) return value;
  return bad(node, fmt::format("{} is {}; it must be {}", node.key.empty() ? "the number" : node.key,
                               in_quotes(*read),
                               least == most ? fmt::format("{}", least)
                                             : fmt::format("a whole number from {} to {}", least, most)));
}

Result<bool> FileValues::boolean(const YamlNode& node) const {
  const auto read = text(node);
  if (!read) return fail(read.error());
  if (*read == "true") return true;
  if (*read == "false") return false;
  return bad(node, fmt::format("{} is {}; it must be true or false", node.key, in_quotes(*read)));
}

Result<double> FileValues::rate(const YamlNode& node) const {
  const auto read = text(node);
  if (!read) return fail(read.error());
  if (const auto value = read_rate(*read)) return *value;
  return bad(node, fmt::format("{} is {}; it must be {}", node.key, in_quotes(*read), kRightRate));
}

Result<double> FileValues::latency_ns(const YamlNode& node) const {
  const auto read = text(node);
  if (!read) return fail(read.error());
  if (const auto value = read_latency_ns(*read)) return *value;
  return bad(node, fmt::format("{} is {}; it must be {}", node.key, in_quotes(*read), kRightLatency));
}

Result<std::int64_t> FileValues::server(const YamlNode& node, const TopologyFile& file,
                                        const std::unordered_map<std::string, std::int64_t>& by_name) const {
  const auto read = text(node);
  if (!read) return fail(read.error());
  if (const auto found = by_name.find(*read); found != by_name.end()) return found->second;
  const std::int64_t last = file.topology.num_servers() - 1;
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(read->data(), read->data() + read->size(), value);
  if (error == std::errc() && end == read->data() + read->size() && value >= 0 && value <= last) return value;
  return bad(node, fmt::format("{} is {}; it must be {}a number from 0 to {}", node.key, in_quotes(*read),
                               file.server_names.empty() ? "" : "a name of servers: names, or ", last));
}

}  // namespace hips::topology

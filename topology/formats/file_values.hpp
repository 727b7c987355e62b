#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "topology/formats/topology_file.hpp"
#include "topology/formats/yaml_tree.hpp"

namespace hips::topology {

/// Reads values of a YAML tree. Every error names the file, the line, the key, the value seen and what would
/// be right.
class FileValues {
 public:
  explicit FileValues(std::string_view name) : name_(name) {}

  [[nodiscard]] tl::unexpected<Status> bad(const YamlNode& node, std::string_view problem) const;

  /// The value of a key, or null.
  static const YamlNode* find(const YamlNode& mapping, std::string_view key);

  /// Checks that the node is a mapping with these keys only. `what` names it in errors, which do not list those of `elsewhere`.
  [[nodiscard]] Result<void> keys(const YamlNode& node, std::string_view what,
                                  std::span<const std::string_view> known,
                                  std::span<const std::string_view> elsewhere = {}) const;
  [[nodiscard]] Result<void> sequence(const YamlNode& node) const;
  [[nodiscard]] Result<std::string> text(const YamlNode& node) const;
  [[nodiscard]] Result<std::int64_t> number(const YamlNode& node, std::int64_t least,
                                            std::int64_t most) const;
  [[nodiscard]] Result<bool> boolean(const YamlNode& node) const;
  [[nodiscard]] Result<double> rate(const YamlNode& node) const;
  [[nodiscard]] Result<double> latency_ns(const YamlNode& node) const;

  /// A server by name, or by number if no server has that name.
  [[nodiscard]] Result<std::int64_t> server(
      const YamlNode& node, const TopologyFile& file,
      const std::unordered_map<std::string, std::int64_t>& by_name) const;

 private:
  std::string name_;
};

}  // namespace hips::topology

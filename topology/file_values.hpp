#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "topology/topology_file.hpp"
#include "topology/yaml_tree.hpp"

namespace hips::topology {

/// Takes values out of a YAML tree; every complaint names the file, the line, the key, what stands there and
/// what would be right.
class FileValues {
 public:
  explicit FileValues(std::string_view name) : name_(name) {}

  [[nodiscard]] tl::unexpected<Status> bad(const YamlNode& node, std::string_view problem) const;

  /// The value of a key, or null.
  static const YamlNode* find(const YamlNode& mapping, std::string_view key);

  /// Is it a mapping, of these keys only? `what` is what it describes.
  [[nodiscard]] Result<void> keys(const YamlNode& node, std::string_view what,
                                  std::span<const std::string_view> known) const;
  [[nodiscard]] Result<void> sequence(const YamlNode& node) const;
  [[nodiscard]] Result<std::string> text(const YamlNode& node) const;
  [[nodiscard]] Result<std::int64_t> number(const YamlNode& node, std::int64_t least,
                                            std::int64_t most) const;
  [[nodiscard]] Result<bool> boolean(const YamlNode& node) const;
  [[nodiscard]] Result<double> rate(const YamlNode& node) const;
  [[nodiscard]] Result<double> latency_ns(const YamlNode& node) const;

  /// A server by name, or by number where no server has that name.
  [[nodiscard]] Result<std::int64_t> server(
      const YamlNode& node, const TopologyFile& file,
      const std::unordered_map<std::string, std::int64_t>& by_name) const;

 private:
  std::string name_;
};

}  // namespace hips::topology

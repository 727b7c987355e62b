#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "topology/clusters/hostlist.hpp"
#include "topology/clusters/slurm.hpp"
#include "topology/clusters/slurm_source.hpp"

namespace hips::topology {

/// x, y, z.
using SlurmTriple = std::array<std::int64_t, 3>;

/// The largest side, and the largest coordinate, that Slurm accepts.
inline constexpr std::int64_t kMostSlurmSide = 65535;

/// Nodes in a box of a torus; x varies fastest.
struct SlurmRegion {
  std::size_t line = 0;
  SlurmTriple anchor{0, 0, 0}, dims{1, 1, 1};
  std::string nodes{};  ///< a hostlist
};

/// A ring or a torus in its file. A ring has one side, whose length is the number of its nodes.
struct SlurmUnit {
  std::size_t line = 0;
  std::string name{};
  SlurmTriple dims{0, 1, 1};
  std::vector<SlurmRegion> regions{};
};

/// The rings (topology/ring) or toruses (topology/torus3d) of one topology, and their conversion.
class SlurmToruses {
 public:
  /// `kind` is "ring" or "torus".
  SlurmToruses(SlurmSource file, std::string_view kind) : file_(std::move(file)), kind_(kind) {}

  /// Errors   kInvalidArgument: a name or a node that occurs twice, nodes that do not fill their box, boxes
  ///          that overlap or exceed their torus.
  Result<void> add(const SlurmUnit& unit);

  [[nodiscard]] bool empty() const { return units_.empty(); }

  /// Converts the unit called `which`, or the only one or that of the job, to a torus with servers in Slurm's order: x varies
  /// fastest, and NIC 0 is x+. If places are empty it is a part.
  ///
  /// Errors   kInvalidArgument: unknown name. kUnsupported: several and none is chosen; no cable joins them.
  Result<ClusterTopology> finish(std::string_view which, const SlurmOptions& options,
                                 std::vector<std::string> notes);

 private:
  struct Unit {
    std::string name;
    std::size_t line = 0;
    SlurmTriple dims{1, 1, 1};
    std::map<std::int64_t, std::string> nodes;  ///< by place
  };

  [[nodiscard]] tl::unexpected<Status> bad(std::size_t line, std::string_view problem,
                                           Code code = Code::kInvalidArgument) const;
  Result<std::vector<std::string>> names(const SlurmRegion& region);
  Result<void> add_region(const SlurmRegion& region, Unit& unit);
  [[nodiscard]] const Unit* unit_of(const std::vector<std::string>& job) const;

  SlurmSource file_;
  std::string kind_;
  std::vector<Unit> units_;
  std::unordered_map<std::string, std::size_t> line_of_;  ///< of units, by their names
  std::unordered_set<std::string> hosts_;
  HostlistExpander expander_;
};

}  // namespace hips::topology

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "topology/slurm.hpp"

namespace hips::topology {

/// x, y, z.
using SlurmTriple = std::array<std::int64_t, 3>;

/// The largest side that Slurm takes, and largest place.
inline constexpr std::int64_t kMostSlurmSide = 65535;

/// Nodes in a box of a torus, x running fastest.
struct SlurmRegion {
  std::size_t line = 0;
  SlurmTriple anchor{0, 0, 0}, dims{1, 1, 1};
  std::string nodes{};  ///< a hostlist
};

/// A ring or a torus as its file has it. A ring's one side is as long as it has nodes.
struct SlurmUnit {
  std::size_t line = 0;
  std::string name{};
  SlurmTriple dims{0, 1, 1};
  std::vector<SlurmRegion> regions{};
};

/// The rings (topology/ring) or toruses (topology/torus3d) of one topology, and what one of them is here.
class SlurmToruses {
 public:
  /// `kind` is "ring" or "torus".
  SlurmToruses(std::string_view file, std::string_view kind) : file_(file), kind_(kind) {}

  /// Errors   kInvalidArgument: a name or a node that another has, nodes that do not fill their box, boxes
  ///          that overlap or stand out of their torus.
  Result<void> add(const SlurmUnit& unit);

  [[nodiscard]] bool empty() const { return units_.empty(); }

  /// The unit called `which`, or the only one, as a torus whose servers stand in Slurm's order: x fastest,
  /// NIC 0 being x+. Where places are empty it is a part.
  ///
  /// Errors   kInvalidArgument: none is called so. kUnsupported: several and none is chosen, for no cable
  ///          leads from one to the other.
  Result<SlurmTopology> finish(std::string_view which, std::vector<std::string> notes);

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

  std::string file_, kind_;
  std::vector<Unit> units_;
  std::unordered_set<std::string> hosts_;
  std::uint64_t num_names_ = 0;
};

}  // namespace hips::topology

#include "topology/families/grid.hpp"

// A grid whose dimensions are lines: a torus without the cables that close its rings. Ports at the edges are
// not connected.
//
//   (0) +]---[- (1) +]---[- (2)

namespace hips::topology {

const FamilyEntry kMeshFamily = {
    .family = Family::kMesh,
    .keyword = "mesh",
    .usage = "mesh:AxBxC (such as mesh:4x4, a torus without wrap)",
    .example = "mesh:3x5",
    .make = [](const Spec& spec) { return make_grid(spec, "mesh", "Mesh", LevelKind::kLine); },
    .address = grid_address,
    .switch_name = grid_switch_name,
    .wire = wire_grid,
};

}  // namespace hips::topology

#include "topology/families/grid.hpp"

// A grid whose dimensions are rings.
//
//   ... -[- (0) +]---[- (1) +]---[- (2) +]- ...    the last is joined to the first
//
// A side of 2 has two cables between the same two servers, which use different ports and both count.

namespace hips::topology {

const FamilyEntry kTorusFamily = {
    .family = Family::kTorus,
    .keyword = "torus",
    .usage = "torus:AxBxC (such as torus:4x4)",
    .example = "torus:4x4",
    .make = [](const Spec& spec) { return make_grid(spec, "torus", "Torus", LevelKind::kRing); },
    .address = grid_address,
    .switch_name = grid_switch_name,
    .wire = wire_grid,
};

}  // namespace hips::topology

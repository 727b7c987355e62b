#include "topology/names.hpp"

namespace hips {

const char* to_string(Family family) {
  switch (family) {
    case Family::kBCube:
      return "bcube";
    case Family::kTorus:
      return "torus";
    case Family::kMesh:
      return "mesh";
    case Family::kFatTree:
      return "fattree";
    case Family::kLeafSpine:
      return "leafspine";
    case Family::kRail:
      return "rail";
    case Family::kSwitch:
      return "switch";
    case Family::kGraph:
      return "graph";
  }
  return "unknown family";
}

const char* to_string(LevelKind kind) {
  switch (kind) {
    case LevelKind::kSwitch:
      return "switch";
    case LevelKind::kRing:
      return "ring";
    case LevelKind::kLine:
      return "line";
    case LevelKind::kTree:
      return "tree";
    case LevelKind::kNode:
      return "node";
  }
  return "unknown kind";
}

}  // namespace hips

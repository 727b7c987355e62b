#include <array>

#include "topology/family.hpp"

namespace hips::topology {

std::span<const FamilyEntry* const> families() {
  static constexpr std::array kFamilies = {
      &kBCubeFamily,     &kTorusFamily, &kMeshFamily,   &kFatTreeFamily,
      &kLeafSpineFamily, &kRailFamily,  &kSwitchFamily,
  };
  return kFamilies;
}

const FamilyEntry& entry_of(Family family) {
  for (const FamilyEntry* entry : families()) {
    if (entry->family == family) return *entry;
  }
  throw Error(Status::error(Code::kInternal, "topology: a family without an entry in families.cpp"));
}

}  // namespace hips::topology

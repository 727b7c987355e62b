#include "lib/mpi/tuning/adoption_terms.hpp"

#include <functional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "lib/comm/process.hpp"
#include "lib/mpi/native/native_mpi.hpp"

namespace hips::mpi {
namespace {

/// What one rank says. Bytes without gaps: they are exchanged as they are.
struct Wish {
  std::uint64_t node = 0;
  std::uint32_t at_once = 0, names_plan = 0;
  std::uint32_t derives = 0, computes_elsewhere = 0;
};
static_assert(sizeof(Wish) == 24, "has no gaps");

}  // namespace

Result<AdoptionTerms> agree_on_adoption(MPI_Comm comm, int size, const Config& config, bool is_wrong,
                                        bool derives, bool computes_elsewhere) {
  const NativeMpi& mpi = *native_mpi();
  Wish mine;
  mine.node = std::hash<std::string_view>{}(comm::this_process().node_key);
  mine.at_once = is_wrong || config.adopt == Adopt::kAlways || (config.guard && !*config.guard) ||
                 config.reproducible != Reproducible::kOff;
  mine.names_plan = names_a_plan(config);
  mine.derives = derives ? 1 : 0;
  mine.computes_elsewhere = computes_elsewhere ? 1 : 0;
  std::vector<Wish> all(static_cast<std::size_t>(size));
  constexpr int kBytes = sizeof(Wish);
  if (const int code = mpi.Allgather(&mine, kBytes, mpi.byte_type, all.data(), kBytes, mpi.byte_type, comm);
      code != MPI_SUCCESS) {
    return fail(Code::kAborted, fmt::format("native MPI's MPI_Allgather failed with code {}", code));
  }
  AdoptionTerms terms{.at_once = false, .one_node = true, .derives = true};
  bool names_plan = false;
  for (const Wish& wish : all) {
    terms.at_once = terms.at_once || wish.at_once != 0;
    names_plan = names_plan || wish.names_plan != 0;
    terms.derives = terms.derives && wish.derives != 0;
    terms.computes_elsewhere = terms.computes_elsewhere || wish.computes_elsewhere != 0;
    terms.one_node = terms.one_node && wish.node == all.front().node;
  }
  terms.at_once = terms.at_once || (names_plan && terms.one_node);
  return terms;
}

}  // namespace hips::mpi

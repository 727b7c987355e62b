#include "lib/mpi/tuning/adoption.hpp"

#include <algorithm>

namespace hips::mpi {
namespace {

// Of one node, for each rank. Measured with 2 to 9 ranks: a set-up takes 300 us with two and 850 with four ranks on two cores,
// and a short allreduce is 0.6 us shorter than Open MPI's, a long one 0.25 ns a byte.
constexpr std::int64_t kNodeSetUpNs = 150'000, kNodeSavedNs = 300;
constexpr int kNodeBytesShift = 2;
// Between nodes, for each rank. Measured with the network in it: 20 ms with two, 80 with five, 160 with nine ranks of as many
// namespaces on two cores, twice that at 200 Mbit/s; less where each has cores of its own. What is saved depends on the NICs; a call
// of a few bytes saves little, a long one about what 16 Gbit/s carry.
constexpr std::int64_t kNodesSetUpNs = 5'000'000, kNodesSavedNs = 2'000;
constexpr int kNodesBytesShift = 1;

}  // namespace

Adoption::Adoption(int size, bool one_node)
    : set_up_ns_(size * (one_node ? kNodeSetUpNs : kNodesSetUpNs)),
      saved_per_call_ns_(size * (one_node ? kNodeSavedNs : kNodesSavedNs)),
      bytes_shift_(one_node ? kNodeBytesShift : kNodesBytesShift) {}

void Adoption::note_met(int size) {
  set_up_ns_ = std::min(set_up_ns_, size * kDerivedNs);
}

}  // namespace hips::mpi

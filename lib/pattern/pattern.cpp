// The patterns are constexpr headers. This file checks the claims of their comments.
#include "lib/pattern/halving.hpp"
#include "lib/pattern/mesh.hpp"
#include "lib/pattern/modulo.hpp"
#include "lib/pattern/ps.hpp"
#include "lib/pattern/ring.hpp"

namespace hips::pattern {

static_assert(modulo(-1, 5) == 4 && modulo(5, 5) == 0);
// In round t member j sends piece j-1-t; it ends owning piece j.
static_assert(scatter_sends({.size = 5}, 3, 0) == 2 && scatter_receives({.size = 5}, 3, 3) == 3);
static_assert(scatter_sends({.size = 5, .direction = -1}, 3, 0) == 4);
static_assert(leads({.size = 4, .num_leaders = 4}, 3) && leader_index({.size = 4, .num_leaders = 4}, 3) == 3);
static_assert(core_member(Halving{.size = 6}, 1) == 3 && core_index(Halving{.size = 6}, 5) == 3);

}  // namespace hips::pattern

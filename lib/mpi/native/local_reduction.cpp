#include "lib/mpi/native/local_reduction.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <hips/hips.h>

#include "lib/mpi/native/abi.hpp"
#include "lib/mpi/native/native_mpi.hpp"
#include "lib/mpi/native/predefined.hpp"

namespace hips::mpi {
namespace {

/// The context of an operation of HiPS.
struct TypeAndOp {
  MPI_Datatype type;
  MPI_Op op;
};

void reduce_locally(const void* in, void* inout, std::uint64_t count, hips_type_t type, void* context) {
  const TypeAndOp& native = *static_cast<const TypeAndOp*>(context);
  const std::uint64_t extent = size_of(static_cast<DataType>(type));
  // Functions of MPI programs count elements, and perhaps bytes, in ints.
  const std::uint64_t most = (std::uint64_t{1} << 30U) / extent;
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(inout);
  while (count > 0) {
    const std::uint64_t now = std::min(count, most);
    native_mpi()->Reduce_local(from, to, static_cast<int>(now), native.type, native.op);
    from += now * extent;
    to += now * extent;
    count -= now;
  }
}

/// Something of the program, by the address or number that its handle is.
struct Freed {
  enum Kind { kType, kOp } kind;
  void* handle;
};

/// The operations in use, and what the program has freed of them.
class Reductions {
 public:
  std::optional<ReduceOp> share(MPI_Datatype type, MPI_Op op, bool commutes) {
    const std::lock_guard lock(mutex_);
    Entry& entry = entries_[{to_context(type), to_context(op)}];
    if (entry.shares == 0) {
      auto context = std::make_unique<TypeAndOp>(TypeAndOp{type, op});
      hips_op_t made = HIPS_OP_NULL;
      if (hips_op_create(
              reduce_locally, commutes ? 1 : 0, context.get(),
              [](void* ended) { delete static_cast<TypeAndOp*>(ended); }, &made) == HIPS_OK) {
        (void)context.release();
        entry.op = static_cast<ReduceOp>(made);
      }
    }
    ++entry.shares;
    num_shares_.fetch_add(1, std::memory_order_relaxed);
    return entry.op;
  }

  void let_go(MPI_Datatype type, MPI_Op op) {
    std::vector<Freed> unused;
    {
      const std::lock_guard lock(mutex_);
      num_shares_.fetch_sub(1, std::memory_order_relaxed);
      const auto found = entries_.find({to_context(type), to_context(op)});
      if (--found->second.shares > 0) return;
      if (found->second.op) {
        auto ended = static_cast<hips_op_t>(*found->second.op);
        (void)hips_op_free(&ended);
      }
      entries_.erase(found);
      const auto first =
          std::partition(freed_.begin(), freed_.end(), [this](const Freed& freed) { return uses(freed); });
      unused.assign(first, freed_.end());
      freed_.erase(first, freed_.end());
    }
    for (const Freed& freed : unused) {
      auto own_type = from_context<MPI_Datatype>(freed.handle);
      auto own_op = from_context<MPI_Op>(freed.handle);
      freed.kind == Freed::kType ? native_mpi()->Type_free(&own_type) : native_mpi()->Op_free(&own_op);
    }
  }

  /// False where nothing uses it.
  bool postpone(const Freed& freed) {
    const std::lock_guard lock(mutex_);
    if (!uses(freed)) return false;
    freed_.push_back(freed);
    return true;
  }

  [[nodiscard]] bool has_shares() const { return num_shares_.load(std::memory_order_relaxed) > 0; }

 private:
  struct Entry {
    std::optional<ReduceOp> op;
    std::uint64_t shares = 0;
  };

  [[nodiscard]] bool uses(const Freed& freed) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
      return (freed.kind == Freed::kType ? entry.first.first : entry.first.second) == freed.handle;
    });
  }

  std::mutex mutex_;
  std::map<std::pair<void*, void*>, Entry> entries_;  ///< by type and operation
  std::vector<Freed> freed_;
  std::atomic<std::int64_t> num_shares_{0};
};

Reductions& all_reductions() {
  // Never destroyed: a request may end while the process does.
  static Reductions& only = *new Reductions;
  return only;
}

bool is_predefined(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  return type == MPI_Datatype{} || type == native_mpi()->no_type ||
         native_mpi()->Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS ||
         combiner == MPI_COMBINER_NAMED;
}

}  // namespace

LocalReduction::LocalReduction(MPI_Datatype type, MPI_Op op, bool commutes)
    : type_(type), op_(op), of_hips_(all_reductions().share(type, op, commutes)) {}

LocalReduction::~LocalReduction() {
  all_reductions().let_go(type_, op_);
}

bool LocalReduction::any() {
  return all_reductions().has_shares();
}

bool type_free(MPI_Datatype* type) {
  if (!LocalReduction::any() || type == nullptr || is_predefined(*type)) return false;
  if (!all_reductions().postpone({Freed::kType, to_context(*type)})) return false;
  *type = native_mpi()->no_type;
  return true;
}

bool op_free(MPI_Op* op) {
  if (!LocalReduction::any() || op == nullptr || is_predefined_op(*op)) return false;
  if (!all_reductions().postpone({Freed::kOp, to_context(*op)})) return false;
  *op = native_mpi()->no_op;
  return true;
}

}  // namespace hips::mpi

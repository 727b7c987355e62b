#include "lib/mpi/predefined.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "lib/mpi/host.hpp"

namespace hips::mpi {
namespace {

enum class Kind { kInteger, kReal };

struct NamedType {
  const char* object;  ///< whose address Open MPI's handle is
  Kind kind;
};

// The Fortran ones are handles of their own, also where they mean the same as one of C.
constexpr std::array kNamedTypes = {
    NamedType{"ompi_mpi_int", Kind::kInteger},
    NamedType{"ompi_mpi_long", Kind::kInteger},
    NamedType{"ompi_mpi_long_long_int", Kind::kInteger},
    NamedType{"ompi_mpi_int32_t", Kind::kInteger},
    NamedType{"ompi_mpi_int64_t", Kind::kInteger},
    NamedType{"ompi_mpi_aint", Kind::kInteger},
    NamedType{"ompi_mpi_offset", Kind::kInteger},
    NamedType{"ompi_mpi_count", Kind::kInteger},
    NamedType{"ompi_mpi_integer", Kind::kInteger},
    NamedType{"ompi_mpi_integer4", Kind::kInteger},
    NamedType{"ompi_mpi_integer8", Kind::kInteger},
    NamedType{"ompi_mpi_float", Kind::kReal},
    NamedType{"ompi_mpi_double", Kind::kReal},
    NamedType{"ompi_mpi_real", Kind::kReal},
    NamedType{"ompi_mpi_real4", Kind::kReal},
    NamedType{"ompi_mpi_real8", Kind::kReal},
    NamedType{"ompi_mpi_dblprec", Kind::kReal},
};

struct NamedOp {
  const char* object;
  const char* name;
  std::optional<hips_op_t> op;
};

constexpr std::array kNamedOps = {
    NamedOp{"ompi_mpi_op_sum", "MPI_SUM", HIPS_SUM},   NamedOp{"ompi_mpi_op_prod", "MPI_PROD", HIPS_PROD},
    NamedOp{"ompi_mpi_op_min", "MPI_MIN", HIPS_MIN},   NamedOp{"ompi_mpi_op_max", "MPI_MAX", HIPS_MAX},
    NamedOp{"ompi_mpi_op_land", "MPI_LAND", {}},       NamedOp{"ompi_mpi_op_lor", "MPI_LOR", {}},
    NamedOp{"ompi_mpi_op_lxor", "MPI_LXOR", {}},       NamedOp{"ompi_mpi_op_band", "MPI_BAND", {}},
    NamedOp{"ompi_mpi_op_bor", "MPI_BOR", {}},         NamedOp{"ompi_mpi_op_bxor", "MPI_BXOR", {}},
    NamedOp{"ompi_mpi_op_maxloc", "MPI_MAXLOC", {}},   NamedOp{"ompi_mpi_op_minloc", "MPI_MINLOC", {}},
    NamedOp{"ompi_mpi_op_replace", "MPI_REPLACE", {}}, NamedOp{"ompi_mpi_op_no_op", "MPI_NO_OP", {}},
};

struct TypeEntry {
  MPI_Datatype handle;
  hips_type_t type;
};
struct OpEntry {
  MPI_Op handle;
  const NamedOp* named;
};

std::vector<TypeEntry> make_types() {
  std::vector<TypeEntry> types;
  for (const NamedType& named : kNamedTypes) {
    const auto handle = static_cast<MPI_Datatype>(host_symbol(named.object));
    int size = 0;
    // A type that the host's Fortran compiler lacks has no size.
    if (!handle || host()->Type_size(handle, &size) != MPI_SUCCESS) continue;
    if (size == 4) types.push_back({handle, named.kind == Kind::kReal ? HIPS_FLOAT32 : HIPS_INT32});
    if (size == 8) types.push_back({handle, named.kind == Kind::kReal ? HIPS_FLOAT64 : HIPS_INT64});
  }
  return types;
}

const OpEntry* find_op(MPI_Op op) {
  static const std::vector<OpEntry> ops = [] {
    std::vector<OpEntry> entries;
    for (const NamedOp& named : kNamedOps) {
      if (auto handle = static_cast<MPI_Op>(host_symbol(named.object))) entries.push_back({handle, &named});
    }
    return entries;
  }();
  const auto found =
      std::find_if(ops.begin(), ops.end(), [op](const OpEntry& entry) { return entry.handle == op; });
  return found == ops.end() ? nullptr : &*found;
}

}  // namespace

std::optional<hips_type_t> type_of(MPI_Datatype type) {
  static const std::vector<TypeEntry> types = make_types();
  for (const TypeEntry& entry : types) {
    if (entry.handle == type) return entry.type;
  }
  return std::nullopt;
}

std::optional<hips_op_t> op_of(MPI_Op op) {
  const OpEntry* entry = find_op(op);
  return entry ? entry->named->op : std::nullopt;
}

std::string name_of_type(MPI_Datatype type) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (!type || type == host()->no_type) return "MPI_DATATYPE_NULL";
  // Only predefined types have a name from the start; a user may give one to a derived type.
  if (host()->Type_get_name(type, name, &length) != MPI_SUCCESS || length == 0) return "a derived type";
  return {name, static_cast<std::size_t>(length)};
}

std::string name_of_op(MPI_Op op) {
  const OpEntry* entry = find_op(op);
  return entry ? entry->named->name : "a user's op";
}

}  // namespace hips::mpi

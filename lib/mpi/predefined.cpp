#include "lib/mpi/predefined.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/mpi/abi.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/preload_tls.hpp"

namespace hips::mpi {
namespace {

/// The groups of the standard's table "Predefined Reduction Operations" as far as HiPS has their types.
enum class Group : std::uint8_t { kCInteger, kFortranInteger, kMultiLanguage, kFloating, kCBool, kByte };

enum class Sign : std::uint8_t { kSigned, kUnsigned };

struct NamedType {
  Predefined<MPI_Datatype> host;
  Group group;
  Sign sign = Sign::kSigned;
};

// The Fortran ones are handles of their own, also where they mean the same as one of C. What programs reduce
// most comes first: each call looks its type up from here.
constexpr std::array kNamedTypes = {
    NamedType{HIPS_MPI_PREDEFINED(MPI_FLOAT, "ompi_mpi_float"), Group::kFloating},
    NamedType{HIPS_MPI_PREDEFINED(MPI_DOUBLE, "ompi_mpi_double"), Group::kFloating},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INT, "ompi_mpi_int"), Group::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_DOUBLE_PRECISION, "ompi_mpi_dblprec"), Group::kFloating},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INTEGER, "ompi_mpi_integer"), Group::kFortranInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_LONG, "ompi_mpi_long"), Group::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UNSIGNED_LONG, "ompi_mpi_unsigned_long"), Group::kCInteger,
              Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INT64_T, "ompi_mpi_int64_t"), Group::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UINT64_T, "ompi_mpi_uint64_t"), Group::kCInteger, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UNSIGNED, "ompi_mpi_unsigned"), Group::kCInteger, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INT32_T, "ompi_mpi_int32_t"), Group::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UINT32_T, "ompi_mpi_uint32_t"), Group::kCInteger, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_REAL, "ompi_mpi_real"), Group::kFloating},
    NamedType{HIPS_MPI_PREDEFINED(MPI_REAL4, "ompi_mpi_real4"), Group::kFloating},
    NamedType{HIPS_MPI_PREDEFINED(MPI_REAL8, "ompi_mpi_real8"), Group::kFloating},
    NamedType{HIPS_MPI_PREDEFINED(MPI_LONG_LONG_INT, "ompi_mpi_long_long_int"), Group::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UNSIGNED_LONG_LONG, "ompi_mpi_unsigned_long_long"), Group::kCInteger,
              Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INTEGER8, "ompi_mpi_integer8"), Group::kFortranInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INTEGER4, "ompi_mpi_integer4"), Group::kFortranInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INTEGER2, "ompi_mpi_integer2"), Group::kFortranInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INTEGER1, "ompi_mpi_integer1"), Group::kFortranInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INT16_T, "ompi_mpi_int16_t"), Group::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UINT16_T, "ompi_mpi_uint16_t"), Group::kCInteger, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_SHORT, "ompi_mpi_short"), Group::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UNSIGNED_SHORT, "ompi_mpi_unsigned_short"), Group::kCInteger,
              Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INT8_T, "ompi_mpi_int8_t"), Group::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UINT8_T, "ompi_mpi_uint8_t"), Group::kCInteger, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_SIGNED_CHAR, "ompi_mpi_signed_char"), Group::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UNSIGNED_CHAR, "ompi_mpi_unsigned_char"), Group::kCInteger,
              Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_BYTE, "ompi_mpi_byte"), Group::kByte, Sign::kUnsigned},
    // 0 and 1 in a byte, which logical operations keep.
    NamedType{HIPS_MPI_PREDEFINED(MPI_C_BOOL, "ompi_mpi_c_bool"), Group::kCBool, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_CXX_BOOL, "ompi_mpi_cxx_bool"), Group::kCBool, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_AINT, "ompi_mpi_aint"), Group::kMultiLanguage},
    NamedType{HIPS_MPI_PREDEFINED(MPI_OFFSET, "ompi_mpi_offset"), Group::kMultiLanguage},
    NamedType{HIPS_MPI_PREDEFINED(MPI_COUNT, "ompi_mpi_count"), Group::kMultiLanguage},
};

struct NamedOp {
  Predefined<MPI_Op> host;
  const char* name;
  std::optional<ReduceOp> op;
};

constexpr std::array kNamedOps = {
    NamedOp{HIPS_MPI_PREDEFINED(MPI_SUM, "ompi_mpi_op_sum"), "MPI_SUM", ReduceOp::kSum},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_MAX, "ompi_mpi_op_max"), "MPI_MAX", ReduceOp::kMax},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_MIN, "ompi_mpi_op_min"), "MPI_MIN", ReduceOp::kMin},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_PROD, "ompi_mpi_op_prod"), "MPI_PROD", ReduceOp::kProd},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_LAND, "ompi_mpi_op_land"), "MPI_LAND", ReduceOp::kLand},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_LOR, "ompi_mpi_op_lor"), "MPI_LOR", ReduceOp::kLor},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_LXOR, "ompi_mpi_op_lxor"), "MPI_LXOR", ReduceOp::kLxor},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_BAND, "ompi_mpi_op_band"), "MPI_BAND", ReduceOp::kBand},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_BOR, "ompi_mpi_op_bor"), "MPI_BOR", ReduceOp::kBor},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_BXOR, "ompi_mpi_op_bxor"), "MPI_BXOR", ReduceOp::kBxor},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_MAXLOC, "ompi_mpi_op_maxloc"), "MPI_MAXLOC", {}},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_MINLOC, "ompi_mpi_op_minloc"), "MPI_MINLOC", {}},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_REPLACE, "ompi_mpi_op_replace"), "MPI_REPLACE", {}},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_NO_OP, "ompi_mpi_op_no_op"), "MPI_NO_OP", {}},
};

/// The standard's table.
bool allows(Group group, ReduceOp op) {
  const bool is_logical = op >= ReduceOp::kLand, is_bitwise = op >= ReduceOp::kBand && !is_logical;
  switch (group) {
    case Group::kCInteger:
      return true;
    case Group::kFortranInteger:
    case Group::kMultiLanguage:
      return !is_logical;
    case Group::kFloating:
      return !is_logical && !is_bitwise;
    case Group::kCBool:
      return is_logical;
    case Group::kByte:
      return is_bitwise;
  }
  return false;
}

std::optional<DataType> type_of_size(const NamedType& named, int bytes) {
  constexpr std::array kSigned = {DataType::kInt8, DataType::kInt16, DataType::kInt32, DataType::kInt64};
  constexpr std::array kUnsigned = {DataType::kUint8, DataType::kUint16, DataType::kUint32,
                                    DataType::kUint64};
  if (named.group == Group::kFloating) {
    if (bytes == 4) return DataType::kFloat32;
    if (bytes == 8) return DataType::kFloat64;
    return std::nullopt;
  }
  for (const DataType type : named.sign == Sign::kSigned ? kSigned : kUnsigned) {
    if (static_cast<int>(size_of(type)) == bytes) return type;
  }
  return std::nullopt;
}

struct TypeEntry {
  MPI_Datatype handle;
  DataType type;
  Group group;
};
struct OpEntry {
  MPI_Op handle;
  const NamedOp* named;
};

std::vector<TypeEntry> make_types() {
  std::vector<TypeEntry> types;
  for (const NamedType& named : kNamedTypes) {
    const MPI_Datatype handle = named.host.handle();
    int size = 0;
    // A type that the host's Fortran compiler lacks is no type, or has no size.
    if (handle == MPI_Datatype{} || handle == host()->no_type ||
        host()->Type_size(handle, &size) != MPI_SUCCESS)
      continue;
    if (const auto type = type_of_size(named, size)) types.push_back({handle, *type, named.group});
  }
  return types;
}

const OpEntry* find_op(MPI_Op op) {
  static const std::vector<OpEntry> ops = [] {
    std::vector<OpEntry> entries;
    for (const NamedOp& named : kNamedOps) {
      if (const MPI_Op handle = named.host.handle(); handle != MPI_Op{}) entries.push_back({handle, &named});
    }
    return entries;
  }();
  const auto found =
      std::find_if(ops.begin(), ops.end(), [op](const OpEntry& entry) { return entry.handle == op; });
  return found == ops.end() ? nullptr : &*found;
}

}  // namespace

namespace {

Reduction find_reduction(MPI_Datatype type, MPI_Op op) {
  static const std::vector<TypeEntry> types = make_types();
  using Verdict = Reduction::Verdict;
  const auto found = std::find_if(types.begin(), types.end(),
                                  [type](const TypeEntry& entry) { return entry.handle == type; });
  if (found == types.end()) return {Verdict::kOtherType};
  const OpEntry* entry = find_op(op);
  if (entry == nullptr || !entry->named->op) return {Verdict::kOtherOp};
  if (!allows(found->group, *entry->named->op)) return {Verdict::kNotAllowed};
  return {Verdict::kTake, found->type, *entry->named->op};
}

}  // namespace

Reduction reduction_of(MPI_Datatype type, MPI_Op op) {
  // A program asks for the same most of the time. Handles of predefined objects are never reused, and of
  // others the answer is always the same.
  struct Last {
    MPI_Datatype type;
    MPI_Op op;
    Reduction reduction;
  };
  static thread_local Last t_last HIPS_TLS_OF_PRELOADED{};
  if (t_last.type != type || t_last.op != op || type == MPI_Datatype{})
    t_last = {type, op, find_reduction(type, op)};
  return t_last.reduction;
}

std::string name_of_type(MPI_Datatype type) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (type == MPI_Datatype{} || type == host()->no_type) return "MPI_DATATYPE_NULL";
  // Only predefined types have a name from the start; a user may give one to a derived type.
  if (host()->Type_get_name(type, name, &length) != MPI_SUCCESS || length == 0) return "a derived type";
  return {name, static_cast<std::size_t>(length)};
}

std::string name_of_op(MPI_Op op) {
  const OpEntry* entry = find_op(op);
  return entry ? entry->named->name : "a user's op";
}

}  // namespace hips::mpi

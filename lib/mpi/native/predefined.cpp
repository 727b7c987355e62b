#include "lib/mpi/native/predefined.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "lib/mpi/native/abi.hpp"
#include "lib/mpi/native/element_layout.hpp"
#include "lib/mpi/native/local_reduction.hpp"
#include "lib/mpi/native/native_mpi.hpp"

namespace hips::mpi {
namespace {

/// The groups of the standard's table "Predefined Reduction Operations", and pairs. C's bool and Fortran's LOGICAL are apart,
/// because only one of them is a number of HiPS.
enum class TypeGroup : std::uint8_t {
  kCInteger,
  kFortranInteger,
  kMultiLanguage,
  kFloating,
  kComplex,
  kCBool,
  kFortranLogical,
  kByte,
  kPair
};

enum class Sign : std::uint8_t { kSigned, kUnsigned };

struct NamedType {
  Predefined<MPI_Datatype> native;
  TypeGroup group;
  Sign sign = Sign::kSigned;
};

// Fortran's types have handles of their own, even where they equal a type of C. The types that programs
// reduce most come first, since the search is linear.
constexpr std::array kNamedTypes = {
    NamedType{HIPS_MPI_PREDEFINED(MPI_FLOAT, "ompi_mpi_float"), TypeGroup::kFloating},
    NamedType{HIPS_MPI_PREDEFINED(MPI_DOUBLE, "ompi_mpi_double"), TypeGroup::kFloating},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INT, "ompi_mpi_int"), TypeGroup::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_DOUBLE_PRECISION, "ompi_mpi_dblprec"), TypeGroup::kFloating},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INTEGER, "ompi_mpi_integer"), TypeGroup::kFortranInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_LONG, "ompi_mpi_long"), TypeGroup::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UNSIGNED_LONG, "ompi_mpi_unsigned_long"), TypeGroup::kCInteger,
              Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INT64_T, "ompi_mpi_int64_t"), TypeGroup::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UINT64_T, "ompi_mpi_uint64_t"), TypeGroup::kCInteger, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UNSIGNED, "ompi_mpi_unsigned"), TypeGroup::kCInteger, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INT32_T, "ompi_mpi_int32_t"), TypeGroup::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UINT32_T, "ompi_mpi_uint32_t"), TypeGroup::kCInteger, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_REAL, "ompi_mpi_real"), TypeGroup::kFloating},
    NamedType{HIPS_MPI_PREDEFINED(MPI_REAL4, "ompi_mpi_real4"), TypeGroup::kFloating},
    NamedType{HIPS_MPI_PREDEFINED(MPI_REAL8, "ompi_mpi_real8"), TypeGroup::kFloating},
    NamedType{HIPS_MPI_PREDEFINED(MPI_LONG_LONG_INT, "ompi_mpi_long_long_int"), TypeGroup::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UNSIGNED_LONG_LONG, "ompi_mpi_unsigned_long_long"),
              TypeGroup::kCInteger, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INTEGER8, "ompi_mpi_integer8"), TypeGroup::kFortranInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INTEGER4, "ompi_mpi_integer4"), TypeGroup::kFortranInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INTEGER2, "ompi_mpi_integer2"), TypeGroup::kFortranInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INTEGER1, "ompi_mpi_integer1"), TypeGroup::kFortranInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INT16_T, "ompi_mpi_int16_t"), TypeGroup::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UINT16_T, "ompi_mpi_uint16_t"), TypeGroup::kCInteger, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_SHORT, "ompi_mpi_short"), TypeGroup::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UNSIGNED_SHORT, "ompi_mpi_unsigned_short"), TypeGroup::kCInteger,
              Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_INT8_T, "ompi_mpi_int8_t"), TypeGroup::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UINT8_T, "ompi_mpi_uint8_t"), TypeGroup::kCInteger, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_SIGNED_CHAR, "ompi_mpi_signed_char"), TypeGroup::kCInteger},
    NamedType{HIPS_MPI_PREDEFINED(MPI_UNSIGNED_CHAR, "ompi_mpi_unsigned_char"), TypeGroup::kCInteger,
              Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_BYTE, "ompi_mpi_byte"), TypeGroup::kByte, Sign::kUnsigned},
    // 0 or 1 in a byte; logical operations give nothing else.
    NamedType{HIPS_MPI_PREDEFINED(MPI_C_BOOL, "ompi_mpi_c_bool"), TypeGroup::kCBool, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_CXX_BOOL, "ompi_mpi_cxx_bool"), TypeGroup::kCBool, Sign::kUnsigned},
    NamedType{HIPS_MPI_PREDEFINED(MPI_AINT, "ompi_mpi_aint"), TypeGroup::kMultiLanguage},
    NamedType{HIPS_MPI_PREDEFINED(MPI_OFFSET, "ompi_mpi_offset"), TypeGroup::kMultiLanguage},
    NamedType{HIPS_MPI_PREDEFINED(MPI_COUNT, "ompi_mpi_count"), TypeGroup::kMultiLanguage},
    NamedType{HIPS_MPI_PREDEFINED(MPI_LONG_DOUBLE, "ompi_mpi_long_double"), TypeGroup::kFloating},
    NamedType{HIPS_MPI_PREDEFINED(MPI_LOGICAL, "ompi_mpi_logical"), TypeGroup::kFortranLogical},
    NamedType{HIPS_MPI_PREDEFINED(MPI_C_FLOAT_COMPLEX, "ompi_mpi_c_float_complex"), TypeGroup::kComplex},
    NamedType{HIPS_MPI_PREDEFINED(MPI_C_DOUBLE_COMPLEX, "ompi_mpi_c_double_complex"), TypeGroup::kComplex},
    NamedType{HIPS_MPI_PREDEFINED(MPI_C_LONG_DOUBLE_COMPLEX, "ompi_mpi_c_long_double_complex"),
              TypeGroup::kComplex},
    NamedType{HIPS_MPI_PREDEFINED(MPI_CXX_LONG_DOUBLE_COMPLEX, "ompi_mpi_cxx_ldblcplex"),
              TypeGroup::kComplex},
    NamedType{HIPS_MPI_PREDEFINED(MPI_CXX_FLOAT_COMPLEX, "ompi_mpi_cxx_cplex"), TypeGroup::kComplex},
    NamedType{HIPS_MPI_PREDEFINED(MPI_CXX_DOUBLE_COMPLEX, "ompi_mpi_cxx_dblcplex"), TypeGroup::kComplex},
    NamedType{HIPS_MPI_PREDEFINED(MPI_COMPLEX, "ompi_mpi_cplex"), TypeGroup::kComplex},
    NamedType{HIPS_MPI_PREDEFINED(MPI_DOUBLE_COMPLEX, "ompi_mpi_dblcplex"), TypeGroup::kComplex},
    NamedType{HIPS_MPI_PREDEFINED(MPI_COMPLEX8, "ompi_mpi_complex8"), TypeGroup::kComplex},
    NamedType{HIPS_MPI_PREDEFINED(MPI_COMPLEX16, "ompi_mpi_complex16"), TypeGroup::kComplex},
    NamedType{HIPS_MPI_PREDEFINED(MPI_DOUBLE_INT, "ompi_mpi_double_int"), TypeGroup::kPair},
    NamedType{HIPS_MPI_PREDEFINED(MPI_FLOAT_INT, "ompi_mpi_float_int"), TypeGroup::kPair},
    NamedType{HIPS_MPI_PREDEFINED(MPI_2INT, "ompi_mpi_2int"), TypeGroup::kPair},
    NamedType{HIPS_MPI_PREDEFINED(MPI_LONG_INT, "ompi_mpi_long_int"), TypeGroup::kPair},
    NamedType{HIPS_MPI_PREDEFINED(MPI_SHORT_INT, "ompi_mpi_short_int"), TypeGroup::kPair},
    NamedType{HIPS_MPI_PREDEFINED(MPI_LONG_DOUBLE_INT, "ompi_mpi_longdbl_int"), TypeGroup::kPair},
    NamedType{HIPS_MPI_PREDEFINED(MPI_2DOUBLE_PRECISION, "ompi_mpi_2dblprec"), TypeGroup::kPair},
    NamedType{HIPS_MPI_PREDEFINED(MPI_2REAL, "ompi_mpi_2real"), TypeGroup::kPair},
    NamedType{HIPS_MPI_PREDEFINED(MPI_2INTEGER, "ompi_mpi_2integer"), TypeGroup::kPair},
};

enum class OpGroup : std::uint8_t { kArithmetic, kOrder, kBitwise, kLogical, kLocation, kNone };

struct NamedOp {
  Predefined<MPI_Op> native;
  const char* name;
  OpGroup group;
  std::optional<ReduceOp> op;  ///< where HiPS has it
};

constexpr std::array kNamedOps = {
    NamedOp{HIPS_MPI_PREDEFINED(MPI_SUM, "ompi_mpi_op_sum"), "MPI_SUM", OpGroup::kArithmetic, ReduceOp::kSum},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_MAX, "ompi_mpi_op_max"), "MPI_MAX", OpGroup::kOrder, ReduceOp::kMax},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_MIN, "ompi_mpi_op_min"), "MPI_MIN", OpGroup::kOrder, ReduceOp::kMin},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_PROD, "ompi_mpi_op_prod"), "MPI_PROD", OpGroup::kArithmetic,
            ReduceOp::kProd},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_LAND, "ompi_mpi_op_land"), "MPI_LAND", OpGroup::kLogical,
            ReduceOp::kLand},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_LOR, "ompi_mpi_op_lor"), "MPI_LOR", OpGroup::kLogical, ReduceOp::kLor},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_LXOR, "ompi_mpi_op_lxor"), "MPI_LXOR", OpGroup::kLogical,
            ReduceOp::kLxor},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_BAND, "ompi_mpi_op_band"), "MPI_BAND", OpGroup::kBitwise,
            ReduceOp::kBand},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_BOR, "ompi_mpi_op_bor"), "MPI_BOR", OpGroup::kBitwise, ReduceOp::kBor},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_BXOR, "ompi_mpi_op_bxor"), "MPI_BXOR", OpGroup::kBitwise,
            ReduceOp::kBxor},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_MAXLOC, "ompi_mpi_op_maxloc"), "MPI_MAXLOC", OpGroup::kLocation, {}},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_MINLOC, "ompi_mpi_op_minloc"), "MPI_MINLOC", OpGroup::kLocation, {}},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_REPLACE, "ompi_mpi_op_replace"), "MPI_REPLACE", OpGroup::kNone, {}},
    NamedOp{HIPS_MPI_PREDEFINED(MPI_NO_OP, "ompi_mpi_op_no_op"), "MPI_NO_OP", OpGroup::kNone, {}},
};

/// The standard's table of predefined reductions.
bool allows(TypeGroup group, OpGroup op) {
  const bool is_number = op == OpGroup::kArithmetic || op == OpGroup::kOrder;
  switch (group) {
    case TypeGroup::kCInteger:
      return is_number || op == OpGroup::kBitwise || op == OpGroup::kLogical;
    case TypeGroup::kFortranInteger:
    case TypeGroup::kMultiLanguage:
      return is_number || op == OpGroup::kBitwise;
    case TypeGroup::kFloating:
      return is_number;
    case TypeGroup::kComplex:
      return op == OpGroup::kArithmetic;
    case TypeGroup::kCBool:
    case TypeGroup::kFortranLogical:
      return op == OpGroup::kLogical;
    case TypeGroup::kByte:
      return op == OpGroup::kBitwise;
    case TypeGroup::kPair:
      return op == OpGroup::kLocation;
  }
  return false;
}

/// Elements of HiPS in one of the type: real and imaginary part.
constexpr std::uint32_t parts_of(TypeGroup group) {
  return group == TypeGroup::kComplex ? 2 : 1;
}

/// The type of the elements of HiPS in one of `bytes` bytes, where they are numbers that HiPS has.
std::optional<DataType> type_of_size(const NamedType& named, int bytes) {
  constexpr std::array kSigned = {DataType::kInt8, DataType::kInt16, DataType::kInt32, DataType::kInt64};
  constexpr std::array kUnsigned = {DataType::kUint8, DataType::kUint16, DataType::kUint32,
                                    DataType::kUint64};
  if (named.group == TypeGroup::kFloating || named.group == TypeGroup::kComplex) {
    const int of_number = bytes / static_cast<int>(parts_of(named.group));
    if (of_number == 4) return DataType::kFloat32;
    if (of_number == 8) return DataType::kFloat64;
    return std::nullopt;
  }
  if (named.group == TypeGroup::kFortranLogical || named.group == TypeGroup::kPair) return std::nullopt;
  for (const DataType type : named.sign == Sign::kSigned ? kSigned : kUnsigned) {
    if (static_cast<int>(size_of(type)) == bytes) return type;
  }
  return std::nullopt;
}

struct TypeEntry {
  MPI_Datatype handle;
  std::optional<DataType> type;
  TypeGroup group;
};
struct OpEntry {
  MPI_Op handle;
  const NamedOp* named;
};

std::vector<TypeEntry> make_types() {
  std::vector<TypeEntry> types;
  for (const NamedType& named : kNamedTypes) {
    const MPI_Datatype handle = named.native.handle();
    int size = 0;
    // A type that native MPI's Fortran compiler does not have is a null handle, or has no size.
    if (handle == MPI_Datatype{} || handle == native_mpi()->no_type ||
        native_mpi()->Type_size(handle, &size) != MPI_SUCCESS || size == 0)
      continue;
    types.push_back({handle, type_of_size(named, size), named.group});
  }
  return types;
}

const OpEntry* find_op(MPI_Op op) {
  static const std::vector<OpEntry> ops = [] {
    std::vector<OpEntry> entries;
    for (const NamedOp& named : kNamedOps) {
      if (const MPI_Op handle = named.native.handle(); handle != MPI_Op{})
        entries.push_back({handle, &named});
    }
    return entries;
  }();
  const auto found =
      std::find_if(ops.begin(), ops.end(), [op](const OpEntry& entry) { return entry.handle == op; });
  return found == ops.end() ? nullptr : &*found;
}

Reduction reduction_of_numbers(DataType type, ReduceOp op, std::uint32_t parts) {
  const std::uint32_t size = parts * static_cast<std::uint32_t>(size_of(type));
  return {Eligibility::kEligible, type, op, size, parts, static_cast<std::uint64_t>(kMostBytes) / size};
}

/// One of the few combinations of predefined types and operations that HiPS has no kernel for. It stays for ever.
Reduction reduction_by_native(MPI_Datatype type, MPI_Op op) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::pair<void*, void*>, LocalReduction>;
  const auto layout = element_layout_of(type);
  if (!layout) return {.eligibility = Eligibility::kOtherType};
  const std::lock_guard lock(mutex);
  const auto found = known.try_emplace({to_context(type), to_context(op)}, type, op, true).first;
  const LocalReduction& reduction = found->second;
  if (!reduction.op()) {
    // Other ranks may have one, so that this is no property of the type and the operation.
    known.erase(found);
    throw std::bad_alloc();
  }
  return reduction_of_numbers(bytes_type(layout->extent), *reduction.op(), 1);
}

}  // namespace

Reduction find_reduction(MPI_Datatype type, MPI_Op op) {
  static const std::vector<TypeEntry> types = make_types();
  const auto found = std::find_if(types.begin(), types.end(),
                                  [type](const TypeEntry& entry) { return entry.handle == type; });
  if (found == types.end()) return {.eligibility = Eligibility::kOtherType};
  const OpEntry* const entry = find_op(op);
  if (entry == nullptr || entry->named->group == OpGroup::kNone)
    return {.eligibility = Eligibility::kOtherOp};
  const NamedOp& named = *entry->named;
  if (!allows(found->group, named.group)) return {.eligibility = Eligibility::kOpNotForType};
  // Real and imaginary parts are added each by itself, but not multiplied.
  const bool has_kernel =
      found->type && named.op && (found->group != TypeGroup::kComplex || named.op == ReduceOp::kSum);
  return has_kernel ? reduction_of_numbers(*found->type, *named.op, parts_of(found->group))
                    : reduction_by_native(type, op);
}

bool is_predefined_op(MPI_Op op) {
  return op == MPI_Op{} || op == native_mpi()->no_op || find_op(op) != nullptr;
}

std::string name_of_type(MPI_Datatype type) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (type == MPI_Datatype{} || type == native_mpi()->no_type) return "MPI_DATATYPE_NULL";
  // Only predefined types have a name from the start; a user may name a derived type.
  if (native_mpi()->Type_get_name(type, name, &length) != MPI_SUCCESS || length == 0) return "a derived type";
  return {name, static_cast<std::size_t>(length)};
}

std::string name_of_op(MPI_Op op) {
  const OpEntry* entry = find_op(op);
  return entry ? entry->named->name : "a user's op";
}

}  // namespace hips::mpi

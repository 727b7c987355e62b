#include <hips/types.hpp>

#include <array>

#include <fmt/format.h>

#include "lib/base/collective.hpp"
#include "lib/base/type_text.hpp"

namespace hips {
namespace {

constexpr std::array<const char*, kNumDataTypes> kTypeNames = {"int32",  "int64",  "float32", "float64",
                                                               "int8",   "int16",  "uint8",   "uint16",
                                                               "uint32", "uint64", "float16", "bfloat16"};
constexpr std::array<const char*, kNumReduceOps> kOpNames = {"sum", "prod", "min",  "max", "avg", "band",
                                                             "bor", "bxor", "land", "lor", "lxor"};

constexpr std::array<const char*, kNumCollectives> kCollectiveNames = {
    "allreduce", "reduce_scatter", "allgather", "bcast",   "reduce",
    "barrier",   "gather",         "scatter",   "alltoall"};

}  // namespace

std::string type_text(DataType type) {
  return is_bytes(type) ? std::to_string(size_of(type)) + " bytes" : to_string(type);
}

const char* to_string(Collective collective) {
  const auto value = static_cast<std::size_t>(collective);
  return value < kCollectiveNames.size() ? kCollectiveNames[value] : "unknown collective";
}

std::string detail_text(Collective collective, std::uint32_t detail) {
  if (has_root(collective) && has_sections(collective))
    return fmt::format(", root {}, sections {:05x}", detail & ((1U << kRootBits) - 1), detail >> kRootBits);
  if (has_root(collective)) return fmt::format(", root {}", detail);
  return has_sections(collective) ? fmt::format(", sections {:08x}", detail) : std::string();
}

const char* to_string(DataType type) {
  const auto value = static_cast<std::size_t>(type);
  if (value < kTypeNames.size()) return kTypeNames[value];
  return is_bytes(type) ? "bytes" : "unknown type";
}

const char* to_string(ReduceOp op) {
  const auto value = static_cast<std::size_t>(op);
  if (value < kOpNames.size()) return kOpNames[value];
  if (!is_user(op)) return "unknown op";
  return is_ordered(op) ? "ordered user op" : "user op";
}

}  // namespace hips

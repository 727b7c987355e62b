#include "lib/node/call.hpp"

#include <fmt/format.h>

#include "lib/base/type_text.hpp"

namespace hips::node {
namespace {

// Bit positions in Signature::detail, above the root or digest.
constexpr int kCollectiveShift = 32, kElementShift = 40;

DataType type_of(const Signature& signature) {
  const std::uint64_t bytes = signature.detail >> kElementShift;
  return bytes > 0 ? bytes_type(bytes) : static_cast<DataType>(signature.shape >> kTypeShift & 0xff);
}

}  // namespace

std::uint64_t detail_of(const Call& call) {
  const std::uint32_t detail = hips::detail_of(call.collective, call.root,
                                               has_sections(call.collective) ? call.sections->digest() : 0);
  const std::uint64_t bytes = is_bytes(call.type) ? size_of(call.type) : 0;
  return detail | static_cast<std::uint64_t>(call.collective) << kCollectiveShift | bytes << kElementShift;
}

Collective collective_of(const Signature& signature) {
  return static_cast<Collective>(signature.detail >> kCollectiveShift & 0xff);
}

std::string to_string(const Signature& signature) {
  const Collective collective = collective_of(signature);
  const auto detail = static_cast<std::uint32_t>(signature.detail);
  if (collective == Collective::kBarrier) return hips::to_string(collective);
  std::string text = fmt::format("{} x {}", signature.shape & ((std::uint64_t{1} << kTypeShift) - 1),
                                 type_text(type_of(signature)));
  if (reduces(collective))
    text += fmt::format(", {}", hips::to_string(static_cast<ReduceOp>(signature.shape >> kOpShift)));
  text += detail_text(collective, detail);
  return collective == Collective::kAllreduce ? text
                                              : fmt::format("{} of {}", hips::to_string(collective), text);
}

}  // namespace hips::node

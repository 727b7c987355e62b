// Stored plans, ours and MSCCL's: read or refused, and the checker ends with a report whatever it is.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lib/plan/check/check.hpp"
#include "lib/plan/formats/msccl/read_msccl.hpp"
#include "lib/plan/formats/plan_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = hips::plan::is_msccl(text) ? hips::plan::read_msccl(text) : hips::plan::from_json(text);
  if (!plan) return 0;
  hips::plan::CheckOptions options;
  options.max_values = 1 << 16;
  options.max_accesses = 1 << 20;
  (void)hips::plan::check(*plan, options);
  const auto again = hips::plan::from_json(hips::plan::to_json(*plan));
  if (!again || hips::plan::to_json(*again) != hips::plan::to_json(*plan)) std::abort();
  return 0;
}

#include "lib/comm/setup/slurm_step.hpp"

#include <algorithm>
#include <charconv>

namespace hips::comm {
namespace {

std::string_view value_of(const Environment& environment, std::string_view name) {
  const auto entry =
      std::ranges::find(environment, name, [](const auto& one) { return std::string_view(one.first); });
  return entry == environment.end() ? std::string_view() : std::string_view(entry->second);
}

/// The number at the beginning of a text.
std::optional<std::int64_t> leading_number(std::string_view text) {
  std::int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

std::uint16_t port_of(const Environment& environment, std::int64_t step) {
  constexpr std::int64_t kMostPort = 65535;
  const auto reserved = leading_number(value_of(environment, "SLURM_STEP_RESV_PORTS"));
  if (reserved && *reserved > 0 && *reserved <= kMostPort) return static_cast<std::uint16_t>(*reserved);
  constexpr std::uint32_t kFirst = 20000, kCount = 10000;
  const auto job =
      static_cast<std::uint32_t>(leading_number(value_of(environment, "SLURM_JOB_ID")).value_or(0));
  return static_cast<std::uint16_t>(kFirst + (job * 31 + static_cast<std::uint32_t>(step)) % kCount);
}

}  // namespace

std::optional<SlurmStep> slurm_step(const Environment& environment) {
  // Slurm numbers the special steps (batch, extern, interactive) from the top of 32 bits.
  constexpr std::int64_t kFirstSpecialStep = 0xfffffff0;
  const auto step = leading_number(value_of(environment, "SLURM_STEP_ID"));
  if (!step || *step < 0 || *step >= kFirstSpecialStep) return std::nullopt;
  SlurmStep found;
  found.rank = value_of(environment, "SLURM_PROCID");
  found.size = value_of(environment, "SLURM_STEP_NUM_TASKS");
  if (found.size.empty()) found.size = value_of(environment, "SLURM_NTASKS");
  found.first_node = first_host(value_of(environment, "SLURM_STEP_NODELIST"));
  if (found.rank.empty() || found.size.empty() || found.first_node.empty()) return std::nullopt;
  found.port = port_of(environment, *step);
  found.name = std::string(value_of(environment, "SLURM_JOB_ID")) + "." + std::to_string(*step);
  return found;
}

std::string first_host(std::string_view list) {
  const std::size_t bracket = list.find('[');
  const std::size_t comma = list.find(',');
  if (bracket == std::string_view::npos || comma < bracket) return std::string(list.substr(0, comma));
  const std::string_view numbers = list.substr(bracket + 1);
  return std::string(list.substr(0, bracket)) + std::string(numbers.substr(0, numbers.find_first_of("-,]")));
}

}  // namespace hips::comm

#include "lib/mpi/process/call_report.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace hips::mpi {
namespace {

/// Lines of each list; one more line counts the rest.
constexpr std::size_t kMaxLines = 32;

std::string calls_text(std::uint64_t calls) {
  return fmt::format("{} call{}", calls, calls == 1 ? "" : "s");
}

}  // namespace

void CallReport::add_taken(const std::string& comm_name, int comm_size, const std::string& plan,
                           const CallTally& tally) {
  if (tally.calls == 0) return;
  const std::lock_guard lock(mutex_);
  taken_[{comm_name, comm_size, plan}] += tally;
}

void CallReport::add_delegated(const std::string& reason, std::uint64_t calls) {
  const std::lock_guard lock(mutex_);
  delegated_[reason] += calls;
}

void CallReport::set_guard(const std::string& mode) {
  const std::lock_guard lock(mutex_);
  guard_mode_ = mode;
}

void CallReport::add_guard(const std::string& comm_name, int comm_size, const Guard& guard) {
  const std::lock_guard lock(mutex_);
  const auto add = [&](CallClass of, TuningChoice choice, const std::string& text) {
    guard_[{comm_name, comm_size, of, choice}] = text;
  };
  for (const auto& [of, decision] : guard.decisions())
    add(of, decision.winner,
        fmt::format("HiPS {:.1f} us, native MPI {:.1f} us: {}", static_cast<double>(decision.hips_ns) * 1e-3,
                    static_cast<double>(decision.native_ns) * 1e-3,
                    decision.winner == TuningChoice::kNative ? "native MPI" : "HiPS"));
  for (const auto& [of, calls] : guard.undecided())
    add(of, TuningChoice::kTrial,
        fmt::format("undecided after {} of at most {} trials", calls, Guard::most_calls(of)));
}

std::string CallReport::text(const std::string& native, int rank, int size) const {
  const std::lock_guard lock(mutex_);
  CallTally all;
  for (const auto& [key, tally] : taken_) all += tally;
  std::uint64_t num_delegated = 0;
  for (const auto& [reason, calls] : delegated_) num_delegated += calls;

  std::string text = fmt::format("hips report: rank {} of {}, native MPI {}\n", rank, size, native);
  text += fmt::format("hips report: taken {}, {} bytes, {:.6f} s\n", calls_text(all.calls), all.bytes,
                      static_cast<double>(all.time_ns) * 1e-9);
  if (all.nonblocking + all.starts > 0)
    text += fmt::format("hips report:   of these {} non-blocking, {} of persistent requests\n",
                        all.nonblocking, all.starts);
  std::vector<std::pair<const std::tuple<std::string, int, std::string>*, CallTally>> taken;
  for (const auto& [key, tally] : taken_) taken.emplace_back(&key, tally);
  std::stable_sort(taken.begin(), taken.end(),
                   [](const auto& a, const auto& b) { return a.second.calls > b.second.calls; });
  for (std::size_t i = 0; i < taken.size() && i < kMaxLines; ++i) {
    const auto& [name, comm_size, plan] = *taken[i].first;
    const CallTally& tally = taken[i].second;
    text +=
        fmt::format("hips report:   {}, {} ranks: {}, {} bytes, {:.6f} s: {}\n", name, comm_size,
                    calls_text(tally.calls), tally.bytes, static_cast<double>(tally.time_ns) * 1e-9, plan);
  }
  if (taken.size() > kMaxLines)
    text += fmt::format("hips report:   and {} other communicators\n", taken.size() - kMaxLines);

  text += fmt::format("hips report: delegated to native MPI {}\n", calls_text(num_delegated));
  std::vector<std::pair<std::string_view, std::uint64_t>> delegated(delegated_.begin(), delegated_.end());
  std::stable_sort(delegated.begin(), delegated.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (std::size_t i = 0; i < delegated.size() && i < kMaxLines; ++i)
    text += fmt::format("hips report:   {}: {}\n", calls_text(delegated[i].second), delegated[i].first);
  if (delegated.size() > kMaxLines)
    text += fmt::format("hips report:   and {} other reasons\n", delegated.size() - kMaxLines);

  text += fmt::format("hips report: guard {}\n", guard_mode_);
  std::size_t shown = 0;
  for (const auto& [key, what] : guard_) {
    const auto& [name, comm_size, of, choice] = key;
    if (++shown > kMaxLines) continue;
    text += fmt::format("hips report:   {}, {} ranks, {}, {} to {} bytes: {}\n", name, comm_size,
                        to_string(of.kind), of.least_bytes(), of.most_bytes(), what);
  }
  if (shown > kMaxLines) text += fmt::format("hips report:   and {} other classes\n", shown - kMaxLines);
  return text;
}

}  // namespace hips::mpi

#include "lib/mpi/report.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace hips::mpi {
namespace {

/// Lines of each list; what is beyond is summed in one more.
constexpr std::size_t kMaxLines = 32;

std::string calls_text(std::uint64_t calls) {
  return fmt::format("{} call{}", calls, calls == 1 ? "" : "s");
}

}  // namespace

void Report::add_taken(const std::string& comm_name, int comm_size, const std::string& plan,
                       const Tally& tally) {
  if (tally.calls == 0) return;
  const std::lock_guard lock(mutex_);
  taken_[{comm_name, comm_size, plan}] += tally;
}

void Report::add_declined(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  ++declined_[reason];
}

void Report::set_guard(const std::string& mode) {
  const std::lock_guard lock(mutex_);
  guard_mode_ = mode;
}

void Report::add_guard(const std::string& comm_name, int comm_size, const Guard& guard) {
  const std::lock_guard lock(mutex_);
  const auto add = [&](GuardClass of, Way way, const std::string& text) {
    guard_[{comm_name, comm_size, of, way}] = text;
  };
  for (const auto& [of, verdict] : guard.verdicts())
    add(of, verdict.winner,
        fmt::format("HiPS {:.1f} us, host {:.1f} us: {}", static_cast<double>(verdict.hips_ns) * 1e-3,
                    static_cast<double>(verdict.host_ns) * 1e-3,
                    verdict.winner == Way::kHost ? "the host" : "HiPS"));
  for (const auto& [of, calls] : guard.unfinished())
    add(of, Way::kTrial,
        fmt::format("no verdict after {} of at most {} trials", calls, Guard::most_calls(of)));
}

std::string Report::text(const std::string& host, int rank, int size) const {
  const std::lock_guard lock(mutex_);
  Tally all;
  for (const auto& [key, tally] : taken_) all += tally;
  std::uint64_t num_declined = 0;
  for (const auto& [reason, calls] : declined_) num_declined += calls;

  std::string text = fmt::format("hips report: rank {} of {}, host {}\n", rank, size, host);
  text += fmt::format("hips report: taken {}, {} bytes, {:.6f} s\n", calls_text(all.calls), all.bytes,
                      static_cast<double>(all.time_ns) * 1e-9);
  if (all.nonblocking + all.starts > 0)
    text += fmt::format("hips report:   of them {} non-blocking, {} of persistent requests\n",
                        all.nonblocking, all.starts);
  std::vector<std::pair<const std::tuple<std::string, int, std::string>*, Tally>> taken;
  for (const auto& [key, tally] : taken_) taken.emplace_back(&key, tally);
  std::stable_sort(taken.begin(), taken.end(),
                   [](const auto& a, const auto& b) { return a.second.calls > b.second.calls; });
  for (std::size_t i = 0; i < taken.size() && i < kMaxLines; ++i) {
    const auto& [name, comm_size, plan] = *taken[i].first;
    const Tally& tally = taken[i].second;
    text +=
        fmt::format("hips report:   {}, {} ranks: {}, {} bytes, {:.6f} s: {}\n", name, comm_size,
                    calls_text(tally.calls), tally.bytes, static_cast<double>(tally.time_ns) * 1e-9, plan);
  }
  if (taken.size() > kMaxLines)
    text += fmt::format("hips report:   and {} other communicators\n", taken.size() - kMaxLines);

  text += fmt::format("hips report: left to the host {}\n", calls_text(num_declined));
  std::vector<std::pair<std::string_view, std::uint64_t>> declined(declined_.begin(), declined_.end());
  std::stable_sort(declined.begin(), declined.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (std::size_t i = 0; i < declined.size() && i < kMaxLines; ++i)
    text += fmt::format("hips report:   {}: {}\n", calls_text(declined[i].second), declined[i].first);
  if (declined.size() > kMaxLines)
    text += fmt::format("hips report:   and {} other reasons\n", declined.size() - kMaxLines);

  text += fmt::format("hips report: guard {}\n", guard_mode_);
  std::size_t shown = 0;
  for (const auto& [key, what] : guard_) {
    const auto& [name, comm_size, of, way] = key;
    if (++shown > kMaxLines) continue;
    text += fmt::format("hips report:   {}, {} ranks, {}, {} to {} bytes: {}\n", name, comm_size,
                        to_string(of.kind), of.least_bytes(), of.most_bytes(), what);
  }
  if (shown > kMaxLines) text += fmt::format("hips report:   and {} other classes\n", shown - kMaxLines);
  return text;
}

}  // namespace hips::mpi

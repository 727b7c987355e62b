#include "lib/mpi/process/call_report.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace hips::mpi {
namespace {

/// Lines of each list; one more line counts the rest.
constexpr std::size_t kMaxLines = 32, kMaxClasses = 20;

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

std::string calls_text(std::uint64_t calls) {
  return fmt::format("{} call{}", calls, calls == 1 ? "" : "s");
}

const char* winner_text(const TuningDecision& decision) {
  return decision.winner == TuningChoice::kNative ? "native MPI" : "HiPS";
}

/// "HiPS 0.6 us, native MPI 1.1 us: HiPS; "
std::string decision_text(CallClass of, const std::optional<TuningDecision>& decision, int num_trials) {
  if (decision)
    return fmt::format("HiPS {:.1f} us, native MPI {:.1f} us: {}; ",
                       static_cast<double>(decision->hips_ns) * 1e-3,
                       static_cast<double>(decision->native_ns) * 1e-3, winner_text(*decision));
  if (num_trials == 0) return {};
  return fmt::format("undecided after {} of at most {} trials; ", num_trials, Guard::most_calls(of));
}

/// "86 calls by HiPS, 10 natively, 0.004000 s"
std::string time_text(const ClassTime& time) {
  std::string text;
  if (time.by_hips > 0) text = calls_text(time.by_hips) + " by HiPS, ";
  if (time.by_native > 0)
    text += fmt::format("{} natively, ",
                        time.by_hips > 0 ? fmt::to_string(time.by_native) : calls_text(time.by_native));
  return text + fmt::format("{:.6f} s", seconds(time.hips_ns + time.native_ns));
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

void CallReport::add_native_time(std::int64_t ns) {
  const std::lock_guard lock(mutex_);
  other_native_ns_ += ns;
}

void CallReport::add_trial_time(std::int64_t compared_ns, std::int64_t decided_ns) {
  const std::lock_guard lock(mutex_);
  compared_ns_ += compared_ns;
  decided_ns_ += decided_ns;
}

void CallReport::add_untimed() {
  const std::lock_guard lock(mutex_);
  ++num_untimed_;
}

void CallReport::add_set_up(std::int64_t ns) {
  const std::lock_guard lock(mutex_);
  set_up_ns_ += ns;
  ++num_set_up_;
}

void CallReport::set_run_time(std::int64_t ns) {
  const std::lock_guard lock(mutex_);
  run_ns_ = ns;
}

void CallReport::add_classes(const std::string& comm_name, int comm_size, const ClassTimes& times,
                             const Guard* guard) {
  const std::lock_guard lock(mutex_);
  const auto entry_of = [&](CallClass of) -> ClassEntry& { return classes_[{comm_name, comm_size, of}]; };
  for (const auto& [of, time] : times) entry_of(of).time += time;
  if (guard == nullptr) return;
  for (const auto& [of, decision] : guard->decisions()) {
    ClassEntry& entry = entry_of(of);
    entry.decision = decision;
    const auto found = times.find(of);
    if (found == times.end()) continue;
    ClassTime time = found->second;
    // One of another run or communicator was not noted here.
    if (!time.lead) time.lead = ClassTime::lead_of(decision);
    time.note_decision(decision);
    entry.saved_ns += time.saved_ns;
  }
  for (const auto& [of, calls] : guard->undecided()) entry_of(of).num_trials = calls;
}

CallReport::Totals CallReport::totals() const {
  Totals all;
  for (const auto& [key, tally] : taken_) all.taken += tally;
  for (const auto& [reason, calls] : delegated_) all.delegated += calls;
  all.native_ns = other_native_ns_;
  all.trials_ns = compared_ns_ + decided_ns_;
  all.saved_ns = -decided_ns_;
  for (const auto& [key, entry] : classes_) {
    all.native_ns += entry.time.native_ns;
    all.saved_ns += entry.saved_ns;
    all.is_compared = all.is_compared || (entry.decision && entry.time.by_hips > 0);
  }
  return all;
}

std::string CallReport::summary(const Totals& totals) const {
  const double took_s = seconds(totals.collectives_ns());
  std::string text = fmt::format("collectives took {:.3f} s of {:.3f} s ({:.1f} %)", took_s, seconds(run_ns_),
                                 run_ns_ > 0 ? 100 * took_s / seconds(run_ns_) : 0.0);
  if (num_untimed_ > 0)
    text += fmt::format(" without {} non-blocking {} of native MPI", num_untimed_,
                        num_untimed_ == 1 ? "call" : "calls");
  if (totals.taken.calls == 0) return text + "; native MPI executed all of them";
  if (!totals.is_compared)
    return text + "; this run tried no call with native MPI, so what HiPS saved is not known";
  const std::int64_t saved_ns = totals.saved_ns - set_up_ns_;
  return text +
         fmt::format(
             "; natively they would have taken {:.3f} s, by the trials: HiPS {} {:.3f} s, set-up included",
             seconds(totals.collectives_ns() + totals.saved_ns), saved_ns < 0 ? "lost" : "saved",
             seconds(std::abs(saved_ns)));
}

std::vector<std::pair<CallReport::CommClass, CallReport::ClassEntry>> CallReport::classes_by_time() const {
  std::vector<std::pair<CommClass, ClassEntry>> classes(classes_.begin(), classes_.end());
  const auto time_of = [](const ClassEntry& entry) { return entry.time.hips_ns + entry.time.native_ns; };
  std::ranges::stable_sort(
      classes, [&](const auto& a, const auto& b) { return time_of(a.second) > time_of(b.second); });
  return classes;
}

std::string CallReport::text(const std::string& native, int rank, int size) const {
  const std::lock_guard lock(mutex_);
  const Totals sums = totals();
  const CallTally& all = sums.taken;

  std::string text = fmt::format("hips report: {}\n", summary(sums));
  text += fmt::format("hips report: rank {} of {}, native MPI {}\n", rank, size, native);
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
  if (num_set_up_ > 0)
    text += fmt::format("hips report: set-up of {} communicator{}, {:.6f} s\n", num_set_up_,
                        num_set_up_ == 1 ? "" : "s", seconds(set_up_ns_));

  text += fmt::format("hips report: delegated to native MPI {}\n", calls_text(sums.delegated));
  std::vector<std::pair<std::string_view, std::uint64_t>> delegated(delegated_.begin(), delegated_.end());
  std::stable_sort(delegated.begin(), delegated.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (std::size_t i = 0; i < delegated.size() && i < kMaxLines; ++i)
    text += fmt::format("hips report:   {}: {}\n", calls_text(delegated[i].second), delegated[i].first);
  if (delegated.size() > kMaxLines)
    text += fmt::format("hips report:   and {} other reasons\n", delegated.size() - kMaxLines);

  text += fmt::format("hips report: guard {}\n", guard_mode_);
  const auto classes = classes_by_time();
  for (std::size_t i = 0; i < classes.size() && i < kMaxClasses; ++i) {
    const auto& [name, comm_size, of] = classes[i].first;
    const ClassEntry& entry = classes[i].second;
    text += fmt::format("hips report:   {}, {} ranks, {}, {} to {} bytes: {}{}\n", name, comm_size,
                        to_string(of.kind), of.least_bytes(), of.most_bytes(),
                        decision_text(of, entry.decision, entry.num_trials), time_text(entry.time));
  }
  if (classes.size() > kMaxClasses)
    text += fmt::format("hips report:   and {} other operations and sizes\n", classes.size() - kMaxClasses);
  return text;
}

std::string CallReport::json(const std::string& native, int rank, int size) const {
  using nlohmann::ordered_json;
  const std::lock_guard lock(mutex_);
  const Totals sums = totals();
  ordered_json communicators = ordered_json::array(), classes = communicators, delegated = communicators;
  for (const auto& [key, tally] : taken_) {
    const auto& [name, comm_size, plan] = key;
    communicators.push_back({{"name", name},
                             {"ranks", comm_size},
                             {"plan", plan},
                             {"calls", tally.calls},
                             {"bytes", tally.bytes},
                             {"seconds", seconds(tally.time_ns)},
                             {"nonblocking", tally.nonblocking},
                             {"starts", tally.starts}});
  }
  for (const auto& [key, entry] : classes_by_time()) {
    const auto& [name, comm_size, of] = key;
    ordered_json one{{"name", name},
                     {"ranks", comm_size},
                     {"operation", to_string(of.kind)},
                     {"least_bytes", of.least_bytes()},
                     {"most_bytes", of.most_bytes()},
                     {"hips_calls", entry.time.by_hips},
                     {"hips_seconds", seconds(entry.time.hips_ns)},
                     {"native_calls", entry.time.by_native},
                     {"native_seconds", seconds(entry.time.native_ns)}};
    if (entry.decision)
      one["trials"] = {{"hips_seconds", seconds(entry.decision->hips_ns)},
                       {"native_seconds", seconds(entry.decision->native_ns)},
                       {"winner", winner_text(*entry.decision)}};
    else if (entry.num_trials > 0)
      one["undecided_after"] = entry.num_trials;
    classes.push_back(std::move(one));
  }
  for (const auto& [reason, calls] : delegated_) delegated.push_back({{"reason", reason}, {"calls", calls}});
  ordered_json report{{"format", "hips report 1"},
                      {"summary", summary(sums)},
                      {"rank", rank},
                      {"ranks", size},
                      {"native", native},
                      {"run_seconds", seconds(run_ns_)},
                      {"collectives_seconds", seconds(sums.collectives_ns())},
                      {"hips_seconds", seconds(sums.taken.time_ns)},
                      {"native_seconds", seconds(sums.native_ns)},
                      {"trials_seconds", seconds(sums.trials_ns)},
                      {"untimed_calls", num_untimed_},
                      {"set_up_seconds", seconds(set_up_ns_)},
                      {"set_ups", num_set_up_}};
  if (sums.is_compared) report["saved_seconds"] = seconds(sums.saved_ns - set_up_ns_);
  report["hips_calls"] = sums.taken.calls;
  report["delegated_calls"] = sums.delegated;
  report["guard"] = guard_mode_;
  report["communicators"] = std::move(communicators);
  report["classes"] = std::move(classes);
  report["delegated"] = std::move(delegated);
  // Programs name communicators in any encoding.
  return report.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hips::mpi

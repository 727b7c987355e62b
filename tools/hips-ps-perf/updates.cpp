#include "tools/hips-ps-perf/updates.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <hips/ps_model.hpp>

namespace hips::ps_perf {
namespace {

/// A float counts no further.
constexpr std::uint64_t kMostCounted = std::uint64_t{1} << 24U;

/// A rank's steps on a model, of which each element counts the updates.
class UpdateSteps {
 public:
  UpdateSteps(Communicator& comm, const PsPerfOptions& options, bool at_once, bool replicates)
      : comm_(comm),
        options_(options),
        works_(options.num_workers == 0 || comm.rank() >= comm.size() - options.num_workers),
        model_(comm, {.count = options.model_floats,
                      .num_shards = options.num_shards,
                      .delay_max = options.delay_max,
                      .sends_at_once = at_once,
                      .divergence_max = replicates ? divergence_of(comm, options) : -1}),
        values_(options.model_floats),
        ones_(options.model_floats, 1),
        applied_(model_.num_shards()),
        num_applied_(model_.num_shards()) {}

  /// Adds the time of a step, and updates of all workers per second, where a part that is handed back does not count.
  void run(const char* name, Measurements& lines) {
    model_.fetch(values_);
    step();
    comm_.barrier();
    const auto begin = Clock::now();
    const auto end = begin + std::chrono::duration<double>(options_.seconds);
    const std::uint64_t before = parts();
    double steps = 0;
    for (; works_ && Clock::now() < end; ++steps) {
      if (options_.compute_ms > 0)
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options_.compute_ms));
      step();
    }
    // A worker that ends late counts with the time that it took.
    const double us = us_since(begin);
    std::vector<double> sums{steps, 0, works_ ? us : 0};
    if (works_)
      sums[1] = 1e6 * static_cast<double>(parts() - before) / static_cast<double>(num_applied_.size()) / us;
    comm_.allreduce(sums, ReduceOp::kSum);
    if (sums[0] > 0)
      lines.add({"update", name, num_applied_.size(), options_.model_floats, 1}, sums[2] / sums[0], sums[1]);
    check();
  }

 private:
  /// An update adds 1 to each element of a shard.
  static double divergence_of(const Communicator& comm, const PsPerfOptions& options) {
    const auto shards =
        options.num_shards != 0 ? options.num_shards : static_cast<std::uint32_t>(comm.size());
    return options.replica_lag * std::sqrt(std::ceil(static_cast<double>(options.model_floats) / shards));
  }
  void step() {
    if (!works_) return;
    model_.push_fetch(ones_, values_, applied_);
    for (std::size_t shard = 0; shard < applied_.size(); ++shard) num_applied_[shard] += applied_[shard];
  }
  [[nodiscard]] std::uint64_t parts() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t num : num_applied_) sum += num;
    return sum;
  }
  /// The model has what was applied.
  void check() {
    std::vector<std::uint64_t> wanted = num_applied_;
    comm_.allreduce(wanted, ReduceOp::kSum);
    model_.fetch(values_);
    for (std::uint32_t s = 0; s < model_.num_shards(); ++s) {
      const auto shard = model_.shard(s);
      for (std::uint64_t e = shard.begin; e < shard.begin + shard.length; ++e)
        if (static_cast<double>(values_[e]) != static_cast<double>(std::min(wanted[s], kMostCounted)))
          throw Error(Status::error(
              Code::kInternal, fmt::format("hips-ps-perf: element {} has {} updates where {} were applied", e,
                                           values_[e], wanted[s])));
    }
    comm_.barrier();
  }

  Communicator& comm_;
  const PsPerfOptions& options_;
  bool works_;
  ps::Model<float> model_;
  std::vector<float> values_, ones_;
  std::vector<unsigned char> applied_;
  std::vector<std::uint64_t> num_applied_;  ///< by shard: parts of this rank's updates
};

}  // namespace

void measure_updates(Communicator& comm, const PsPerfOptions& options, Measurements& lines) {
  UpdateSteps(comm, options, false, false).run("scheduled", lines);
  if (options.replica_lag >= 0) UpdateSteps(comm, options, false, true).run("replicas", lines);
  UpdateSteps(comm, options, true, false).run("at-once", lines);
}

}  // namespace hips::ps_perf

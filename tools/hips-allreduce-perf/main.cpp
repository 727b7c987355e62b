#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "lib/base/os/printed.hpp"
#include "lib/base/result.hpp"
#include "tools/hips-allreduce-perf/fit.hpp"
#include "tools/hips-allreduce-perf/group.hpp"
#include "tools/hips-allreduce-perf/hips_variants.hpp"
#include "tools/hips-allreduce-perf/launch.hpp"
#include "tools/hips-allreduce-perf/measure.hpp"
#include "tools/hips-allreduce-perf/options.hpp"
#include "tools/hips-allreduce-perf/output_file.hpp"
#include "tools/hips-allreduce-perf/report.hpp"
#include "tools/hips-allreduce-perf/tune.hpp"

namespace hips::perf {
namespace {

/// Runs all rows. Returns the number of wrong elements, the same on all ranks.
std::int64_t run(PerfGroup& group, OtherAllreduce* other, const PerfOptions& options,
                 std::span<const char* const> args) {
  const bool reports = group.rank() == 0;
  PerfReport report(options, args);
  if (!options.json_file.empty()) expect_writable(group, options.json_file);
  const auto processes = group.processes();
  if (reports) report.begin(group.describe(), other, processes);

  const auto [first_type, first_op] = options.reductions().front();
  const auto warm_up_sizes = options.sizes(first_type);
  Bench bench(group, other, options);
  bench.warm_up({warm_up_sizes.back(), first_type, first_op}, {warm_up_sizes.front(), first_type, first_op});
  std::int64_t num_wrong = 0;
  for (const auto& [type, op] : options.reductions()) {
    for (const std::uint64_t bytes : options.sizes(type)) {
      const Case test{bytes, type, op};
      Measured out_of_place = bench.run(test, false);
      const Measured in_place = bench.run(test, true);
      num_wrong += out_of_place.num_wrong.value_or(0) + in_place.num_wrong.value_or(0);
      std::optional<Compared> compared;
      if (options.compare != PerfOptions::Other::kNone || options.bound)
        compared = bench.compare(test, out_of_place);
      std::optional<Overlap> overlap;
      if (options.overlap) overlap = bench.overlap(test);
      if (reports) report.row(test, out_of_place, in_place, compared, overlap);
    }
  }
  if (reports) report.end();
  return num_wrong;
}

/// The allreduce that --compare names; null without --compare.
///
/// Errors   thrown, kInvalidArgument: it is not available, or does not support all types and operations.
std::unique_ptr<OtherAllreduce> other_allreduce(PerfGroup& group, PerfLaunch& launch,
                                                const PerfOptions& options) {
  using Other = PerfOptions::Other;
  switch (options.compare) {
    case Other::kNone:
      return nullptr;
    case Other::kNonBlocking:
      return make_nonblocking(group);
    case Other::kPersistent:
      return make_persistent(group);
    case Other::kOrdinary:
      return make_ordinary(group);
    case Other::kMpi:
    case Other::kInterposer:
      break;
  }
  auto native = launch.native_mpi(options.compare == Other::kInterposer);
  if (native == nullptr)
    throw Error(Status::error(Code::kInvalidArgument,
                              "--compare: the ranks were not started by MPI; run it under mpirun -n N"));
  for (const auto& [type, op] : options.reductions()) {
    if (native->has(type, op)) continue;
    throw Error(Status::error(Code::kInvalidArgument, std::string("--compare: MPI has no ") + to_string(op) +
                                                          " of " + type_name(type) +
                                                          "; choose another -d or -o"));
  }
  return native;
}

int out_of_memory(const PerfOptions& options) {
  std::fprintf(
      stderr,
      "hips-allreduce-perf: out of memory for vectors of %llu bytes, at least two on each rank; choose a "
      "smaller -e\n",
      static_cast<unsigned long long>(options.max_bytes));
  return 1;
}

}  // namespace
}  // namespace hips::perf

int main(int argc, char** argv) {
  using namespace hips::perf;
  const ParsedPerfOptions parsed = parse_options(argc, argv);
  if (parsed.stop) {
    if (!PerfLaunch::reports()) {
      if (parsed.exit_status == 0 || std::getenv("HIPS_RANK") != nullptr) return parsed.exit_status;
      // Rank 0 goes first, and mpirun ends the job. Where only this rank's flags are wrong, it says so.
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    std::fputs(parsed.message.c_str(), parsed.exit_status == 0 ? stdout : stderr);
    return parsed.exit_status;
  }
  try {
    const auto launch = hips::value_or_throw(PerfLaunch::detect(&argc, &argv));
    std::int64_t num_wrong = 0;
    if (!parsed.options.tune_file.empty()) {
      tune(*launch, parsed.options);
    } else if (parsed.options.fit) {
      fit(*launch, parsed.options);
    } else {
      PerfGroup group(*launch, parsed.options);
      const auto other = other_allreduce(group, *launch, parsed.options);
      num_wrong = run(group, other.get(), parsed.options, {argv, static_cast<std::size_t>(argc)});
    }
    launch->finish();
    if (hips::Status status = hips::printed(); !status.ok()) throw hips::Error(std::move(status));
    return num_wrong == 0 ? 0 : 1;
  } catch (const hips::Error& error) {
    std::fprintf(stderr, "hips-allreduce-perf: %s\n", error.what());
    return error.status().code == hips::Code::kInvalidArgument ||
                   error.status().code == hips::Code::kUnsupported
               ? 2
               : 1;
  } catch (const std::bad_alloc&) {
    return out_of_memory(parsed.options);
  } catch (const std::length_error&) {
    return out_of_memory(parsed.options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hips-allreduce-perf: %s\n", error.what());
    return 1;
  }
}

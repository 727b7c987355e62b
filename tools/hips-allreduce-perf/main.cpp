#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <string>

#include "lib/base/result.hpp"
#include "tools/hips-allreduce-perf/group.hpp"
#include "tools/hips-allreduce-perf/launch.hpp"
#include "tools/hips-allreduce-perf/measure.hpp"
#include "tools/hips-allreduce-perf/options.hpp"
#include "tools/hips-allreduce-perf/report.hpp"

namespace hips::perf {
namespace {

/// Returns the number of wrong elements, the same on all ranks.
std::int64_t run(Group& group, HostMpi* host, const Options& options, std::span<const char* const> args) {
  const bool speaker = group.rank() == 0;
  Report report(options, args);
  const auto processes = group.processes();
  if (speaker) report.begin(group.describe(), host != nullptr ? host->name() : "", processes);

  const auto [first_type, first_op] = options.reductions().front();
  const auto warm_up_sizes = options.sizes(first_type);
  Bench bench(group, host, options);
  bench.warm_up({warm_up_sizes.back(), first_type, first_op}, {warm_up_sizes.front(), first_type, first_op});
  std::int64_t num_wrong = 0;
  for (const auto& [type, op] : options.reductions()) {
    for (const std::uint64_t bytes : options.sizes(type)) {
      const Case test{bytes, type, op};
      Measured out_of_place = bench.run(test, false);
      const Measured in_place = bench.run(test, true);
      num_wrong += out_of_place.num_wrong.value_or(0) + in_place.num_wrong.value_or(0);
      std::optional<Compared> compared;
      if (options.compare != Options::Other::kNone || options.bound)
        compared = bench.compare(test, out_of_place);
      if (speaker) report.row(test, out_of_place, in_place, compared);
    }
  }
  if (speaker) report.end();
  return num_wrong;
}

}  // namespace
}  // namespace hips::perf

int main(int argc, char** argv) {
  using namespace hips::perf;
  const Parsed parsed = parse_options(argc, argv);
  if (parsed.stop) {
    if (Launch::speaks()) std::fputs(parsed.message.c_str(), parsed.exit_status == 0 ? stdout : stderr);
    return parsed.exit_status;
  }
  try {
    const auto launch = hips::value_or_throw(Launch::detect(&argc, &argv));
    std::int64_t num_wrong = 0;
    {
      Group group(*launch, parsed.options);
      const auto host = parsed.options.compare != Options::Other::kNone
                            ? launch->host_mpi(parsed.options.compare == Options::Other::kInterposer)
                            : nullptr;
      if (parsed.options.compare != Options::Other::kNone && host == nullptr) {
        throw hips::Error(hips::Status::error(
            hips::Code::kInvalidArgument, "--compare: no MPI started the ranks; run it under mpirun -n N"));
      }
      for (const auto& [type, op] : parsed.options.reductions()) {
        if (host == nullptr || host->has(type, op)) continue;
        throw hips::Error(hips::Status::error(hips::Code::kInvalidArgument,
                                              std::string("--compare: MPI has no ") + to_string(op) + " of " +
                                                  type_name(type) + "; choose other -d and -o"));
      }
      num_wrong = run(group, host.get(), parsed.options, {argv, static_cast<std::size_t>(argc)});
    }
    launch->finish();
    return num_wrong == 0 ? 0 : 1;
  } catch (const hips::Error& error) {
    std::fprintf(stderr, "hips-allreduce-perf: %s\n", error.what());
    return error.status().code == hips::Code::kInvalidArgument ||
                   error.status().code == hips::Code::kUnsupported
               ? 2
               : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hips-allreduce-perf: %s\n", error.what());
    return 1;
  }
}

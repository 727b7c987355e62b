#include "tools/hips-ps-perf/options.hpp"

#include <CLI/CLI.hpp>

#include "tools/common/unknown_argument.hpp"

namespace hips::ps_perf {

ParsedPsPerf parse_options(int argc, const char* const* argv) {
  ParsedPsPerf parsed;
  PsPerfOptions& options = parsed.options;
  CLI::App app(
      "Times pulls, pushes, localizes and intents of a table of rows, beside a blocking TCP ping-pong between the same nodes.\n"
      "\n"
      "  mpirun -n 2 --map-by ppr:1:node hips-ps-perf\n"
      "  hips lab run --namespaces -t switch:2 --mpirun -- mpirun -n 2 hips-ps-perf\n"
      "\n"
      "Rank 0 calls; each rank's rows are on its node. Medians over rounds.\n"
      "The time of an intent is that from the call until the rows are local, found by polling.\n"
      "With --zipf a call is a step, and keys/s are those of all ranks; once without moving rows, then with localize(), with\n"
      "intents, and with intents and replicas.\n"
      "With --model a call is a worker's step: it pushes an update of the model and fetches. keys/s are updates of all workers, and\n"
      "keys the shards; once with transfers that are scheduled, once with all sent at once.",
      "hips-ps-perf");
  app.allow_extras();
  app.option_defaults()->always_capture_default();
  app.add_option("-n,--keys", options.num_keys, "Keys of the table")->check(CLI::Range(1'000, 1'000'000'000));
  app.add_option("-l,--row-lengths", options.row_lengths, "Floats of a row, a list: 1,64")
      ->delimiter(',')
      ->check(CLI::Range(1, 262'144));
  app.add_option("-k,--keys-per-call", options.keys_per_call, "Keys per call with several keys")
      ->check(CLI::Range(2, 100'000));
  app.add_option("-w,--outstanding", options.outstanding, "Outstanding calls where they are pipelined")
      ->check(CLI::Range(1, 10'000));
  app.add_option("-i,--iterations", options.iterations, "Calls of each kind in a round")
      ->check(CLI::Range(10, 10'000'000));
  app.add_option("-r,--rounds", options.rounds, "Rounds")->check(CLI::Range(1, 1000));
  app.add_option(
         "-z,--zipf", options.zipf,
         "Time steps of all ranks instead: each draws keys by Zipf's law with this exponent, 1 for words, "
         "pulls, pushes and ends a clock; 0: no steps")
      ->check(CLI::Range(0.0, 2.0));
  app.add_option("-m,--model", options.model_floats,
                 "Time updates of a model of so many floats instead; 0: no model")
      ->check(CLI::Range(0, 1'000'000'000));
  app.add_option("--shards", options.num_shards,
                 "Shards of the model, on the first nodes; 0: one on each node")
      ->check(CLI::Range(0, 65'535));
  app.add_option("--workers", options.num_workers, "Ranks that train, the last ones; 0: all")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--delay-max", options.delay_max, "Updates that may be applied between a fetch and the push")
      ->default_str("no limit");
  app.add_option("--replica-lag", options.replica_lag,
                 "Also time the model with replicas that may lack so many updates")
      ->default_str("no replicas")
      ->check(CLI::Range(0.0, 1e9));
  app.add_option("--seconds", options.seconds, "Time of each measurement of a model")
      ->check(CLI::Range(0.01, 3600.0));
  app.add_option("--compute", options.compute_ms, "Milliseconds that a worker sleeps in each step")
      ->check(CLI::Range(0.0, 60'000.0));
  std::string compare;
  app.add_option(
         "--compare", compare,
         "classic: also time the rows of rank 0 in a table that never moves them, as classic parameter servers, and print "
         "how many times as long that takes")
      ->default_str("")
      ->check(CLI::IsMember({"classic"}));
  app.add_option("-J,--json", options.json_file, "Also write the figures to this file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    parsed.message = app.help();
    return parsed;
  } catch (const CLI::ParseError& error) {
    parsed.message = std::string("hips-ps-perf: ") + error.what() + "; see hips-ps-perf --help\n";
    parsed.exit_status = 2;
    return parsed;
  }
  options.compares_classic = !compare.empty();
  if (const std::string unknown = cli::unknown_argument(app); !unknown.empty()) {
    parsed.message = "hips-ps-perf: " + unknown + "; see hips-ps-perf --help\n";
    parsed.exit_status = 2;
  }
  if (options.zipf > 0 && options.model_floats > 0 && !parsed.message) {
    parsed.message = "hips-ps-perf: --zipf and --model are both given; expected one of them\n";
    parsed.exit_status = 2;
  }
  if (options.compares_classic && (options.zipf > 0 || options.model_floats > 0) && !parsed.message) {
    parsed.message =
        "hips-ps-perf: --compare is given with --zipf or --model; expected it without, as these time both ways anyway\n";
    parsed.exit_status = 2;
  }
  // A rank keeps two numbers for each key.
  constexpr std::uint64_t kMostKeysOfSteps = 10'000'000;
  if (options.zipf > 0 && options.num_keys > kMostKeysOfSteps && !parsed.message) {
    parsed.message = "hips-ps-perf: --keys is " + std::to_string(options.num_keys) + "; expected at most " +
                     std::to_string(kMostKeysOfSteps) + " with --zipf\n";
    parsed.exit_status = 2;
  }
  if (options.keys_per_call * 4 > options.num_keys && !parsed.message) {
    parsed.message = "hips-ps-perf: --keys is " + std::to_string(options.num_keys) +
                     "; expected at least four times --keys-per-call\n";
    parsed.exit_status = 2;
  }
  return parsed;
}

}  // namespace hips::ps_perf

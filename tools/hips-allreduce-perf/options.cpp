#include "tools/hips-allreduce-perf/options.hpp"

#include <hips/hips.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "lib/base/config/config.hpp"
#include "tools/common/unknown_argument.hpp"

namespace hips::perf {
namespace {

/// Names and order of nccl-tests, with the types that it does not have.
struct TypeName {
  DataType type;
  const char* name;
};
constexpr std::array kTypes = {
    TypeName{DataType::kInt8, "int8"},      TypeName{DataType::kUint8, "uint8"},
    TypeName{DataType::kInt16, "int16"},    TypeName{DataType::kUint16, "uint16"},
    TypeName{DataType::kInt32, "int32"},    TypeName{DataType::kUint32, "uint32"},
    TypeName{DataType::kInt64, "int64"},    TypeName{DataType::kUint64, "uint64"},
    TypeName{DataType::kFloat16, "half"},   TypeName{DataType::kFloat32, "float"},
    TypeName{DataType::kFloat64, "double"}, TypeName{DataType::kBfloat16, "bfloat16"},
};
static_assert(kTypes.size() == kNumDataTypes);
constexpr std::array kOps = {ReduceOp::kSum,  ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin,
                             ReduceOp::kAvg,  ReduceOp::kBand, ReduceOp::kBor, ReduceOp::kBxor,
                             ReduceOp::kLand, ReduceOp::kLor,  ReduceOp::kLxor};
static_assert(kOps.size() == kNumReduceOps);
constexpr const char* kTypeList =
    "int8, uint8, int16, uint16, int32, uint32, int64, uint64, half, float, double, bfloat16 or all";
constexpr const char* kOpList = "sum, prod, max, min, avg, band, bor, bxor, land, lor, lxor or all";

const std::map<std::string, PerfOptions::Other> kOthers = {{"mpi", PerfOptions::Other::kMpi},
                                                           {"interposer", PerfOptions::Other::kInterposer},
                                                           {"nonblocking", PerfOptions::Other::kNonBlocking},
                                                           {"persistent", PerfOptions::Other::kPersistent},
                                                           {"ordinary", PerfOptions::Other::kOrdinary}};

std::uint64_t bytes_of(const std::string& flag, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) throw CLI::ValidationError(flag, "invalid size \"" + text + "\"; write 8, 64K, 128M or 1G");
  return *bytes;
}

std::vector<DataType> types_of(const std::string& text) {
  std::vector<DataType> types;
  for (const auto& [type, name] : kTypes) {
    if (text == "all" || text == name || text == to_string(type)) types.push_back(type);
  }
  if (types.empty()) throw CLI::ValidationError("-d", "unknown type \"" + text + "\"; expected " + kTypeList);
  return types;
}

std::vector<ReduceOp> ops_of(const std::string& text) {
  std::vector<ReduceOp> ops;
  for (const ReduceOp op : kOps) {
    if (text == "all" || text == to_string(op)) ops.push_back(op);
  }
  if (ops.empty())
    throw CLI::ValidationError("-o", "unknown operation \"" + text + "\"; expected " + kOpList);
  return ops;
}

/// Options of nccl-tests without a counterpart here.
constexpr std::array kRefused = {
    cli::RefusedOption{"-m", "--agg_iters",
                       "calls are timed one by one; the library has allreduce_coalesced()"},
    cli::RefusedOption{"-N", "--run_cycles", "start the program again, or raise -n"},
    cli::RefusedOption{"-p", "--parallel_init", "a rank has one thread"},
    cli::RefusedOption{"-z", "--blocking", "there are no GPU streams; calls block"},
    cli::RefusedOption{"-y", "--stream_null", "there are no GPU streams"},
    cli::RefusedOption{"-G", "--cudagraph", "there are no GPU graphs"},
    cli::RefusedOption{"-C", "--report_cputime", "times are those of the CPU already"},
    cli::RefusedOption{"-r", "--root", "an allreduce has no root"},
    cli::RefusedOption{"-T", "--timeout", "set HIPS_TIMEOUT instead"},
    cli::RefusedOption{"-D", "--device_implementation", "there are no GPU kernels"},
    cli::RefusedOption{"-V", "--device_cta_count", "there are no GPU kernels"},
    cli::RefusedOption{"-M", "--memory_report", "run it under /usr/bin/time -v instead"},
    cli::RefusedOption{"-K", "--iter_stats_raw", "-I prints statistics of single calls"},
    cli::RefusedOption{"-u", "--unalign", "buffers are aligned"},
    cli::RefusedOption{"-S", "--report_timestamps", "pipe the output through ts instead"},
    cli::RefusedOption{"-x", "--cta_policy", "there are no GPU kernels"},
};

void expect_one_thread(const std::string& text) {
  if (text == "1") return;
  throw CLI::ValidationError("-t", "the number of threads of a rank is always 1, but \"" + text +
                                       "\" was given; the topology is --topo, as in --topo bcube:3,1");
}

void expect_one_gpu(const std::string& text) {
  if (text == "1") return;
  throw CLI::ValidationError(
      "-g", "vectors are in CPU memory, so that only 1 is valid, but \"" + text + "\" was given");
}

void add_sizes(CLI::App& app, PerfOptions& options) {
  app.add_option_function<std::string>(
         "-b,--minbytes", [&](const std::string& text) { options.min_bytes = bytes_of("-b", text); },
         "Smallest size (default 32M)")
      ->type_name("SIZE");
  app.add_option_function<std::string>(
         "-e,--maxbytes", [&](const std::string& text) { options.max_bytes = bytes_of("-e", text); },
         "Largest size (default 32M)")
      ->type_name("SIZE");
  app.add_option_function<std::string>(
         "-i,--stepbytes", [&](const std::string& text) { options.step_bytes = bytes_of("-i", text); },
         "Difference between sizes (default 1M)")
      ->type_name("SIZE");
  app.add_option("-f,--stepfactor", options.step_factor, "Ratio of sizes, instead of a difference")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
}

void add_calls(CLI::App& app, PerfOptions& options) {
  app.add_option("-n,--iters", options.iters, "Number of timed calls per size (default 20)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_option("-w,--warmup_iters", options.warmup_iters, "Number of warm-up calls (default 1)")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000'000));
  app.add_option("-c,--check", options.check,
                 "Check every element of the result; 0: print N/A as #wrong; more than 1: as 1 (default 1)")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000'000));
  app.add_option_function<std::string>(
         "-d,--datatype", [&](const std::string& text) { options.types = types_of(text); },
         std::string(kTypeList) + " (default float)")
      ->type_name("TYPE");
  app.add_option_function<std::string>(
         "-o,--op", [&](const std::string& text) { options.ops = ops_of(text); },
         std::string(kOpList) + " (default sum); all but the first five are for integers only")
      ->type_name("OP");
  app.add_option_function<int>(
         "-a,--average", [&](int value) { options.average = static_cast<Average>(value); },
         "Time to print: 0 of rank 0, 1 mean of the ranks, 2 of the fastest, 3 of the slowest (default 1)")
      ->type_name("0..3")
      ->check(CLI::Range(0, 3));
  app.add_option_function<int>(
         "-R,--local_register", [&](int value) { options.registered = value != 0; },
         "1 or 2: allocate buffers with hips_mem_alloc(), which peers access directly (default 0)")
      ->type_name("0|1|2")
      ->check(CLI::Range(0, 2));
  app.add_flag("-I,--iter_stats", options.each_call,
               "Also time every call individually: minimum, maximum, 99th percentile and deviation");
  app.add_option("-J,--output_file", options.json_file, "Also write the results as JSON")->type_name("FILE");
  // Command lines for nccl-tests have these; a rank has one thread and no GPU.
  app.add_option_function<std::string>(
         "-t,--nthreads", expect_one_thread,
         "Accepted for compatibility with nccl-tests: 1 (the topology is --topo)")
      ->type_name("1");
  app.add_option_function<std::string>("-g,--ngpus", expect_one_gpu,
                                       "Accepted for compatibility with nccl-tests: 1")
      ->type_name("1");
}

void add_plan(CLI::App& app, PerfOptions& options) {
  // An empty one is a variable of a script that was not set, and would silently measure the default.
  const CLI::Validator not_empty(
      [](const std::string& text) { return text.empty() ? "is empty; leave it out, or name one" : ""; }, "");
  app.add_option("--topo,--topology", options.topology, "Topology, as in hips plan -t: bcube:3,1")
      ->type_name("SPEC")
      ->check(not_empty);
  app.add_option("--algorithm", options.algorithm, "Algorithm: hips, flat-ring, ...")
      ->type_name("NAME")
      ->check(not_empty);
  app.add_option("--pattern", options.pattern, "Pattern: mesh, mesh,ring, ps:2, ...")
      ->type_name("LIST")
      ->check(not_empty);
}

void add_comparisons(CLI::App& app, PerfOptions& options) {
  app.add_option_function<std::string>(
         "--compare", [&](const std::string& what) { options.compare = kOthers.at(what); },
         "Time another allreduce alternately with HiPS, and print the ratio of the times. mpi: native MPI; "
         "interposer: MPI_Allreduce as the program finds it, which under hips run is HiPS again; nonblocking, "
         "persistent: hips_wait() after hips_iallreduce() or hips_start(); ordinary: the same call in memory of "
         "malloc, for -R 1")
      ->type_name("mpi|interposer|nonblocking|persistent|ordinary")
      ->check(CLI::IsMember({"mpi", "interposer", "nonblocking", "persistent", "ordinary"}));
  app.add_flag(
      "--bound", options.bound,
      "Also time a copy of as many bytes by all ranks, and print its time as a share of the allreduce's");
  app.add_option("--rounds", options.rounds,
                 "Number of rounds of -n calls each for --compare, --bound, --tune and --fit (default 11)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  app.add_flag("--overlap", options.overlap,
               "Time non-blocking calls that overlap with an equally long computation, like osu_iallreduce");
  app.add_option("--tests", options.tests,
                 "Number of calls of hips_test() during that computation (default 100)")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000));
}

void add_tuning(CLI::App& app, PerfOptions& options) {
  // What names a plan, or has no place where all are timed.
  const auto excludes_others = [](CLI::Option* option) {
    for (const char* other :
         {"--algorithm", "--pattern", "--compare", "--overlap", "-R", "-a", "-I", "-J", "--bound"})
      option->excludes(other);
    return option;
  };
  excludes_others(
      app.add_option("--tune", options.tune_file,
                     "Instead time every algorithm on the topology, and write the best for each size to this "
                     "selection table, for HIPS_SELECT_TABLE")
          ->type_name("FILE"));
  excludes_others(
      app.add_flag(
          "--fit", options.fit,
          "Instead time every algorithm on the topology, and print a topology file with the rate and latency "
          "that fit best, for the cost model of hips plan and hips compare"))
      ->excludes("--tune");
}

/// Checks options that depend on each other.
///
/// Errors   (thrown) CLI::ValidationError.
void check_options(const CLI::App& app, const PerfOptions& options) {
  if (options.min_bytes > options.max_bytes) {
    throw CLI::ValidationError("-b", "the smallest size, " + std::to_string(options.min_bytes) +
                                         " bytes, is above the largest, " +
                                         std::to_string(options.max_bytes));
  }
  if (options.reductions().empty()) {
    throw CLI::ValidationError("-o", std::string(to_string(options.ops.front())) +
                                         " is for integers, but -d names none; add -d int32");
  }
  if (options.compare == PerfOptions::Other::kOrdinary && !options.registered)
    throw CLI::ValidationError("--compare", "ordinary compares memory of hips_mem_alloc(); add -R 1");
  for (const char* file : {"-J", "--tune"}) {
    const CLI::Option* const given = app.get_option(file);
    if (given->count() > 0 && given->as<std::string>().empty())
      throw CLI::ValidationError(file, "empty file name");
  }
  if ((options.fit || !options.tune_file.empty()) && options.reductions().size() > 1)
    throw CLI::ValidationError(options.fit ? "--fit" : "--tune",
                               "times one type and one operation, but -d and -o name " +
                                   std::to_string(options.reductions().size()) + " pairs of them");
  if (options.step_factor == 1 && options.step_bytes == 0 && options.min_bytes != options.max_bytes)
    throw CLI::ValidationError("-i", "a step of 0 bytes never reaches the largest size; give 1 or more");
}

}  // namespace

const char* type_name(DataType type) {
  for (const auto& [known, name] : kTypes) {
    if (known == type) return name;
  }
  return "unknown";
}

std::vector<std::pair<DataType, ReduceOp>> PerfOptions::reductions() const {
  std::vector<std::pair<DataType, ReduceOp>> pairs;
  for (const DataType type : types) {
    for (const ReduceOp op : ops) {
      if (applies_to(op, type)) pairs.emplace_back(type, op);
    }
  }
  return pairs;
}

std::vector<std::uint64_t> PerfOptions::sizes(DataType type) const {
  std::vector<std::uint64_t> sizes;
  std::uint64_t bytes = min_bytes;
  while (bytes <= max_bytes) {
    sizes.push_back(bytes / size_of(type) * size_of(type));
    const std::uint64_t next = step_factor > 1 ? bytes * step_factor : bytes + step_bytes;
    // Stops at 0 bytes, which a factor does not change, and when a sum or product wraps.
    if (next <= bytes || (step_factor > 1 && next / step_factor != bytes)) break;
    bytes = next;
  }
  return sizes;
}

std::vector<std::uint64_t> PerfOptions::distinct_sizes(DataType type) const {
  std::vector<std::uint64_t> all = sizes(type);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

ParsedPerfOptions parse_options(int argc, const char* const* argv) {
  ParsedPerfOptions parsed;
  PerfOptions& options = parsed.options;
  CLI::App app{
      "Times allreduce over a HiPS communicator, with the flags and columns of nccl-tests.\n"
      "Run it under mpirun, or start each rank with HIPS_RANK, HIPS_SIZE and HIPS_ROOT=host:port.",
      "hips-allreduce-perf"};
  app.set_version_flag("--version", [] { return std::string("hips-allreduce-perf ") + hips_version(); });
  add_sizes(app, options);
  add_calls(app, options);
  add_plan(app, options);
  add_comparisons(app, options);
  add_tuning(app, options);
  try {
    app.parse(argc, const_cast<char**>(argv));
    check_options(app, options);
  } catch (const CLI::ExtrasError&) {
    parsed.stop = true;
    parsed.exit_status = 2;
    parsed.message = "hips-allreduce-perf: " + cli::unknown_argument(app, kRefused, "nccl-tests") +
                     " (--help lists the options)\n";
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int status = app.exit(error, out, err);
    parsed.stop = true;
    parsed.exit_status = status == 0 ? 0 : 2;
    // One line, without CLI11's second line about --help.
    parsed.message = status == 0 ? out.str() : std::string("hips-allreduce-perf: ") + error.what() + "\n";
  }
  return parsed;
}

}  // namespace hips::perf

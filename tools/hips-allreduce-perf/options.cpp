#include "tools/hips-allreduce-perf/options.hpp"

#include <hips/hips.h>

#include <CLI/CLI.hpp>
#include <array>
#include <map>
#include <sstream>

#include "lib/base/config.hpp"

namespace hips::perf {
namespace {

constexpr std::array kTypes = {DataType::kInt32, DataType::kInt64, DataType::kFloat32, DataType::kFloat64};
constexpr std::array kOps = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin};

std::uint64_t bytes_of(const std::string& flag, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) throw CLI::ValidationError(flag, "\"" + text + "\" is no size; write 8, 64K, 128M or 1G");
  return *bytes;
}

std::vector<DataType> types_of(const std::string& text) {
  if (text == "all") return {kTypes.begin(), kTypes.end()};
  for (const DataType type : kTypes) {
    if (text == type_name(type)) return {type};
  }
  throw CLI::ValidationError("-d", "no type \"" + text + "\"; write int32, int64, float, double or all");
}

std::vector<ReduceOp> ops_of(const std::string& text) {
  if (text == "all") return {kOps.begin(), kOps.end()};
  for (const ReduceOp op : kOps) {
    if (text == to_string(op)) return {op};
  }
  throw CLI::ValidationError("-o", "no operation \"" + text + "\"; write sum, prod, max, min or all");
}

}  // namespace

const char* type_name(DataType type) {
  switch (type) {
    case DataType::kInt32:
      return "int32";
    case DataType::kInt64:
      return "int64";
    case DataType::kFloat32:
      return "float";
    case DataType::kFloat64:
      return "double";
  }
  return "unknown";
}

std::vector<std::uint64_t> Options::sizes(DataType type) const {
  std::vector<std::uint64_t> sizes;
  std::uint64_t bytes = min_bytes;
  while (bytes <= max_bytes) {
    sizes.push_back(bytes / size_of(type) * size_of(type));
    const std::uint64_t next = step_factor > 1 ? bytes * step_factor : bytes + step_bytes;
    // 0 bytes times a factor stays 0; a sum or product that wraps comes out smaller.
    if (next <= bytes || (step_factor > 1 && next / step_factor != bytes)) break;
    bytes = next;
  }
  return sizes;
}

Parsed parse_options(int argc, const char* const* argv) {
  Parsed parsed;
  Options& options = parsed.options;
  CLI::App app{
      "Times allreduce over a HiPS communicator, with the flags and columns of nccl-tests.\n"
      "Run it under mpirun, or start each rank with HIPS_RANK, HIPS_SIZE and HIPS_ROOT=host:port.",
      "hips-allreduce-perf"};
  app.set_version_flag("--version", [] { return std::string("hips-allreduce-perf ") + hips_version(); });

  app.add_option_function<std::string>(
         "-b,--minbytes", [&](const std::string& text) { options.min_bytes = bytes_of("-b", text); },
         "smallest size (default 32M)")
      ->type_name("SIZE");
  app.add_option_function<std::string>(
         "-e,--maxbytes", [&](const std::string& text) { options.max_bytes = bytes_of("-e", text); },
         "largest size (default 32M)")
      ->type_name("SIZE");
  app.add_option_function<std::string>(
         "-i,--stepbytes", [&](const std::string& text) { options.step_bytes = bytes_of("-i", text); },
         "step between sizes (default 1M)")
      ->type_name("SIZE");
  app.add_option("-f,--stepfactor", options.step_factor, "factor between sizes, instead of a step")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
  app.add_option("-n,--iters", options.iters, "measured calls per size (default 20)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_option("-w,--warmup_iters", options.warmup_iters, "calls before them (default 1)")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000'000));
  app.add_option("-c,--check", options.check, "compare every element; 0: N/A under #wrong (default 1)")
      ->type_name("0|1")
      ->check(CLI::Range(0, 1));
  app.add_option_function<std::string>(
         "-d,--datatype", [&](const std::string& text) { options.types = types_of(text); },
         "int32, int64, float, double or all (default float)")
      ->type_name("TYPE");
  app.add_option_function<std::string>(
         "-o,--op", [&](const std::string& text) { options.ops = ops_of(text); },
         "sum, prod, max, min or all (default sum)")
      ->type_name("OP");
  app.add_option_function<int>(
         "-a,--average", [&](int value) { options.average = static_cast<Average>(value); },
         "time of: 0 rank 0, 1 the ranks' average, 2 the fastest, 3 the slowest (default 1)")
      ->type_name("0..3")
      ->check(CLI::Range(0, 3));
  app.add_option("-J,--output_file", options.json_file, "also write the results as JSON")->type_name("FILE");
  app.add_option("--topo,--topology", options.topology, "topology, as for hips plan -t: bcube:3,1")
      ->type_name("SPEC");
  app.add_option("--algorithm", options.algorithm, "hips, flat-ring, ...")->type_name("NAME");
  app.add_option("--pattern", options.pattern, "mesh, mesh,ring, ps:2, ...")->type_name("LIST");
  app.add_option_function<std::string>(
         "--compare", [&](const std::string&) { options.compare_mpi = true; },
         "mpi: time the host MPI in turns with HiPS and print the ratio of their times")
      ->type_name("mpi")
      ->check(CLI::IsMember({"mpi"}));
  app.add_flag("--bound", options.bound,
               "time a copy of as many bytes by all ranks, too, and print the share of that speed reached");
  app.add_option("--rounds", options.rounds, "turns of -n calls each for --compare and --bound (default 11)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  // Command lines made for nccl-tests carry these; a rank has one thread and no GPU.
  int one = 1;
  app.add_option("-t,--nthreads", one, "accepted for nccl-tests' sake: 1 (the topology is --topo)")
      ->type_name("1")
      ->check(CLI::Range(1, 1));
  app.add_option("-g,--ngpus", one, "accepted for nccl-tests' sake: 1")
      ->type_name("1")
      ->check(CLI::Range(1, 1));

  try {
    app.parse(argc, const_cast<char**>(argv));
    if (options.min_bytes > options.max_bytes) {
      throw CLI::ValidationError("-b", "the smallest size, " + std::to_string(options.min_bytes) +
                                           " bytes, is above the largest, " +
                                           std::to_string(options.max_bytes));
    }
    if (options.step_factor == 1 && options.step_bytes == 0 && options.min_bytes != options.max_bytes) {
      throw CLI::ValidationError("-i", "a step of 0 bytes never reaches the largest size");
    }
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int status = app.exit(error, out, err);
    parsed.stop = true;
    parsed.exit_status = status == 0 ? 0 : 2;
    // One line: CLI11 adds an invitation to --help, which needs no line of its own.
    parsed.message = status == 0 ? out.str() : std::string("hips-allreduce-perf: ") + error.what() + "\n";
  }
  return parsed;
}

}  // namespace hips::perf

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "lib/reduce/reduce.hpp"
#include "tests/choices.hpp"
#include "tools/hips-allreduce-perf/each_call.hpp"
#include "tools/hips-allreduce-perf/options.hpp"
#include "tools/hips-allreduce-perf/report.hpp"
#include "tools/hips-allreduce-perf/values.hpp"

namespace hips::perf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ParsedPerfOptions parse(std::vector<const char*> args) {
  args.insert(args.begin(), "hips-allreduce-perf");
  return parse_options(static_cast<int>(args.size()), args.data());
}

std::vector<std::byte> reduced(DataType type, ReduceOp op, int num_ranks, std::size_t elements) {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<const std::byte*> sources;
  for (int rank = 0; rank < num_ranks; ++rank) {
    inputs.emplace_back(elements * size_of(type));
    fill(inputs.back(), type, op, rank, num_ranks);
    sources.push_back(inputs.back().data());
  }
  std::vector<std::byte> result(elements * size_of(type));
  reduce::fold(type, op, result.data(), sources, elements);
  return result;
}

TEST(PerfOptionsTest, DefaultsAreThoseOfNcclTests) {
  const ParsedPerfOptions parsed = parse({});
  ASSERT_FALSE(parsed.stop) << parsed.message;
  EXPECT_THAT(parsed.options.sizes(DataType::kFloat32), ElementsAre(32u << 20));
  EXPECT_EQ(parsed.options.iters, 20);
  EXPECT_EQ(parsed.options.warmup_iters, 1);
  EXPECT_EQ(parsed.options.check, 1);
}

TEST(PerfOptionsTest, ACommandLineOfNcclTestsIsAccepted) {
  const ParsedPerfOptions parsed =
      parse({"-b", "8", "-e", "1K", "-f", "4",   "-n", "5",   "-w", "2", "-c", "0",
             "-t", "1", "-g", "1",  "-d", "all", "-o", "max", "-a", "3", "-J", "out.json"});
  ASSERT_FALSE(parsed.stop) << parsed.message;
  EXPECT_THAT(parsed.options.sizes(DataType::kFloat32), ElementsAre(8, 32, 128, 512));
  EXPECT_EQ(parsed.options.types.size(), 12u);
  EXPECT_THAT(parsed.options.ops, ElementsAre(ReduceOp::kMax));
  EXPECT_EQ(parsed.options.average, Average::kMax);
  EXPECT_EQ(parsed.options.json_file, "out.json");
}

TEST(PerfOptionsTest, EveryTypeAndOperationHasItsNames) {
  for (const auto& [name, type] :
       std::vector<std::pair<const char*, DataType>>{{"int8", DataType::kInt8},
                                                     {"uint8", DataType::kUint8},
                                                     {"int32", DataType::kInt32},
                                                     {"uint32", DataType::kUint32},
                                                     {"int64", DataType::kInt64},
                                                     {"uint64", DataType::kUint64},
                                                     {"half", DataType::kFloat16},
                                                     {"float16", DataType::kFloat16},
                                                     {"float", DataType::kFloat32},
                                                     {"float32", DataType::kFloat32},
                                                     {"double", DataType::kFloat64},
                                                     {"float64", DataType::kFloat64},
                                                     {"bfloat16", DataType::kBfloat16},
                                                     {"int16", DataType::kInt16},
                                                     {"uint16", DataType::kUint16}}) {
    const ParsedPerfOptions parsed = parse({"-d", name});
    ASSERT_FALSE(parsed.stop) << parsed.message;
    EXPECT_THAT(parsed.options.types, ElementsAre(type)) << name;
  }
  EXPECT_STREQ(type_name(DataType::kFloat16), "half");
  for (int op = 0; op < kNumReduceOps; ++op)
    EXPECT_THAT(parse({"-d", "int32", "-o", to_string(static_cast<ReduceOp>(op))}).options.ops,
                ElementsAre(static_cast<ReduceOp>(op)));
  // Eight integer types with eleven operations, four floating ones with five.
  EXPECT_EQ(parse({"-d", "all", "-o", "all"}).options.reductions().size(), 8u * 11 + 4 * 5);
}

TEST(PerfOptionsTest, SizesIncreaseByTheStepAndHoldWholeElements) {
  const ParsedPerfOptions parsed = parse({"-b", "4", "-e", "40", "-i", "12"});
  EXPECT_THAT(parsed.options.sizes(DataType::kFloat32), ElementsAre(4, 16, 28, 40));
  EXPECT_THAT(parsed.options.sizes(DataType::kFloat64), ElementsAre(0, 16, 24, 40));
  const ParsedPerfOptions small = parse({"-b", "1", "-e", "16", "-f", "2"});
  EXPECT_THAT(small.options.sizes(DataType::kFloat64), ElementsAre(0, 0, 0, 8, 16));
  EXPECT_THAT(small.options.distinct_sizes(DataType::kFloat64), ElementsAre(0, 8, 16));
}

TEST(PerfOptionsTest, SizesEndBeforeSixtyFourBitsOverflow) {
  PerfOptions options;
  options.min_bytes = std::uint64_t{1} << 62;
  options.max_bytes = UINT64_MAX;
  options.step_factor = 3;
  EXPECT_EQ(options.sizes(DataType::kFloat32).size(), 2u);
  options.step_factor = 1;
  options.step_bytes = std::uint64_t{1} << 63;
  EXPECT_EQ(options.sizes(DataType::kFloat32).size(), 2u);
  options.min_bytes = 0;
  options.step_factor = 2;
  EXPECT_THAT(options.sizes(DataType::kFloat32), ElementsAre(0));
}

TEST(PerfOptionsTest, AnErrorIsOneLineWithTheValueSeen) {
  const std::vector<std::pair<std::vector<const char*>, const char*>> mistakes = {
      {{"-b", "1.5M"}, "invalid size \"1.5M\""},
      {{"-d", "float8"}, "unknown type \"float8\""},
      {{"-o", "mean"}, "unknown operation \"mean\""},
      {{"-d", "half", "-o", "band"}, "band is for integers"},
      {{"-b", "64M", "-e", "1M"}, "above the largest"},
      {{"-n", "0"}, "Value 0 not in range"},
      {{"-g", "8"}, "only 1 is valid, but \"8\" was given"},
      {{"-t", "bcube:3,1"}, "\"bcube:3,1\" was given; the topology is --topo, as in --topo bcube:3,1"},
      {{"--unknown"}, "unknown option \"--unknown\" (--help lists the options)"},
      {{"--byte", "64M"}, "unknown option \"--byte\"; did you mean --minbytes?"},
      {{"--minbyte", "64M"}, "unknown option \"--minbyte\"; did you mean --minbytes?"},
      {{"64M", "--byte"}, "unexpected argument \"64M\""},
      {{"-z", "1"}, "option -z (--blocking) of nccl-tests is unsupported: there are no GPU streams"},
      {{"--root", "all"}, "option -r (--root) of nccl-tests is unsupported: an allreduce has no root"},
      {{"--compare", "nccl"}, "nccl not in {mpi,interposer,nonblocking,persistent,ordinary}"},
      {{"-b", "1", "-e", "2", "-i", "0"}, "a step of 0 bytes"},
      {{"-J", ""}, "-J: empty file name"},
      {{"--topo", ""}, "--topo: is empty; leave it out, or name one"},
      {{"--algorithm", ""}, "--algorithm: is empty"},
      {{"--compare", "ordinary"}, "--compare: ordinary compares memory of hips_mem_alloc(); add -R 1"},
      {{"--tune", ""}, "--tune: empty file name"},
  };
  for (const auto& [args, text] : mistakes) {
    const ParsedPerfOptions parsed = parse(args);
    EXPECT_TRUE(parsed.stop);
    EXPECT_EQ(parsed.exit_status, 2);
    EXPECT_THAT(parsed.message, HasSubstr(text));
    EXPECT_EQ(std::count(parsed.message.begin(), parsed.message.end(), '\n'), 1) << parsed.message;
  }
}

TEST(PerfOptionsTest, ChecksAreCountedAsInNcclTests) {
  for (const auto& [given, checks] :
       std::vector<std::pair<const char*, bool>>{{"0", false}, {"1", true}, {"5", true}}) {
    const ParsedPerfOptions parsed = parse({"-c", given});
    EXPECT_FALSE(parsed.stop) << parsed.message;
    EXPECT_EQ(parsed.options.check != 0, checks);
  }
}

TEST(PerfOptionsTest, HelpIsNoError) {
  const ParsedPerfOptions parsed = parse({"--help"});
  EXPECT_TRUE(parsed.stop);
  EXPECT_EQ(parsed.exit_status, 0);
  EXPECT_THAT(parsed.message, HasSubstr("-b,--minbytes"));
}

class PerfValuesTest : public ::testing::TestWithParam<std::tuple<std::pair<DataType, ReduceOp>, int>> {};

std::vector<std::pair<DataType, ReduceOp>> all_reductions() {
  return parse({"-d", "all", "-o", "all"}).options.reductions();
}

TEST_P(PerfValuesTest, TheReductionOfAllInputsIsTheExpectedResult) {
  const auto [reduction, num_ranks] = GetParam();
  const auto [type, op] = reduction;
  EXPECT_EQ(count_wrong(reduced(type, op, num_ranks, 5000), type, op, num_ranks), 0);
}

TEST_P(PerfValuesTest, OneChangedBitIsCounted) {
  const auto [reduction, num_ranks] = GetParam();
  const auto [type, op] = reduction;
  auto result = reduced(type, op, num_ranks, 100);
  result[58 * size_of(type) - 1] ^= std::byte{0x40};
  EXPECT_EQ(count_wrong(result, type, op, num_ranks), 1);
}

TEST_P(PerfValuesTest, AMisplacedBlockIsDetected) {
  const auto [reduction, num_ranks] = GetParam();
  const auto [type, op] = reduction;
  // The product of one or two ranks may be the same for all elements.
  if (op == ReduceOp::kProd && num_ranks < 3) return;
  const auto result = reduced(type, op, num_ranks, 4096);
  for (const std::size_t distance : {1, 64, 1000, 2048}) {
    const auto shifted = std::span(result).subspan(distance * size_of(type));
    EXPECT_GT(count_wrong(shifted, type, op, num_ranks), 0) << distance;
  }
}

TEST_P(PerfValuesTest, ALostRankIsDetected) {
  const auto [reduction, num_ranks] = GetParam();
  const auto [type, op] = reduction;
  const int step = test::runs_a_sample() ? std::max(1, num_ranks / 3) : 1;
  for (int lost = 0; lost < num_ranks && num_ranks > 1; lost += step) {
    std::vector<std::vector<std::byte>> inputs;
    std::vector<const std::byte*> sources;
    for (int rank = 0; rank < num_ranks; ++rank) {
      inputs.emplace_back(1000 * size_of(type));
      fill(inputs.back(), type, op, rank, num_ranks);
      if (rank != lost) sources.push_back(inputs.back().data());
    }
    std::vector<std::byte> result(1000 * size_of(type));
    reduce::fold(type, op, result.data(), sources, 1000);
    EXPECT_GT(count_wrong(result, type, op, num_ranks), 0) << "lost rank " << lost;
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypesAndOperations, PerfValuesTest,
                         ::testing::Combine(::testing::ValuesIn(all_reductions()),
                                            ::testing::Values(1, 2, 3, 9, 64)));

TEST(PerfEachCallTest, PercentilesAreNearestRanks) {
  std::vector<double> times(200);
  for (std::size_t i = 0; i < times.size(); ++i) times[i] = static_cast<double>((i * 37) % 200 + 1);
  const EachCall each = EachCall::of(times);
  EXPECT_EQ(each.min_us, 1);
  EXPECT_EQ(each.median_us, 100);
  EXPECT_EQ(each.p90_us, 180);
  EXPECT_EQ(each.p99_us, 198);
  EXPECT_EQ(each.max_us, 200);
  EXPECT_NEAR(each.deviation_percent, 100 * std::sqrt((200.0 * 200 - 1) / 12) / 100.5, 1e-9);
}

TEST(PerfEachCallTest, AllPercentilesOfOneCallAreEqual) {
  const EachCall each = EachCall::of({7});
  EXPECT_EQ(each.min_us, 7);
  EXPECT_EQ(each.median_us, 7);
  EXPECT_EQ(each.p99_us, 7);
  EXPECT_EQ(each.deviation_percent, 0);
}

TEST(PerfReportTest, FiguresFitTheirColumn) {
  EXPECT_EQ(figure(0, 7), "   0.00");
  EXPECT_EQ(figure(12.345, 7), "  12.35");
  EXPECT_EQ(figure(9999.99, 7), "9999.99");
  EXPECT_EQ(figure(12345.6, 7), "12345.6");
  EXPECT_EQ(figure(1234567, 7), "1234567");
  EXPECT_EQ(figure(123456789, 7), "1.2e+08");
  EXPECT_EQ(figure(0.125, 6), "  0.12");
  EXPECT_EQ(figure(1e30, 6).size(), 6u);
}

}  // namespace
}  // namespace hips::perf

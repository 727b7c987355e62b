#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <deque>
#include <map>
#include <set>
#include <sstream>

#include <fstream>

#include "lib/plan/check/check.hpp"
#include "lib/plan/formats/msccl/read_msccl.hpp"
#include "lib/plan/formats/msccl/write_msccl.hpp"
#include "lib/plan/formats/plan_file.hpp"
#include "tests/plan/support.hpp"

namespace hips {
namespace {

using tests::run_plan;
using tests::seed_of_run;

// An algorithm as MSCCL's interpreter runs it: thread blocks in parallel, the steps of each one after the
// other, a queue for each (sender, receiver, channel).
struct Machine {
  struct Step {
    std::string type;
    long src = 0, count = 0, dep_block = -1, dep_step = -1;
    bool has_dep = false;
  };
  struct Block {
    long send = -1, recv = -1, channel = 0;
    std::vector<Step> steps;
    std::size_t done = 0;
  };
  struct Gpu {
    std::vector<Block> blocks;
    std::vector<std::multiset<std::size_t>> chunks;  ///< the ranks whose inputs each holds
  };
  std::vector<Gpu> gpus;
};

Machine read_algorithm(const std::string& text) {
  Machine run;
  std::istringstream in(text);
  std::string line;
  while (std::getline(in, line)) {
    long a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0;
    char type[8] = {};
    if (std::sscanf(line.c_str(), " <gpu id=\"%ld\" i_chunks=\"%ld\"", &a, &b) == 2) {
      EXPECT_EQ(static_cast<std::size_t>(a), run.gpus.size());
      run.gpus.emplace_back();
      run.gpus.back().chunks.assign(static_cast<std::size_t>(b), {static_cast<std::size_t>(a)});
    } else if (std::sscanf(line.c_str(), " <tb id=\"%ld\" send=\"%ld\" recv=\"%ld\" chan=\"%ld\"", &a, &b, &c,
                           &d) == 4) {
      EXPECT_EQ(static_cast<std::size_t>(a), run.gpus.back().blocks.size());
      run.gpus.back().blocks.push_back({b, c, d, {}, 0});
    } else if (std::sscanf(line.c_str(),
                           " <step s=\"%ld\" type=\"%7[a-z]\" srcbuf=\"i\" srcoff=\"%ld\" dstbuf=\"i\" "
                           "dstoff=\"%ld\" "
                           "cnt=\"%ld\" depid=\"%ld\" deps=\"%ld\" hasdep=\"%ld\"",
                           &a, type, &b, &c, &d, &e, &f, &g) == 8) {
      EXPECT_EQ(b, c);
      run.gpus.back().blocks.back().steps.push_back({type, b, d, e, f, g == 1});
    }
  }
  return run;
}

/// False if it hangs.
bool execute(Machine& run) {
  std::map<std::tuple<std::size_t, long, long>, std::deque<std::vector<std::multiset<std::size_t>>>> queues;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t g = 0; g < run.gpus.size(); ++g) {
      Machine::Gpu& gpu = run.gpus[g];
      for (Machine::Block& block : gpu.blocks) {
        if (block.done == block.steps.size()) continue;
        const Machine::Step& step = block.steps[block.done];
        if (step.dep_block >= 0) {
          const Machine::Block& other = gpu.blocks.at(static_cast<std::size_t>(step.dep_block));
          EXPECT_TRUE(other.steps.at(static_cast<std::size_t>(step.dep_step)).has_dep);
          if (other.done <= static_cast<std::size_t>(step.dep_step)) continue;
        }
        const auto begin = gpu.chunks.begin() + step.src;
        if (step.type == "s") {
          queues[{g, block.send, block.channel}].emplace_back(begin, begin + step.count);
        } else if (step.type != "nop") {
          auto& queue = queues[{static_cast<std::size_t>(block.recv), static_cast<long>(g), block.channel}];
          if (queue.empty()) continue;
          EXPECT_EQ(queue.front().size(), static_cast<std::size_t>(step.count));
          for (long i = 0; i < step.count; ++i) {
            auto& chunk = gpu.chunks[static_cast<std::size_t>(step.src + i)];
            if (step.type == "r") chunk.clear();
            const auto& arrived = queue.front()[static_cast<std::size_t>(i)];
            chunk.insert(arrived.begin(), arrived.end());
          }
          queue.pop_front();
        }
        ++block.done;
        moved = true;
      }
    }
  }
  for (const Machine::Gpu& gpu : run.gpus) {
    for (const Machine::Block& block : gpu.blocks) {
      if (block.done < block.steps.size()) return false;
    }
  }
  return true;
}

TEST(Msccl, EveryExportedPlanReducesEveryInputOnceEverywhere) {
  int exported = 0;
  for (const std::string spec : {"bcube:3,1", "bcube:2,2", "torus:4x4", "torus:5", "rail:4,2", "rail:3,2/2",
                                 "switch:5", "leafspine:2,3", "fattree:4", "switch:1"}) {
    for (const plan::Algorithm& algorithm : plan::algorithms()) {
      const auto builder =
          plan::make_builder(parse_topology(spec), {.algorithm = std::string(algorithm.name)});
      if (!builder) continue;
      std::ostringstream out;
      if (const Status status = plan::write_msccl(out, **builder); !status.ok()) {
        EXPECT_EQ(status.code, Code::kUnsupported) << status.message;
        continue;
      }
      ++exported;
      Machine run = read_algorithm(out.str());
      ASSERT_EQ(run.gpus.size(), static_cast<std::size_t>((*builder)->shape().num_ranks));
      EXPECT_TRUE(execute(run)) << spec << " " << algorithm.name << " hangs";
      std::multiset<std::size_t> all_ranks;
      for (std::size_t g = 0; g < run.gpus.size(); ++g) all_ranks.insert(g);
      for (const Machine::Gpu& gpu : run.gpus) {
        for (const auto& chunk : gpu.chunks) ASSERT_EQ(chunk, all_ranks) << spec << " " << algorithm.name;
      }
    }
  }
  EXPECT_GE(exported, 30);
}

TEST(Msccl, LanesOfUnequalSharesAreNotExported) {
  std::ostringstream out;
  const auto builder = value_or_throw(plan::make_builder(parse_topology("bcube:2x4x3"), {}));
  const Status status = plan::write_msccl(out, *builder);
  EXPECT_EQ(status.code, Code::kUnsupported);
  EXPECT_THAT(status.message, ::testing::HasSubstr("unequal shares"));
}

TEST(MscclRead, EveryExportedPlanIsReadAndProved) {
  int num_read = 0;
  for (const std::string spec : {"bcube:3,1", "bcube:2,2", "torus:4x4", "torus:5", "rail:4,2", "rail:3,2/2",
                                 "switch:5", "leafspine:2,3", "fattree:4", "switch:1"}) {
    const Topology topology = parse_topology(spec);
    for (const plan::Algorithm& algorithm : plan::algorithms()) {
      const auto builder = plan::make_builder(topology, {.algorithm = std::string(algorithm.name)});
      std::ostringstream out;
      if (!builder || !plan::write_msccl(out, **builder).ok()) continue;
      auto plan = plan::read_msccl(out.str());
      ASSERT_TRUE(plan) << spec << " " << algorithm.name << ": " << plan.error().message;
      plan::set_rails(topology, *plan);
      for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1'000'003}}) {
        const plan::CheckReport report = plan::check(*plan, {.count = count, .topology = &topology});
        ASSERT_TRUE(report.ok()) << spec << " " << algorithm.name << ", " << count << ": "
                                 << report.findings.front().text;
      }
      EXPECT_EQ(run_plan(*plan, 7, false), "") << spec << " " << algorithm.name;
      EXPECT_EQ(run_plan(*plan, 7, true), "") << spec << " " << algorithm.name;
      // Where ranks are reduced into others first, the builder counts one message more than any chain has.
      EXPECT_GE(plan->shape.num_steps + 1, (*builder)->shape().num_steps) << spec << " " << algorithm.name;
      ++num_read;
    }
  }
  EXPECT_GE(num_read, 30);
}

/// A ring of three GPUs as msccl-tools write it: one thread block each, with steps that receive and send.
std::string ring_of_three(const std::string& last = "r") {
  std::string text =
      "<?xml version='1.0'?>\n<!-- a ring -->\n<algo name='ring' proto='LL' nchannels='1' "
      "nchunksperloop='3' ngpus='3' coll='allreduce' inplace='1'>\n";
  for (int gpu = 0; gpu < 3; ++gpu) {
    text += "<gpu id='" + std::to_string(gpu) +
            "' i_chunks='3' o_chunks='3' s_chunks='0'>\n<tb id='0' send='" + std::to_string((gpu + 1) % 3) +
            "' recv='" + std::to_string((gpu + 2) % 3) + "' chan='0'>\n";
    int at = 0;
    const auto step = [&](const std::string& type, int chunk) {
      const std::string offset = std::to_string((chunk % 3 + 3) % 3);
      text += "<step s='" + std::to_string(at++) + "' type='" + type + "' srcbuf='i' srcoff='" + offset +
              "' dstbuf='i' dstoff='" + offset + "' cnt='1' depid='-1' deps='-1' hasdep='0'/>\n";
    };
    step("s", gpu);
    step("rrs", gpu - 1);
    step("rrcs", gpu - 2);
    step("rcs", gpu);
    step(last, gpu - 1);
    text += "</tb>\n</gpu>\n";
  }
  return text + "</algo>\n";
}

TEST(MscclRead, AStepThatReceivesAndSendsBecomesTwoSteps) {
  const auto plan = plan::read_msccl(ring_of_three());
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->shape.num_ranks, 3);
  EXPECT_EQ(plan->shape.num_steps, 4);
  EXPECT_EQ(plan->shape.blocks.num_scratch_blocks, 3);
  EXPECT_EQ(plan->shape.description, "MSCCL algorithm ring");
  const plan::CheckReport report = plan::check(*plan, {});
  EXPECT_TRUE(report.ok()) << report.findings.front().text;
  EXPECT_EQ(run_plan(*plan, 7, true), "");
}

TEST(MscclRead, AWrongEditIsRejectedWithACounterExample) {
  // The last step adds instead of copying: contributions are counted twice.
  const std::string path = ::testing::TempDir() + "/hips_msccl_" + std::to_string(seed_of_run()) + ".xml";
  std::ofstream(path) << ring_of_three("rrc");
  const auto stored = plan::read_plan_file(path);
  ASSERT_TRUE(stored) << stored.error().message;
  const Status status = plan::prove_stored(path, stored->plan, parse_topology("switch:3"));
  EXPECT_EQ(status.code, Code::kInvalidArgument);
  EXPECT_THAT(status.message, ::testing::HasSubstr("hips check --plan " + path));
  std::ofstream(path) << ring_of_three();
  const auto right = plan::read_plan_file(path);
  EXPECT_TRUE(plan::prove_stored(path, right->plan, parse_topology("switch:3")).ok());
  (void)std::remove(path.c_str());
}

TEST(MscclRead, AnErrorNamesTheLineAndTheValidValues) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = ring_of_three();
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto plan = plan::read_msccl(text);
    return plan ? std::string("read") : plan.error().message;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(with("allreduce", "alltoall"),
              HasSubstr("line 3: unsupported coll \"alltoall\"; expected allreduce"));
  EXPECT_THAT(with("type='rrs'", "type='rsr'"),
              HasSubstr("line 7: step has invalid type=\"rsr\"; expected s, r,"));
  EXPECT_THAT(with("srcoff='0'", "srcoff='3'"),
              HasSubstr("line 6: step has invalid srcoff=\"3\" (valid: 0 to 2)"));
  EXPECT_THAT(with("dstoff='0'", "dstoff='1'"),
              HasSubstr("chunk 0 moves to chunk 1; chunks must stay at their place"));
  EXPECT_THAT(with("srcbuf='i'", "srcbuf='s'"),
              HasSubstr("unsupported srcbuf=\"s\": chunks must stay at their place"));
  EXPECT_THAT(with("depid='-1' deps='-1'", "depid='4' deps='0'"),
              HasSubstr("waits for step 0 of tb 4, which does not exist"));
  EXPECT_THAT(with("type='s'", "type='nop'"), HasSubstr("from gpu 0 to gpu 1 on channel 0 are sent"));
  EXPECT_THAT(with("ngpus='3'", "ngpus='4'"), HasSubstr("has 3 gpu elements, but ngpus is 4"));
  EXPECT_THAT(with("ngpus='3'", "ngpus='99999999999999999999'"), HasSubstr("(valid: 1 to 65536)"));
  EXPECT_THAT(with("</gpu>", "</tb>"), HasSubstr("expected the end of the element that is open there"));
  EXPECT_THAT(with("name='ring'", "name='&lol;'"), HasSubstr("with an entity"));
  EXPECT_THAT(with("<!-- a ring -->", "<!-- a ring"), HasSubstr("has no end -->"));
  EXPECT_FALSE(plan::read_msccl(""));
  EXPECT_FALSE(plan::read_msccl(std::string(100'000, '<')));
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "<a>";
  EXPECT_THAT(plan::read_msccl(deep).error().message, HasSubstr("nested more than 16 deep"));
}

}  // namespace
}  // namespace hips

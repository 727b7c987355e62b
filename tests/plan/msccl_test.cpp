#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <deque>
#include <map>
#include <set>
#include <sstream>

#include "lib/plan/plan_msccl.hpp"
#include "tests/plan/support.hpp"

namespace hips {
namespace {

// An algorithm as MSCCL's interpreter runs it: thread blocks at once, the steps of each one after the other,
// a queue for each (sender, receiver, channel).
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
    std::vector<std::multiset<std::size_t>> chunks;  ///< whose inputs each holds
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

/// False where it hangs.
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
            const auto& come = queue.front()[static_cast<std::size_t>(i)];
            chunk.insert(come.begin(), come.end());
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
      std::multiset<std::size_t> everybody;
      for (std::size_t g = 0; g < run.gpus.size(); ++g) everybody.insert(g);
      for (const Machine::Gpu& gpu : run.gpus) {
        for (const auto& chunk : gpu.chunks) ASSERT_EQ(chunk, everybody) << spec << " " << algorithm.name;
      }
    }
  }
  EXPECT_GE(exported, 30);
}

TEST(Msccl, UnequalSharesAreRefused) {
  std::ostringstream out;
  const auto builder = value_or_throw(plan::make_builder(parse_topology("bcube:2x4x3"), {}));
  const Status status = plan::write_msccl(out, *builder);
  EXPECT_EQ(status.code, Code::kUnsupported);
  EXPECT_THAT(status.message, ::testing::HasSubstr("unequal shares"));
}

}  // namespace
}  // namespace hips

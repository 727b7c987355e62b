// Reductions by user functions, in every form and on every backend. Ranks are processes; each computes the expected
// results itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <hips/hips.hpp>

#include "tests/choices.hpp"
#include "tests/comm/collective_task.hpp"
#include "tests/comm/whole_ranks.hpp"

namespace user_op_test {
namespace {

using hips::Communicator;
using hips::UserOp;
using hips::UserOrder;
using hips::test::AffineMaps;
using hips::test::ByteProduct;
using hips::test::Environment;
using hips::test::expect_texts;
using hips::test::FunctionValues;
using hips::test::LastText;
using hips::test::LaterHalf;
using hips::test::MatrixProduct;
using hips::test::PointSum;
using hips::test::Task;
using hips::test::TaskShape;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// What executes the calls: shared memory of one node, or a plan over a transport.
struct Backend {
  std::string name;
  int num_ranks = 0;
  Environment environment{};
};
void PrintTo(const Backend& backend, std::ostream* out) {
  *out << backend.name;
}

std::vector<Backend> backends() {
  std::vector<Backend> all;
  for (const int n : {1, 2, 3, 4, 7, 8, 9}) all.push_back({"Memory" + std::to_string(n), n});
  // Slices hold few elements.
  all.push_back({"LittleMemory4", 4, {{"HIPS_STAGING_BYTES", "65536"}}});
  const auto plan = [&](const std::string& name, int n, const std::string& topology, Environment more = {}) {
    more.emplace("HIPS_TOPO", topology);
    more.emplace("HIPS_TRANSPORT", "shm");
    all.push_back({name, n, std::move(more)});
  };
  for (const int n : {2, 3, 4, 7, 8}) plan("Switch" + std::to_string(n), n, "switch:" + std::to_string(n));
  plan("Bcube9", 9, "bcube:3,1");
  plan("Torus6", 6, "torus:3x2", {{"HIPS_SEGMENT_BYTES", "1024"}});
  plan("OneCredit4", 4, "bcube:2,1", {{"HIPS_CREDITS", "1"}, {"HIPS_SEGMENT_BYTES", "4096"}});
  plan("Tcp3", 3, "switch:3", {{"HIPS_TRANSPORT", "tcp"}});
  plan("Tcp4", 4, "bcube:2,1", {{"HIPS_TRANSPORT", "tcp"}});
  // The progress thread may reduce.
  plan("ProgressThread3", 3, "switch:3", {{"HIPS_PROGRESS_THREAD", "on"}});
  all.push_back({"MemoryProgressThread3", 3, {{"HIPS_PROGRESS_THREAD", "on"}}});
  // Not every rank owns a block, so an allreduce replaces the allgather for functions that do not commute.
  plan("Ps4", 4, "bcube:2,1", {{"HIPS_PATTERN", "ps:1"}});
  plan("Doubling5", 5, "switch:5", {{"HIPS_ALGORITHM", "recursive-doubling"}});
  plan("Halving6", 6, "switch:6", {{"HIPS_ALGORITHM", "halving-doubling"}});
  plan("Ring4", 4, "switch:4", {{"HIPS_ALGORITHM", "flat-ring"}});
  // The plan itself reduces in rank order.
  plan("ByRank4", 4, "bcube:2,1", {{"HIPS_REPRODUCIBLE", "any"}});
  plan("ByRank9", 9, "bcube:3,1", {{"HIPS_REPRODUCIBLE", "any"}});
  return all;
}

/// All user functions, with an op of each.
class Functions {
 public:
  std::unique_ptr<Task> draw(std::mt19937_64& program, std::mt19937_64& own, hips::Rank rank,
                             hips::Rank size) {
    constexpr Task::Kind kKinds[] = {Task::Kind::kAllreduce, Task::Kind::kReduceScatterBlock,
                                     Task::Kind::kReduceScatter, Task::Kind::kReduce};
    const Task::Kind kind = kKinds[program() % 4];
    const std::uint64_t most = program() % 10 == 0 ? 9000 : 1100;
    const auto which = program() % std::tuple_size_v<decltype(ops_)>;
    std::unique_ptr<Task> task;
    [&]<std::size_t... index>(std::index_sequence<index...>) {
      const auto make = [&]<typename Function>(const OpOf<Function>& op) {
        const auto shape = hips::test::draw_shape(program, kind, rank, size,
                                                  sizeof(typename Function::Element) > 100 ? 110 : most);
        task = hips::test::draw_task(FunctionValues<Function>{op.handle()}, shape, own);
      };
      ((index == which ? make(std::get<index>(ops_)) : void()), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<decltype(ops_)>>());
    return task;
  }

 private:
  template <typename Function>
  struct OpOf : UserOp<typename Function::Element> {
    OpOf() : UserOp<typename Function::Element>(Function::combine, Function::kOrder) {}
  };
  std::tuple<OpOf<MatrixProduct>, OpOf<AffineMaps<1>>, OpOf<AffineMaps<3>>, OpOf<AffineMaps<128>>,
             OpOf<LastText>, OpOf<PointSum>, OpOf<ByteProduct>, OpOf<LaterHalf>>
      ops_;
};

/// True for two of three backends in a sampled run, as with sanitizers.
bool is_left_out(const Backend& backend) {
  if (!hips::test::runs_a_sample() || backend.name.find("ProgressThread") != std::string::npos) return false;
  const std::vector<Backend> all = backends();
  const auto index =
      static_cast<std::uint64_t>(std::ranges::find(all, backend.name, &Backend::name) - all.begin());
  return (index + hips::test::seed()) % 3 != 0;
}

class UserOps : public testing::TestWithParam<Backend> {
  void SetUp() override {
    if (is_left_out(GetParam())) GTEST_SKIP() << "not in this sample";
  }
};

// Blocking, non-blocking and persistent calls, several of them outstanding, on two communicators.
TEST_P(UserOps, AreExactInEveryForm) {
  const std::uint64_t seed = hips::test::seed();
  const int num_steps = hips::test::runs_everything() ? 1500 : hips::test::runs_a_sample() ? 40 : 120;
  const auto body = [=](int rank) -> std::string {
    Communicator comms[] = {Communicator::from_environment(), Communicator::from_environment()};
    Functions functions;
    std::mt19937_64 program(seed), own(seed + 1 + static_cast<std::uint64_t>(rank));
    std::vector<std::unique_ptr<Task>> open;
    const auto end_one = [&] {
      const std::size_t which = own() % open.size();
      if (own() % 2 == 0) {
        while (!open[which]->test()) std::this_thread::yield();
      } else {
        open[which]->wait();
      }
      open[which]->check();
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
    };
    for (int step = 0; step < num_steps; ++step) {
      Communicator& comm = comms[program() % 3 == 0 ? 1 : 0];
      auto task = functions.draw(program, own, rank, comm.size());
      task->starts_left = 1;
      task->start(comm);
      open.push_back(std::move(task));
      while (open.size() > 6 || (!open.empty() && own() % 3 == 0)) end_one();
    }
    while (!open.empty()) end_one();
    // Repeated starts, with other calls in between.
    for (int i = 0; i < 4; ++i) {
      auto task = functions.draw(program, own, rank, comms[0].size());
      auto other = functions.draw(program, own, rank, comms[0].size());
      task->starts_left = other->starts_left = 3;
      for (int turn = 0; turn < 3; ++turn) {
        task->start(comms[0]);
        other->start(comms[0]);
        other->wait();
        other->check();
        task->wait();
        task->check();
      }
    }
    return "right";
  };
  expect_texts(GetParam().num_ranks, body, "right", GetParam().environment);
}

// Small vectors of a list share a call, so the function gets elements of several vectors.
TEST_P(UserOps, ReduceListsOfVectors) {
  const std::uint64_t seed = hips::test::seed();
  const auto body = [=](int rank) -> std::string {
    Communicator comm = Communicator::from_environment();
    using Values = FunctionValues<MatrixProduct>;
    const auto op = Values::make_op();
    std::mt19937_64 program(seed);
    for (int turn = 0; turn < 3; ++turn) {
      std::vector<std::vector<MatrixProduct::Element>> vectors(program() % 12);
      std::vector<std::span<MatrixProduct::Element>> list;
      for (auto& vector : vectors) {
        vector.resize(program() % (program() % 5 == 0 ? 9000 : 100));
        for (std::size_t i = 0; i < vector.size(); ++i) vector[i] = Values{}.given(rank, i);
        list.emplace_back(vector);
      }
      comm.allreduce_coalesced<MatrixProduct::Element>(list, op);
      for (const auto& vector : vectors)
        for (std::size_t i = 0; i < vector.size(); ++i)
          if (vector[i].of != Values{}.reduced(comm.size(), i).of)
            return "element " + std::to_string(i) + " is wrong";
    }
    return "right";
  };
  expect_texts(GetParam().num_ranks, body, "right", GetParam().environment);
}

INSTANTIATE_TEST_SUITE_P(Backends, UserOps, testing::ValuesIn(hips::test::or_every_nth(backends(), 3)),
                         [](const auto& instance) { return instance.param.name; });

/// Shared memory of one node, and a plan.
std::vector<Environment> memory_and_plan() {
  return {{{"HIPS_LOG", "error"}},
          {{"HIPS_LOG", "error"}, {"HIPS_TOPO", "switch:3"}, {"HIPS_TRANSPORT", "shm"}}};
}

// An op may be freed while calls with it are outstanding, and before a persistent one starts. Its function and
// context live until these calls are complete, and no longer.
TEST(UserOp, LivesUntilItsLastCallIsComplete) {
  for (const Environment& environment : memory_and_plan()) {
    for (const auto order : {UserOrder::kCommutes, UserOrder::kOrdered}) {
      const auto body = [&](int rank) -> std::string {
        Communicator comm = Communicator::from_environment();
        auto alive = std::make_shared<int>(1);
        const std::weak_ptr<int> watch = alive;
        std::optional<UserOp<std::array<int, 5>>> op(
            std::in_place,
            [alive = std::move(alive)](const auto& a, const auto& b) {
              auto sum = a;
              for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += *alive * b[i];
              return sum;
            },
            order);
        using Element = std::array<int, 5>;
        std::vector<Element> data(3000, Element{1, 2, 3, 4, rank}), again(7, Element{rank, 0, 0, 0, 1});
        hips::Request persistent = comm.allreduce_init(std::span(again), *op);
        hips::Request request = comm.iallreduce(std::span(data), *op);
        op.reset();
        if (watch.expired()) return "gone while a call is outstanding";
        request.wait();
        if (data[2999] != Element{3, 6, 9, 12, 3}) return "wrong";
        for (int turn = 0; turn < 2; ++turn) {
          persistent.start();
          persistent.wait();
        }
        if (again[6] != Element{9, 0, 0, 0, 9}) return "wrong again";
        if (watch.expired()) return "gone before its request";
        persistent = {};
        return watch.expired() ? "right" : "kept for ever";
      };
      expect_texts(3, body, "right", environment);
    }
  }
}

// The function's arguments are aligned like memory of malloc(), also inside the library's buffers.
TEST(UserOp, GetsAlignedElements) {
  for (const Environment& environment : memory_and_plan()) {
    const auto body = [](int /*rank*/) -> std::string {
      struct alignas(16) Wide {
        std::uint64_t of[2];
      };
      Communicator comm = Communicator::from_environment();
      hips_op_t op = HIPS_OP_NULL;
      int misaligned = 0;
      const auto sum = [](const void* in, void* inout, uint64_t count, hips_type_t /*type*/, void* context) {
        const auto address = reinterpret_cast<std::uintptr_t>(in) | reinterpret_cast<std::uintptr_t>(inout);
        if (address % alignof(Wide) != 0) ++*static_cast<int*>(context);
        for (std::uint64_t i = 0; i < 2 * count; ++i) {
          std::uint64_t a = 0, b = 0;
          std::memcpy(&a, static_cast<const char*>(in) + 8 * i, 8);
          std::memcpy(&b, static_cast<char*>(inout) + 8 * i, 8);
          b += a;
          std::memcpy(static_cast<char*>(inout) + 8 * i, &b, 8);
        }
      };
      (void)hips_op_create(sum, 1, &misaligned, nullptr, &op);
      for (const std::size_t count : {1, 2, 3, 6, 7, 100, 1000, 20000}) {
        std::vector<Wide> data(3 * count, Wide{1, 2});
        (void)hips_allreduce(HIPS_IN_PLACE, data.data(), count, HIPS_BYTES(sizeof(Wide)), op, comm.handle());
        if (data[count - 1].of[1] != 6) return "wrong";
        (void)hips_reduce_scatter_block(HIPS_IN_PLACE, data.data(), count, HIPS_BYTES(sizeof(Wide)), op,
                                        comm.handle());
      }
      (void)hips_op_free(&op);
      return misaligned == 0 ? "right" : "misaligned";
    };
    expect_texts(3, body, "right", environment);
  }
}

// The same on one rank, where nothing is reduced.
TEST(UserOp, LivesUntilItsLastRequestOnOneRank) {
  expect_texts(
      1,
      [](int) -> std::string {
        Communicator comm = Communicator::from_environment();
        auto alive = std::make_shared<int>(1);
        const std::weak_ptr<int> watch = alive;
        double value = 2;
        hips::Request request;
        {
          const UserOp<double> op([alive = std::move(alive)](double a, double b) { return a + b; });
          comm.allreduce(std::span(&value, 1), op);
          request = comm.allreduce_init(std::span(&value, 1), op);
        }
        request.start();
        request.wait();
        if (watch.expired() || value != 2) return "gone";
        request = {};
        return watch.expired() ? "right" : "kept for ever";
      },
      "right");
}

TEST(UserOp, IsRejectedIfInvalidOrNotApplicable) {
  expect_texts(
      2,
      [](int) -> std::string {
        Communicator comm = Communicator::from_environment();
        hips_comm_t c = comm.handle();
        std::vector<char> in(4096), out(4096);
        std::string wrong;
        const auto refused = [&](hips_status_t status, const std::string& says) {
          const std::string text = hips_last_error();
          if (status != HIPS_ERR_INVALID_ARGUMENT || text.find(says) == std::string::npos)
            wrong += "[" + says + "] but: " + text + "\n";
        };
        const auto nothing = [](const void*, void*, uint64_t, hips_type_t, void*) {};
        hips_op_t op = HIPS_SUM;
        refused(hips_op_create(nullptr, 1, nullptr, nullptr, &op), "hips_op_create: function is null");
        refused(hips_op_create(nothing, 1, nullptr, nullptr, nullptr), "hips_op_create: op is null");
        refused(hips_op_free(&op), "hips_op_free: op 0x0 was not made by hips_op_create()");
        refused(hips_op_free(nullptr), "hips_op_free: op is null");
        if (hips_op_create(nothing, 1, nullptr, nullptr, &op) != HIPS_OK) wrong += "not created\n";
        hips_op_t old = op;
        if (hips_op_free(&op) != HIPS_OK || op != HIPS_OP_NULL) wrong += "not freed\n";
        refused(hips_op_free(&old), "or has been freed");
        refused(hips_allreduce(in.data(), out.data(), 4, HIPS_INT32, old, c), "or already freed");
        refused(hips_allreduce(in.data(), out.data(), 4, HIPS_INT32, HIPS_OP_NULL, c),
                "allreduce: invalid op 0x7fffffff");
        refused(hips_allreduce(in.data(), out.data(), 4, HIPS_BYTES(24), HIPS_SUM, c),
                "allreduce: sum does not apply to elements of 24 bytes; pass an op of hips_op_create()");
        refused(hips_allreduce(in.data(), out.data(), 1, HIPS_BYTES(HIPS_MAX_ELEMENT_BYTES + 1), HIPS_SUM, c),
                "allreduce: invalid element size in HIPS_BYTES() (valid: 1 to 1024 bytes)");
        refused(hips_bcast(out.data(), 1, HIPS_BYTES(0), 0, c),
                "bcast: invalid element size in HIPS_BYTES() (valid: 1 to 1024 bytes)");
        refused(hips_bcast(out.data(), 1, HIPS_TYPE_NULL, 0, c),
                "bcast: invalid element size in HIPS_BYTES()");
        refused(
            hips_reduce_scatter_block(in.data(), out.data(), UINT64_MAX / 40, HIPS_BYTES(24), HIPS_SUM, c),
            "all sections of 24 bytes together are more than memory can hold");
        // No call was started. Collectives that only move data accept elements of any size.
        std::vector<char> text(13 * 5, comm.rank() == 0 ? 'x' : ' ');
        if (hips_bcast(text.data(), 5, HIPS_BYTES(13), 0, c) != HIPS_OK || text.back() != 'x')
          wrong += "no broadcast\n";
        return wrong.empty() ? "right" : wrong;
      },
      "right");
}

// With little staging a slice cannot hold a large element of each rank. The error comes before any rank waits.
TEST(UserOp, IsUnsupportedForElementsLargerThanASlice) {
  expect_texts(
      9,
      [](int) -> std::string {
        Communicator comm = Communicator::from_environment();
        using Values = FunctionValues<AffineMaps<128>>;
        const auto op = Values::make_op();
        std::vector<AffineMaps<128>::Element> in(9), out(1);
        std::string text =
            hips::test::error_text([&] { comm.reduce_scatter_block<AffineMaps<128>::Element>(in, out, op); });
        comm.barrier();
        return text;
      },
      AllOf(HasSubstr("unsupported: reduce_scatter: slices of 1024 bytes are too small for one element of "
                      "1024 bytes from each of 9 ranks"),
            HasSubstr("HIPS_STAGING_BYTES")),
      {{"HIPS_STAGING_BYTES", "4096"}});
}

// Ranks that disagree get an error that names both calls.
TEST(UserOp, ReportsADifferentKindOrSizeOnARank) {
  for (const Environment& environment : memory_and_plan()) {
    const auto text_of = [&](hips_type_t type, hips_type_t other_type, int commutes, int other_commutes) {
      const auto body = [=](int rank, const hips::test::Ready&) -> std::string {
        Communicator comm = Communicator::from_environment();
        hips_op_t op = HIPS_OP_NULL;
        const auto first = [](const void*, void*, uint64_t, hips_type_t, void*) {};
        (void)hips_op_create(first, rank == 1 ? other_commutes : commutes, nullptr, nullptr, &op);
        std::vector<char> data(1000);
        const auto status =
            hips_allreduce(HIPS_IN_PLACE, data.data(), 5, rank == 1 ? other_type : type, op, comm.handle());
        return status == HIPS_OK ? "no error" : hips_last_error();
      };
      return hips::test::run(3, body, environment);
    };
    EXPECT_THAT(text_of(HIPS_BYTES(24), HIPS_BYTES(40), 1, 1),
                AllOf(HasSubstr("24 bytes"), HasSubstr("40 bytes")));
    EXPECT_THAT(text_of(HIPS_BYTES(4), HIPS_INT32, 1, 1), AllOf(HasSubstr("4 bytes"), HasSubstr("int32")));
    EXPECT_THAT(text_of(HIPS_BYTES(24), HIPS_BYTES(24), 1, 0),
                AllOf(HasSubstr(", user op"), HasSubstr(", ordered user op")));
    // The error names the call, not the allgather that implements it.
    EXPECT_THAT(text_of(HIPS_BYTES(24), HIPS_BYTES(40), 0, 0),
                AllOf(HasSubstr("24 bytes"), HasSubstr("40 bytes"), HasSubstr("ordered user op"),
                      Not(HasSubstr("15")), Not(HasSubstr("allgather"))));
  }
}

struct Particle {
  double position[3];
  std::int32_t id;
  char kind;
  friend bool operator==(const Particle&, const Particle&) = default;
};

TEST(PlainData, IsTransferredUnchanged) {
  constexpr int kRanks = 3;
  const auto particle = [](int rank, int i) {
    return Particle{{rank + 0.5, i + 0.25, -1.0}, 100 * rank + i, static_cast<char>('a' + rank)};
  };
  expect_texts(
      kRanks,
      [&](int rank) -> std::string {
        auto comm = hips::Communicator::from_environment();
        std::vector<Particle> own, all, all_v, root(2);
        for (int i = 0; i < 2; ++i) own.push_back(particle(rank, i));
        all.resize(2 * kRanks);
        comm.allgather<Particle>(own, all);
        const std::vector<std::uint64_t> counts = {1, 2, 0};
        const std::size_t count = counts[static_cast<std::size_t>(rank)];
        all_v.resize(3);
        comm.iallgatherv<Particle>(std::span<const Particle>(own).first(count), all_v, counts).wait();
        if (rank == 1) root = own;
        comm.bcast<Particle>(root, 1);
        // An enumeration is plain data too.
        std::vector<hips::ReduceOp> ops = {rank == 2 ? hips::ReduceOp::kMax : hips::ReduceOp::kSum};
        comm.bcast<hips::ReduceOp>(ops, 2);
        for (int r = 0; r < kRanks; ++r)
          for (int i = 0; i < 2; ++i)
            if (all[static_cast<std::size_t>(2 * r + i)] != particle(r, i)) return "wrong in allgather";
        const std::vector<Particle> want_v = {particle(0, 0), particle(1, 0), particle(1, 1)};
        const std::vector<Particle> want_root = {particle(1, 0), particle(1, 1)};
        if (all_v != want_v) return "wrong in allgatherv";
        return root == want_root && ops[0] == hips::ReduceOp::kMax ? "right" : "wrong in bcast";
      },
      "right");
}

}  // namespace
}  // namespace user_op_test

// Failures of communicators: each is reported as one error on every surviving rank.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <hips/hips.hpp>
#include <iostream>
#include <random>

#include "lib/base/log.hpp"
#include "lib/comm/setup/split.hpp"
#include "lib/cost/select_table.hpp"
#include "tests/choices.hpp"
#include "tests/comm/allreduce_check.hpp"
#include "tests/comm/whole_ranks.hpp"
#include "tests/pipe_signal.hpp"

// lost_peer.c
extern "C" int hips_test_lose_a_peer(void (*ready)(void*), void* context, char* text, std::size_t bytes);

namespace {

using hips::DataType;
using hips::ReduceOp;
using hips::Status;
using hips::test::Environment;
using hips::test::error_text;
using hips::test::internal_communicator;
using hips::test::Outcome;
using hips::test::RankProcesses;
using hips::test::Ready;
using hips::test::run;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using namespace std::chrono_literals;

// ---- Wrong input ---------------------------------------------------------------------------------------

TEST(Communicator, NamesInvalidArgumentsAndDoesNotStartTheCall) {
  const std::string text = run(2, [](int, const Ready&) {
    auto comm = hips::Communicator::from_environment();
    std::vector<float> v(10, 1), w(4);
    std::string errors;
    const auto call = [&](const void* in, void* out, std::uint64_t count, int type, int op) {
      EXPECT_EQ(hips_allreduce(in, out, count, static_cast<hips_type_t>(type), static_cast<hips_op_t>(op),
                               comm.handle()),
                HIPS_ERR_INVALID_ARGUMENT);
      errors += std::string(hips_last_error()) + "|";
    };
    call(nullptr, v.data(), 1, 2, 0);
    call(v.data(), nullptr, 1, 2, 0);
    call(v.data(), v.data() + 2, 5, 2, 0);
    call(v.data(), v.data(), UINT64_MAX / 2, 2, 0);
    call(v.data(), v.data(), 1, 99, 0);
    call(v.data(), v.data(), 1, 2, -1);
    for (const int type : {HIPS_FLOAT32, HIPS_FLOAT64, HIPS_FLOAT16, HIPS_BFLOAT16})
      for (int op = HIPS_BAND; op <= HIPS_LXOR; ++op) call(v.data(), v.data(), 1, type, op);
    errors += error_text([&] { comm.allreduce<float>(v, ReduceOp::kBand); }) + "|";
    errors += error_text([&] { comm.allreduce<float>(v, w, ReduceOp::kSum); }) + "|";
    // The next valid call is the first one of all ranks.
    hips::test::Digest digest;
    hips::test::check_all(comm, digest);
    return errors;
  });
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("input buffer is null"), HasSubstr("output buffer is null"),
            HasSubstr("overlap by 12 of 20 bytes"), HasSubstr("more than memory can hold"),
            HasSubstr("type 99"), HasSubstr("op -1"),
            HasSubstr("invalid argument: allreduce: band does not apply to float32; bitwise and logical "
                      "operations need integers"),
            HasSubstr("lxor does not apply to bfloat16"), HasSubstr("10 elements, output 4")));
}

TEST(Communicator, RejectsNullHandlesOfTheCApi) {
  int value = 0;
  EXPECT_EQ(hips_allreduce(&value, &value, 1, HIPS_INT32, HIPS_SUM, nullptr), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_THAT(hips_last_error(), HasSubstr("comm is null"));
  EXPECT_EQ(hips_comm_rank(nullptr, &value), HIPS_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(hips_comm_destroy(nullptr), HIPS_OK);
  EXPECT_STREQ(hips_comm_describe(nullptr), "");
  EXPECT_STREQ(hips_status_string(HIPS_ERR_PEER_LOST), "peer lost");
  // A thread of its own has had no failed call.
  std::thread([] {
    hips_error_info_t info = HIPS_ERROR_INFO_INIT;
    EXPECT_EQ(hips_last_error_info(&info), HIPS_OK);
    EXPECT_EQ(info.code, HIPS_OK);
    EXPECT_EQ(info.rank, -1);
    EXPECT_STREQ(info.text, "");
  }).join();
}

TEST(Communicator, TablesForATopologyThatIsRecognisedAreEqualOnAllRanks) {
  const std::string path = testing::TempDir() + "hips_select_table";
  const auto with_algorithm = [&](const std::string& file, const std::string& algorithm) {
    std::ofstream(file) << hips::cost::SelectTable::kTitle
                        << "\ntopology=rail:4,2 up_to=any algorithm=" << algorithm << " pattern=default\n";
  };
  with_algorithm(path, "hips");
  with_algorithm(path + "1", "recursive-doubling");
  const std::string text = run(4, [&](int rank, const Ready&) {
    setenv("HIPS_SELECT_TABLE", (rank == 1 ? path + "1" : path).c_str(), 1);
    return error_text([] { hips::Communicator::from_environment(); });
  });
  EXPECT_THAT(text, AllOf(HasSubstr("mismatch: "), HasSubstr("HIPS_SELECT_TABLE"), HasSubstr("rank 1 has")));
  for (const std::string& file : {path, path + "1"}) std::remove(file.c_str());
}

struct Disagreement {
  const char* name;
  const char* variable;
  const char* common;
  const char* odd;  ///< rank 1's
  std::vector<std::string> words;
};

void PrintTo(const Disagreement& d, std::ostream* out) {
  *out << d.name;
}

class CreationFails : public testing::TestWithParam<Disagreement> {};

TEST_P(CreationFails, WithTheSameErrorOnEveryRank) {
  const Disagreement& d = GetParam();
  const std::string text = run(4, [&](int rank, const Ready&) {
    const char* const value = rank == 1 ? d.odd : d.common;
    if (value != nullptr) setenv(d.variable, value, 1);
    return error_text([] { hips::Communicator::from_environment(); });
  });
  for (const std::string& word : d.words) EXPECT_THAT(text, HasSubstr(word));
}

INSTANTIATE_TEST_SUITE_P(
    When, CreationFails,
    testing::Values(
        Disagreement{"size",
                     "HIPS_TOPO",
                     "bcube:3,1",
                     "bcube:3,1",
                     {"invalid argument: topology \"bcube:3,1\"", "9 ranks", "has 4", "switch:4"}},
        Disagreement{"malformed", "HIPS_TOPO", "bcube:4,", "bcube:4,", {"invalid argument: ", "bcube:4,"}},
        Disagreement{"malformed_on_one", "HIPS_TOPO", "bcube:2,1", "bcube", {"rank 1: ", "bcube"}},
        Disagreement{"topology",
                     "HIPS_TOPO",
                     "bcube:2,1",
                     "torus:2x2",
                     {"mismatch: ", "topology", "rank 1 has \"torus:2x2\"", "3 others"}},
        Disagreement{
            "pattern", "HIPS_PATTERN", nullptr, "ring", {"mismatch: ", "pattern", "rank 1 has \"ring\""}},
        Disagreement{"algorithm", "HIPS_ALGORITHM", "hips", "sorcery", {"rank 1: ", "sorcery"}},
        Disagreement{"credits", "HIPS_CREDITS", "2", "1", {"mismatch: ", "credits"}},
        Disagreement{"bad_credits", "HIPS_CREDITS", "2", "many", {"rank 1: HIPS_CREDITS=\"many\""}},
        Disagreement{
            "transport", "HIPS_TRANSPORT", "warp", "warp", {"HIPS_TRANSPORT=\"warp\"", "shm", "tcp"}},
        Disagreement{"interface",
                     "HIPS_SOCKET_IFNAME",
                     nullptr,
                     "warp9",
                     {"rank 1: ", "HIPS_SOCKET_IFNAME=\"warp9\"", "this node has", "lo"}}),
    [](const auto& each) { return std::string(each.param.name); });

/// Cuts what rank 1 sends in one exchange: the whole, or `inside` only the data beside the status.
class CutBootstrap final : public hips::comm::Bootstrap {
 public:
  CutBootstrap(hips::comm::Bootstrap& inner, int exchange, bool inside)
      : inner_(inner), exchange_(exchange), inside_(inside) {}
  [[nodiscard]] hips::Rank rank() const override { return inner_.rank(); }
  [[nodiscard]] hips::Rank size() const override { return inner_.size(); }
  hips::Result<std::vector<hips::comm::Blob>> allgather(std::span<const std::byte> mine) override {
    auto all = inner_.allgather(mine);
    if (!all || num_exchanges_++ != exchange_) return all;
    hips::comm::Blob& blob = (*all)[1];
    hips::comm::ByteReader reader(blob);
    const Status status = reader.get_status();
    const auto bytes = reader.get_bytes();
    if (inside_ && reader.ok()) {
      hips::comm::ByteWriter writer;
      writer.put_status(status);
      writer.put_bytes(bytes.first(bytes.size() / 2));
      blob = writer.take();
    } else {
      blob.resize(blob.size() / 2);
    }
    return all;
  }

 private:
  hips::comm::Bootstrap& inner_;
  int exchange_;
  bool inside_;
  int num_exchanges_ = 0;
};

TEST(CreationFails, IfTheDataOfARankAreCut) {
  const Environment environments[] = {
      {}, {{"HIPS_TOPO", "switch:4"}, {"HIPS_TRANSPORT", "shm"}}, {{"HIPS_TOPO", "switch:2/2"}}};
  for (const Environment& environment : environments) {
    const std::string text = run(
        4,
        [](int, const Ready&) -> std::string {
          const auto loaded = hips::load_process_config();
          const auto rendezvous = hips::comm::rendezvous_from(loaded.config, {});
          auto bootstrap = hips::value_or_throw(hips::comm::make_tcp_bootstrap(*rendezvous));
          int num_errors = 0;
          // Of each creation another exchange is cut, until all of them arrive whole.
          for (int exchange = 0; exchange < 20; ++exchange) {
            bool failed = false;
            for (const bool inside : {false, true}) {
              CutBootstrap cut(*bootstrap, exchange, inside);
              auto comm = hips::comm::Communicator::create(cut, {});
              failed |= !comm;
              if (!comm && comm.error().code != hips::Code::kMismatch) return comm.error().message;
            }
            if (!failed) break;
            ++num_errors;
          }
          return num_errors >= 3 ? "rejected" : "accepted after " + std::to_string(num_errors) + " errors";
        },
        environment);
    EXPECT_EQ(text, "rejected");
  }
}

// ---- Ranks that disagree in a call ---------------------------------------------------------------------

struct Call {
  const char* name;
  std::uint64_t count;
  hips_type_t type;
  hips_op_t op;
  const char* topology = "bcube:2,1";
};

void PrintTo(const Call& call, std::ostream* out) {
  *out << call.name;
}

class Mismatch : public testing::TestWithParam<Call> {};

TEST_P(Mismatch, IsOneErrorOnEveryRank) {
  const Call odd = GetParam();
  const std::string text =
      run(4,
          [&](int rank, const Ready&) {
            auto comm = hips::Communicator::from_environment();
            std::vector<double> buffer(1000, 1.0);
            const auto right_call = [&] {
              return hips_allreduce(HIPS_IN_PLACE, buffer.data(), 100, HIPS_FLOAT64, HIPS_SUM, comm.handle());
            };
            // A rank may be in an earlier or a later call when it learns of the mismatch.
            hips_status_t status = HIPS_OK;
            for (int call = 0; call < 20 && status == HIPS_OK; ++call)
              status = rank == 2 && call == 10 ? hips_allreduce(HIPS_IN_PLACE, buffer.data(), odd.count,
                                                                odd.type, odd.op, comm.handle())
                                               : right_call();
            const std::string first = hips_last_error();
            // The communicator stays failed with the same message.
            EXPECT_EQ(hips_allreduce(HIPS_IN_PLACE, buffer.data(), 1, HIPS_INT32, HIPS_SUM, comm.handle()),
                      status);
            EXPECT_EQ(first, hips_last_error());
            return std::string(hips_status_string(status)) + ": " + first;
          },
          {{"HIPS_TOPO", odd.topology}});
  EXPECT_THAT(text, StartsWith("mismatch: "));
  EXPECT_THAT(text, HasSubstr("rank 2"));
}

INSTANTIATE_TEST_SUITE_P(Of, Mismatch,
                         testing::Values(Call{"count", 99, HIPS_FLOAT64, HIPS_SUM},
                                         Call{"one_element", 1, HIPS_FLOAT64, HIPS_SUM},
                                         Call{"no_element", 0, HIPS_FLOAT64, HIPS_SUM},
                                         Call{"type", 100, HIPS_INT64, HIPS_SUM},
                                         Call{"type_of_another_size", 100, HIPS_FLOAT32, HIPS_SUM},
                                         Call{"op", 100, HIPS_FLOAT64, HIPS_MAX},
                                         Call{"count_on_nodes", 99, HIPS_FLOAT64, HIPS_SUM, "switch:2/2"},
                                         Call{"no_element_on_nodes", 0, HIPS_FLOAT64, HIPS_SUM, "switch:2/2"},
                                         Call{"op_on_nodes", 100, HIPS_FLOAT64, HIPS_MAX, "switch:2/2"}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Communicator, ReportsACallThatOneRankDelegatedAsAMismatch) {
  const std::string text = run(3, [](int rank, const Ready&) {
    auto comm = internal_communicator();
    std::vector<float> values(10, 1);
    const auto call = [&] {
      return comm->allreduce(values.data(), values.data(), values.size(), DataType::kFloat32, ReduceOp::kSum);
    };
    (void)call();
    if (rank == 1) {
      comm->note_delegated("MPI_Allreduce of a derived type");
      // It waits in native MPI's collective, so only its control thread can answer.
      for (int i = 0; i < 18'000 && comm->failure().ok(); ++i) std::this_thread::sleep_for(10ms);
    }
    const Status status = call();
    return std::string(to_string(status.code)) + ": " + status.message;
  });
  EXPECT_THAT(text,
              AllOf(StartsWith("mismatch: "), HasSubstr("derived type"), HasSubstr("but rank 1 called")));
}

// ---- Late, dead, gone ----------------------------------------------------------------------------------

/// Runs 200 times faster than real time.
class FastClock final : public hips::Clock {
 public:
  [[nodiscard]] std::int64_t now_ns() const override { return 200 * hips::SystemClock::instance().now_ns(); }
};

TEST(Communicator, WaitsForARankThatIsTwoMinutesLate) {
  const std::string text = run(3, [](int rank, const Ready&) {
    static FastClock clock;
    auto comm = internal_communicator({.clock = &clock});
    std::string lines;
    hips::log::redirect([&](hips::log::LogLevel, std::string_view line) { lines += line; });
    if (rank == 1) std::this_thread::sleep_for(1s);  // 200 s of that clock
    std::int32_t value = 1;
    const Status status = comm->allreduce(&value, &value, 1, DataType::kInt32, ReduceOp::kSum);
    hips::log::redirect({});
    if (!status.ok()) return status.message;
    if (rank == 1) return std::string(value == 3 && lines.empty() ? "right" : "wrong: " + lines);
    // One log line names the missing rank and its last call.
    const bool told =
        lines.find("rank 1 has not arrived; last call of rank 1: no call yet") != std::string::npos &&
        lines.find("waited") == lines.rfind("waited");
    return std::string(value == 3 && told ? "right" : "wrong: " + lines);
  });
  EXPECT_EQ(text, "right");
}

TEST(Communicator, EndsTheCallOnEveryRankAtTheUsersDeadline) {
  const hips::test::PipeSignal timed_out;
  const std::string text =
      run(3,
          [&](int rank, const Ready&) {
            auto comm = hips::Communicator::from_environment();
            std::int32_t value = 1;
            if (rank == 1) timed_out.wait(2);
            const std::string error =
                error_text([&] { comm.allreduce<std::int32_t>(std::span(&value, 1), ReduceOp::kSum); });
            timed_out.give();
            return error;
          },
          {{"HIPS_TIMEOUT", "4s"}});
  EXPECT_THAT(
      text, AllOf(StartsWith("timed out: "), HasSubstr("HIPS_TIMEOUT"), HasSubstr("rank 1 has not arrived")));
}

TEST(Communicator, OnSeveralNodesNamesRanksOfTheProgram) {
  // The nodes disagree: ranks 2 and 3, on one node, pass another count, which selects another path.
  const auto text_of = [](std::uint64_t others, const Environment& more = {}) {
    Environment environment = {{"HIPS_TOPO", "switch:2/2"}};
    environment.insert(more.begin(), more.end());
    const hips::test::PipeSignal timed_out;
    return run(
        4,
        [&](int rank, const Ready&) {
          auto comm = hips::Communicator::from_environment();
          std::vector<std::int32_t> values(600'000, 1);
          const auto first = std::span(values).first(100);
          for (int call = 0; call < 3; ++call) comm.allreduce<std::int32_t>(first, ReduceOp::kSum);
          const std::string error = error_text([&] {
            const std::uint64_t count = rank >= 2 ? others : 100;
            if (rank == 3 && count == 0) timed_out.wait(3);
            comm.allreduce<std::int32_t>(std::span(values).first(count == 0 ? 100 : count), ReduceOp::kSum);
          });
          timed_out.give();
          return error;
        },
        environment);
  };
  for (const std::uint64_t others : {101U, 5'000U, 600'000U}) {
    const std::string text = text_of(others);
    EXPECT_THAT(text, AllOf(StartsWith("mismatch: allreduce #4: rank "), HasSubstr("count 100,"),
                            HasSubstr("count " + std::to_string(others) + ",")));
  }
  // Rank 3 alone is late: rank 2 waits for it in shared memory, the others wait for these two.
  EXPECT_THAT(
      text_of(0, {{"HIPS_TIMEOUT", "4s"}}),
      AllOf(StartsWith("timed out: "), HasSubstr("HIPS_TIMEOUT"), HasSubstr("rank 3 has not arrived")));
}

TEST(Communicator, OnSeveralNodesFindsADifferentCollective) {
  for (const int odd : {1, 2}) {
    const std::string text = run(4,
                                 [odd](int rank, const Ready&) {
                                   auto comm = hips::Communicator::from_environment();
                                   std::vector<std::int32_t> values(1000, 1);
                                   return error_text([&] {
                                     // A root would have nobody to wait for.
                                     if (rank == odd) comm.bcast<std::int32_t>(values, 0);
                                     if (rank != odd) comm.allreduce<std::int32_t>(values, ReduceOp::kSum);
                                     comm.barrier();
                                   });
                                 },
                                 {{"HIPS_TOPO", "switch:2/2"}, {"HIPS_LOG", "error"}});
    EXPECT_THAT(text, AllOf(StartsWith("mismatch: "), HasSubstr("bcast"))) << odd;
  }
}

TEST(Communicator, ReportsARankThatLeavesBeforeACall) {
  RankProcesses ranks(4, [](int rank, const Ready&) {
    auto comm = hips::Communicator::from_environment();
    std::vector<float> values(100, 1);
    comm.allreduce<float>(values, ReduceOp::kSum);
    if (rank == 2) return std::string("left");
    return error_text([&] { comm.allreduce<float>(values, ReduceOp::kSum); });
  });
  const auto outcomes = ranks.wait();
  for (const std::size_t r : {0u, 1u, 3u}) {
    EXPECT_FALSE(outcomes[r].hung);
    EXPECT_THAT(outcomes[r].text,
                AllOf(StartsWith("peer lost: "), HasSubstr("rank 2"), HasSubstr("without taking part")));
    EXPECT_EQ(outcomes[r].text, outcomes[0].text);
  }
}

bool is_forked_child = false;

}  // namespace

// Asked by the leak sanitizer at exit. What threads of the parent held is out of reach in a child of fork, no
// leak.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() {
  return is_forked_child ? 1 : 0;
}

namespace {

TEST(Communicator, GivesAForkedChildOneErrorAndTheParentRightResults) {
  const std::string text = run(3, [](int, const Ready&) {
    auto comm = hips::Communicator::from_environment();
    hips::test::Digest digest;
    hips::test::check_all(comm, digest);
    const pid_t child = fork();
    if (child == 0) {
      is_forked_child = true;
      std::int32_t value = 1;
      bool right =
          hips_allreduce(&value, &value, 1, HIPS_INT32, HIPS_SUM, comm.handle()) == HIPS_ERR_UNSUPPORTED &&
          std::string(hips_last_error()).find("forked") != std::string::npos;
      hips_comm_t other = nullptr;
      right = right && hips_comm_create(nullptr, nullptr, &other) == HIPS_ERR_UNSUPPORTED;
      // What fails here for the same reason has the same code.
      const auto code_of = [](const std::function<void()>& call) {
        try {
          call();
        } catch (const hips::Error& error) {
          return error.status().code;
        }
        return hips::Code::kOk;
      };
      std::vector<float> memory(100);
      right =
          right &&
          code_of([&] { const hips::RegisteredMemory no{std::span(memory)}; }) == hips::Code::kUnsupported &&
          code_of([] { (void)hips::allocate_registered<float>(100); }) == hips::Code::kUnsupported;
      { const hips::Communicator gone = std::move(comm); }
      std::exit(right ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    hips::test::check_all(comm, digest);
    return std::string(WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "right" : "wrong");
  });
  EXPECT_EQ(text, "right");
}

TEST(Communicator, ReportsAKilledRankOnEverySurvivor) {
  const char* const given = std::getenv("HIPS_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  const int trials = hips::test::runs_everything() ? 200 : 6;
  std::cout << "HIPS_SEED=" << seed << std::endl;
  std::mt19937_64 random(seed);
  struct Shape {
    int num_ranks;
    const char* topology;
  };
  constexpr Shape kShapes[] = {{2, "switch:2"},  {4, "bcube:2,1"},  {9, "bcube:3,1"}, {4, "torus:2x2"},
                               {8, "bcube:2,2"}, {4, "switch:2/2"}, {6, "switch:2/3"}};
  for (int trial = 0; trial < trials; ++trial) {
    const Shape shape = kShapes[random() % std::size(kShapes)];
    const int victim = static_cast<int>(random() % static_cast<unsigned>(shape.num_ranks));
    const std::size_t count = random() % 2 == 0 ? 1 + random() % 64 : 1 + random() % 200'000;
    const auto moment = std::chrono::microseconds(random() % 200'000);
    const char* const transport = trial % 2 == 0 ? "auto" : "tcp";
    SCOPED_TRACE("trial " + std::to_string(trial) + ": rank " + std::to_string(victim) + " of " +
                 shape.topology + " over " + transport + ", count " + std::to_string(count));
    RankProcesses ranks(shape.num_ranks,
                        [count](int rank, const Ready& ready) {
                          auto comm = hips::Communicator::from_environment();
                          std::vector<std::int64_t> in(count), out(count);
                          bool told = false;
                          for (std::int64_t call = 0;; ++call) {
                            for (std::size_t i = 0; i < count; ++i)
                              in[i] = rank + call + static_cast<std::int64_t>(i);
                            try {
                              comm.allreduce<std::int64_t>(in, out, ReduceOp::kSum);
                            } catch (const hips::Error& error) {
                              return std::string(to_string(error.status().code)) + ": " + error.what();
                            }
                            const std::int64_t n = comm.size();
                            for (std::size_t i = 0; i < count; ++i)
                              if (out[i] != n * (n - 1) / 2 + n * (call + static_cast<std::int64_t>(i)))
                                return std::string("wrong result");
                            if (!told) ready();
                            told = true;
                          }
                        },
                        {{"HIPS_TOPO", shape.topology}, {"HIPS_TRANSPORT", transport}});
    ASSERT_TRUE(ranks.wait_ready());
    std::this_thread::sleep_for(moment);
    ranks.signal(victim, SIGKILL);
    const auto outcomes = ranks.wait();
    const std::string& first = outcomes[victim == 0 ? 1 : 0].text;
    EXPECT_THAT(first,
                AllOf(StartsWith("peer lost: rank " + std::to_string(victim) + " "), HasSubstr("died")));
    for (int r = 0; r < shape.num_ranks; ++r) {
      if (r == victim) continue;
      const Outcome& outcome = outcomes[static_cast<std::size_t>(r)];
      EXPECT_TRUE(outcome.exited && outcome.exit_code == 0) << "rank " << r << ", signal " << outcome.signal;
      EXPECT_EQ(outcome.text, first) << "rank " << r;
    }
    EXPECT_THAT(hips::test::left_in_dev_shm(), IsEmpty());
    if (HasFailure()) break;
  }
}

/// Creates a communicator, then splits and duplicates it, until a call fails. Returns the text of the error.
std::string set_up_until_failure(const Ready& ready) {
  const auto loaded = hips::load_process_config();
  const auto rendezvous = hips::comm::rendezvous_from(loaded.config, {});
  const auto bootstrap = hips::value_or_throw(hips::comm::make_tcp_bootstrap(*rendezvous));
  ready();
  try {
    const auto world = hips::value_or_throw(hips::comm::Communicator::create(*bootstrap, {}));
    for (int round = 0;; ++round) {
      const auto part =
          hips::value_or_throw(hips::comm::split(*world, (world->rank() + round) % 2, -world->rank()));
      const auto copy = hips::value_or_throw(hips::comm::duplicate(*part));
      const auto whole = hips::value_or_throw(hips::comm::duplicate(*world));
      std::int64_t value = 1;
      for (hips::comm::Communicator* comm : {part.get(), copy.get(), whole.get()}) {
        const Status status = comm->allreduce(&value, &value, 1, DataType::kInt64, ReduceOp::kSum);
        if (!status.ok()) throw hips::Error(status);
      }
    }
  } catch (const hips::Error& error) {
    return std::string(to_string(error.status().code)) + ": " + error.what();
  }
}

TEST(Communicator, ReportsARankThatIsKilledDuringCreateSplitOrDup) {
  constexpr int kRanks = 5;
  std::mt19937_64 random(hips::test::seed());
  const Environment paths[] = {{{"HIPS_TOPO", "switch:5"}, {"HIPS_TRANSPORT", "shm"}},
                               {{"HIPS_TOPO", "switch:5"}, {"HIPS_TRANSPORT", "tcp"}},
                               {}};
  const int trials = hips::test::runs_everything() ? 200 : 20;
  for (int trial = 0; trial < trials && !HasFailure(); ++trial) {
    const int victim = static_cast<int>(random() % kRanks);
    const auto moment = std::chrono::microseconds(random() % 120'000);
    SCOPED_TRACE("trial " + std::to_string(trial) + ": rank " + std::to_string(victim) + " after " +
                 std::to_string(moment.count()) + " us");
    RankProcesses ranks(
        kRanks, [](int, const Ready& ready) { return set_up_until_failure(ready); },
        paths[static_cast<std::size_t>(trial) % std::size(paths)]);
    ASSERT_TRUE(ranks.wait_ready());
    std::this_thread::sleep_for(moment);
    ranks.signal(victim, SIGKILL);
    const auto outcomes = ranks.wait();
    // In a part, ranks count from 0 in reversed order of the whole.
    const auto name_of = [](int rank) { return HasSubstr("rank " + std::to_string(rank) + " "); };
    const int larger = kRanks - 1 - victim;
    for (int r = 0; r < kRanks; ++r) {
      if (r == victim) continue;
      const Outcome& outcome = outcomes[static_cast<std::size_t>(r)];
      EXPECT_FALSE(outcome.hung) << "rank " << r;
      EXPECT_TRUE(outcome.exited && outcome.exit_code == 0) << "rank " << r << ", signal " << outcome.signal;
      EXPECT_THAT(outcome.text, AllOf(StartsWith("peer lost: "), AnyOf(name_of(victim), name_of(larger / 2))))
          << "rank " << r;
    }
    EXPECT_THAT(hips::test::left_in_dev_shm(), IsEmpty());
  }
}

/// Each survivor's description of its error object after rank 2 of four was killed.
std::string survivors_of_rank_2(const std::function<std::string(int rank, const Ready&)>& body) {
  RankProcesses ranks(4, body, {{"HIPS_TOPO", "switch:4"}});
  EXPECT_TRUE(ranks.wait_ready());
  ranks.signal(2, SIGKILL);
  auto outcomes = ranks.wait(10s);
  outcomes.erase(outcomes.begin() + 2);
  return hips::test::same_text(outcomes);
}

TEST(Communicator, TheErrorObjectOfCppNamesTheRankThatWasLost) {
  const std::string text = survivors_of_rank_2([](int, const Ready& ready) -> std::string {
    auto comm = hips::Communicator::from_environment();
    std::int32_t value = 1;
    comm.allreduce(std::span<std::int32_t>(&value, 1), ReduceOp::kSum);
    ready();
    try {
      while (true) comm.allreduce(std::span<std::int32_t>(&value, 1), ReduceOp::kSum);
    } catch (const hips::Error& error) {
      const Status& status = error.status();
      return std::string(to_string(status.code)) + ": rank " + std::to_string(status.rank) + ", scope " +
             std::to_string(static_cast<int>(status.scope)) + ", rail " + std::to_string(status.rail) +
             (status.message == error.what() && status.message == hips_last_error() ? "" : ", another text");
    }
  });
  EXPECT_EQ(text, "peer lost: rank 2, scope 3, rail -1");
}

TEST(Communicator, TheErrorInfoOfCNamesTheRankThatWasLost) {
  const std::string text = survivors_of_rank_2([](int, const Ready& ready) -> std::string {
    char buffer[200] = "";
    const auto call = [](void* context) { (*static_cast<const Ready*>(context))(); };
    const int failed_step = hips_test_lose_a_peer(call, const_cast<Ready*>(&ready), buffer, sizeof buffer);
    return failed_step == 0 ? buffer : "step " + std::to_string(failed_step) + ": " + hips_last_error();
  });
  EXPECT_EQ(text, "peer lost: rank 2, scope 3, errno 0");
}

TEST(Communicator, TheErrorObjectCarriesErrno) {
  const std::string text = run(1, [](int, const Ready&) -> std::string {
    // Somebody listens where rank 0 of two ranks wants to.
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0)
      return "no port";
    setenv("HIPS_SIZE", "2", 1);
    setenv("HIPS_ROOT", ("127.0.0.1:" + std::to_string(ntohs(address.sin_port))).c_str(), 1);
    try {
      hips::Communicator::from_environment();
    } catch (const hips::Error& error) {
      return "errno " + std::to_string(error.status().sys_errno) + ", rank " +
             std::to_string(error.status().rank);
    }
    return "no error";
  });
  EXPECT_EQ(text, "errno " + std::to_string(EADDRINUSE) + ", rank -1");
}

// Survivors read what they have mapped of the dead rank, whose memory stays as long as they do.
TEST(Communicator, ReportsTheDeathOfARankWhoseMemoryIsRead) {
  std::mt19937_64 random(hips::test::seed());
  for (int trial = 0; trial < 4; ++trial) {
    const int num_ranks = 2 + trial % 2,
              victim = static_cast<int>(random() % static_cast<unsigned>(num_ranks));
    RankProcesses ranks(num_ranks,
                        [](int rank, const Ready& ready) {
                          auto comm = hips::Communicator::from_environment();
                          auto in = hips::allocate_registered<std::int64_t>(300'000);
                          auto out = hips::allocate_registered<std::int64_t>(300'000);
                          for (std::int64_t call = 0;; ++call) {
                            std::fill(in.begin(), in.end(), rank + call);
                            try {
                              comm.allreduce<std::int64_t>(in.span(), out.span(), ReduceOp::kSum);
                            } catch (const hips::Error& error) {
                              return std::string(to_string(error.status().code));
                            }
                            const std::int64_t n = comm.size(), right = n * (n - 1) / 2 + n * call;
                            for (const std::int64_t value : out)
                              if (value != right) return std::string("wrong result");
                            if (call == 0) ready();
                          }
                        },
                        {});
    ASSERT_TRUE(ranks.wait_ready());
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 50'000));
    ranks.signal(victim, SIGKILL);
    const auto outcomes = ranks.wait();
    for (int r = 0; r < num_ranks; ++r) {
      if (r == victim) continue;
      const Outcome& outcome = outcomes[static_cast<std::size_t>(r)];
      EXPECT_TRUE(outcome.exited && outcome.exit_code == 0) << "rank " << r << ", signal " << outcome.signal;
      EXPECT_EQ(outcome.text, "peer lost") << "rank " << r;
    }
    EXPECT_THAT(hips::test::left_in_dev_shm(), IsEmpty());
  }
}

}  // namespace

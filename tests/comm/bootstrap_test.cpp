#include "lib/comm/setup/bootstrap.hpp"
#include "lib/comm/setup/slurm_step.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <future>
#include <span>
#include <thread>
#include <vector>

#include "lib/base/os/unique_fd.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/socket.hpp"
#include "tests/comm/rank_processes.hpp"

namespace bootstrap_test {
namespace {

using hips::Code;
using hips::Config;
using hips::Rank;
using hips::Result;
using hips::Status;
using hips::comm::Blob;
using hips::comm::Bootstrap;
using hips::comm::make_tcp_bootstrap;
using hips::comm::rendezvous_from;
using hips::comm::TcpRendezvous;
using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

Blob blob_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string text_of(const Blob& blob) {
  return {reinterpret_cast<const char*>(blob.data()), blob.size()};
}

class TcpBootstrap : public testing::Test {
 protected:
  TcpRendezvous rendezvous(Rank rank, Rank size) const {
    TcpRendezvous r;
    r.rank = rank;
    r.size = size;
    r.host = "127.0.0.1";
    r.port = port_;
    r.token = "job 7";
    r.connect_timeout_ns = 20'000'000'000;
    return r;
  }
  using PendingBootstrap = std::future<Result<std::unique_ptr<Bootstrap>>>;
  static PendingBootstrap start(TcpRendezvous r) {
    return std::async(std::launch::async, [r] { return make_tcp_bootstrap(r); });
  }
  /// Sends bytes to rank 0 like an unknown process; returns the answer once rank 0 closes the connection.
  std::string talk(const std::string& bytes) const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port_);
    for (int attempt = 0; attempt < 500; ++attempt) {
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        close(fd);
        std::this_thread::sleep_for(10ms);
        continue;
      }
      (void)!send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      std::string answer;
      char buffer[512];
      while (true) {
        const ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got <= 0) break;
        answer.append(buffer, static_cast<std::size_t>(got));
      }
      close(fd);
      return answer;
    }
    return "nobody listens";
  }
  static std::string hello(std::uint32_t version, const std::string& token, Rank rank, Rank size) {
    hips::comm::ByteWriter writer;
    writer.put(hips::comm::kWireMagic);
    writer.put(version);
    writer.put_text(token);
    writer.put(rank);
    writer.put(size);
    writer.put(std::int32_t{99});
    writer.put_text("elsewhere");
    hips::comm::ByteWriter frame;
    frame.put_bytes(writer.blob());
    return text_of(frame.blob());
  }
  const std::uint16_t port_ = hips::test::free_port();
};

TEST_F(TcpBootstrap, RanksExchangeBytesOfDifferentLengthsInRankOrder) {
  constexpr Rank kSize = 5;
  std::vector<std::future<std::string>> ranks;
  for (Rank rank = 0; rank < kSize; ++rank)
    ranks.push_back(std::async(std::launch::async, [this, rank] {
      auto bootstrap = make_tcp_bootstrap(rendezvous(rank, kSize));
      if (!bootstrap) return bootstrap.error().message;
      std::string seen;
      for (int round = 0; round < 3; ++round) {
        const auto all = (*bootstrap)
                             ->allgather(blob_of(std::string(static_cast<std::size_t>(rank * round),
                                                             static_cast<char>('a' + rank))));
        if (!all) return all.error().message;
        for (const Blob& blob : *all) seen += text_of(blob) + ",";
      }
      return seen;
    }));
  for (auto& rank : ranks) EXPECT_EQ(rank.get(), ",,,,,,b,cc,ddd,eeee,,bb,cccc,dddddd,eeeeeeee,");
}

// Each rank sends to all, to the next rank, and twice to rank 0.
TEST_F(TcpBootstrap, BytesForOneRankReachOnlyThatOne) {
  constexpr Rank kSize = 4;
  std::vector<std::future<std::string>> ranks;
  for (Rank rank = 0; rank < kSize; ++rank)
    ranks.push_back(std::async(std::launch::async, [this, rank] {
      auto bootstrap = make_tcp_bootstrap(rendezvous(rank, kSize));
      if (!bootstrap) return bootstrap.error().message;
      // An allgather carries the same bytes where a bootstrap has nothing else.
      struct AllgatherOnly final : hips::comm::Bootstrap {
        hips::comm::Bootstrap& inner;
        explicit AllgatherOnly(hips::comm::Bootstrap& of) : inner(of) {}
        [[nodiscard]] Rank rank() const override { return inner.rank(); }
        [[nodiscard]] Rank size() const override { return inner.size(); }
        hips::Result<std::vector<Blob>> allgather(std::span<const std::byte> mine) override {
          return inner.allgather(mine);
        }
      } plain(**bootstrap);
      std::string seen;
      for (hips::comm::Bootstrap* one : {bootstrap->get(), static_cast<hips::comm::Bootstrap*>(&plain)}) {
        const std::string name(1, static_cast<char>('a' + rank));
        hips::comm::SetUpExchanges exchanges(*one);
        const auto got = exchanges.exchange(
            {blob_of(name),
             {{(rank + 1) % kSize, blob_of(name + "!")}, {0, blob_of(name + "1")}, {0, blob_of("")}}});
        if (!got) return got.error().message;
        for (const Blob& blob : got->from_all) seen += text_of(blob);
        for (const hips::PeerBlob& from : got->from_peers)
          seen += " " + std::to_string(from.peer) + text_of(from.blob);
        seen += ";";
      }
      return seen;
    }));
  const std::string first = "abcd 0a1 0 1b1 1 2c1 2 3d! 3d1 3;";
  EXPECT_EQ(ranks[0].get(), first + first);
  EXPECT_EQ(ranks[1].get(), "abcd 0a!;abcd 0a!;");
  EXPECT_EQ(ranks[2].get(), "abcd 1b!;abcd 1b!;");
  EXPECT_EQ(ranks[3].get(), "abcd 2c!;abcd 2c!;");
}

TEST_F(TcpBootstrap, ARankThatGivesUpEndsTheExchangeOnAllRanks) {
  constexpr Rank kSize = 3;
  std::vector<std::future<std::string>> ranks;
  for (Rank rank = 0; rank < kSize; ++rank)
    ranks.push_back(std::async(std::launch::async, [this, rank] {
      auto bootstrap = make_tcp_bootstrap(rendezvous(rank, kSize));
      if (!bootstrap) return bootstrap.error().message;
      hips::comm::SetUpExchanges exchanges(**bootstrap);
      const auto first = exchanges.allgather(blob_of(std::string(1, static_cast<char>('a' + rank))));
      if (!first) return first.error().message;
      std::string seen;
      for (const Blob& blob : *first) seen += text_of(blob);
      if (rank == 1) {
        EXPECT_FALSE(exchanges.give_up(Status::error(Code::kOutOfMemory, "no memory")).ok());
        return seen + ": I gave up";
      }
      const auto second = exchanges.allgather(blob_of("more"));
      return seen + ": " + (second ? "went on" : second.error().message);
    }));
  EXPECT_EQ(ranks[0].get(), "abc: rank 1: no memory");
  EXPECT_EQ(ranks[1].get(), "abc: I gave up");
  EXPECT_EQ(ranks[2].get(), "abc: rank 1: no memory");
}

TEST(FrameReader, ReadsAFrameAtATimeAndRefusesTheNextOneThatIsTooLong) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const hips::UniqueFd from(ends[0]), to(ends[1]);
  hips::comm::FrameWriter writer;
  writer.push(blob_of("short"));
  writer.push(Blob(5000));
  ASSERT_TRUE(writer.flush(to.get()));
  hips::comm::FrameReader reader(64);
  EXPECT_EQ(reader.fill(from.get()), hips::comm::FrameReader::State::kOpen);
  const auto frame = reader.next();
  ASSERT_TRUE(frame);
  EXPECT_EQ(text_of(*frame), "short");
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.fill(from.get()), hips::comm::FrameReader::State::kBroken);
}

TEST_F(TcpBootstrap, AMegabyteFromEachRankArrives) {
  constexpr Rank kSize = 3;
  std::vector<std::future<bool>> ranks;
  for (Rank rank = 0; rank < kSize; ++rank)
    ranks.push_back(std::async(std::launch::async, [this, rank] {
      auto bootstrap = make_tcp_bootstrap(rendezvous(rank, kSize));
      if (!bootstrap) return false;
      const auto all = (*bootstrap)->allgather(Blob(1 << 20, static_cast<std::byte>(rank + 1)));
      if (!all) return false;
      for (Rank r = 0; r < kSize; ++r)
        if ((*all)[static_cast<std::size_t>(r)] != Blob(1 << 20, static_cast<std::byte>(r + 1))) return false;
      return true;
    }));
  for (auto& rank : ranks) EXPECT_TRUE(rank.get());
}

TEST_F(TcpBootstrap, EveryConnectedRankNamesTheMissingRanks) {
  auto root = rendezvous(0, 4);
  root.connect_timeout_ns = 300'000'000;
  auto zero = start(root);
  auto two = start(rendezvous(2, 4));
  const auto at_root = zero.get();
  const auto at_two = two.get();
  ASSERT_FALSE(at_root);
  ASSERT_FALSE(at_two);
  EXPECT_EQ(at_root.error().code, Code::kTimeout);
  EXPECT_THAT(at_root.error().message,
              AllOf(HasSubstr("ranks 1, 3 of 4 did not connect"), HasSubstr("0.3 s")));
  EXPECT_EQ(at_two.error().message, at_root.error().message);
}

TEST_F(TcpBootstrap, ARankNamesTheAddressAtWhichItCannotReachRankZero) {
  auto r = rendezvous(1, 2);
  r.connect_timeout_ns = 300'000'000;
  const auto result = make_tcp_bootstrap(r);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kTimeout);
  EXPECT_THAT(
      result.error().message,
      AllOf(HasSubstr("rank 1"), HasSubstr("127.0.0.1:" + std::to_string(port_)), HasSubstr("refused")));
}

TEST_F(TcpBootstrap, RankZeroRejectsUnknownProcessesAndStillConnectsTheJob) {
  auto zero = start(rendezvous(0, 2));
  EXPECT_THAT(talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), HasSubstr("HiPS job"));
  EXPECT_THAT(talk(std::string(8, '\0')), HasSubstr("HiPS job"));
  EXPECT_THAT(talk(hello(hips::comm::kWireVersion, "another job", 1, 2)), HasSubstr("HIPS_JOB_TOKEN"));
  auto one = start(rendezvous(1, 2));
  EXPECT_TRUE(zero.get());
  EXPECT_TRUE(one.get());
}

TEST_F(TcpBootstrap, RankZeroRejectsADuplicateRankAndKeepsTheFirst) {
  auto zero = start(rendezvous(0, 3));
  auto one = start(rendezvous(1, 3));
  // Either of the two may connect first. Exactly one of them is rejected, with one line that says why.
  auto other_one = start(rendezvous(1, 3));
  auto two = [&] {
    std::this_thread::sleep_for(100ms);
    return start(rendezvous(2, 3));
  }();
  EXPECT_TRUE(zero.get());
  EXPECT_TRUE(two.get());
  const auto first = one.get();
  const auto second = other_one.get();
  ASSERT_NE(first.has_value(), second.has_value());
  const Status& refused = first ? second.error() : first.error();
  EXPECT_EQ(refused.code, Code::kInvalidArgument);
  EXPECT_THAT(refused.message, AllOf(HasSubstr("rank 1"), HasSubstr("has that rank already")));
}

TEST_F(TcpBootstrap, ADifferentWireVersionFailsTheRendezvousOnAllRanks) {
  auto zero = start(rendezvous(0, 3));
  auto one = start(rendezvous(1, 3));
  talk(hello(hips::comm::kWireVersion + 1, "job 7", 2, 3));
  const auto at_root = zero.get();
  const auto at_one = one.get();
  ASSERT_FALSE(at_root);
  ASSERT_FALSE(at_one);
  EXPECT_EQ(at_root.error().code, Code::kMismatch);
  EXPECT_THAT(at_root.error().message, AllOf(HasSubstr("rank 2"), HasSubstr("wire version")));
  EXPECT_EQ(at_one.error().message, at_root.error().message);
}

TEST_F(TcpBootstrap, ADifferentSizeFailsTheRendezvousOnAllRanks) {
  auto zero = start(rendezvous(0, 3));
  auto one = start(rendezvous(1, 4));
  const auto at_root = zero.get();
  const auto at_one = one.get();
  ASSERT_FALSE(at_root);
  ASSERT_FALSE(at_one);
  EXPECT_THAT(at_root.error().message, AllOf(HasSubstr("4 ranks"), HasSubstr("rank 0 expects 3")));
  EXPECT_EQ(at_one.error().message, at_root.error().message);
}

TEST_F(TcpBootstrap, AllRanksNameTheRankThatDisconnectsDuringTheSetup) {
  auto zero = start(rendezvous(0, 3));
  auto one = start(rendezvous(1, 3));
  auto two = start(rendezvous(2, 3));
  auto root = zero.get();
  auto first = one.get();
  ASSERT_TRUE(root && first);
  ASSERT_TRUE(two.get());  // and is destroyed here
  auto gathering = std::async(std::launch::async, [&] { return (*first)->allgather({}); });
  const auto at_root = (*root)->allgather({});
  const auto at_one = gathering.get();
  ASSERT_FALSE(at_root);
  ASSERT_FALSE(at_one);
  EXPECT_EQ(at_root.error().code, Code::kPeerLost);
  EXPECT_THAT(at_root.error().message, HasSubstr("rank 2 (pid "));
  EXPECT_EQ(at_one.error().message, at_root.error().message);
}

/// Opens descriptors until `left` are left, with a hard limit that is `spare` above the soft one.
void use_descriptors(int left, rlim_t spare) {
  int last = -1;
  for (int i = 0; i < 64; ++i) last = dup(0);  // no number below the last is free
  const auto soft = static_cast<rlim_t>(last + 1 + left);
  const rlimit limit{soft, soft + spare};
  if (last < 0 || setrlimit(RLIMIT_NOFILE, &limit) != 0) throw std::runtime_error("cannot set the limit");
}

TEST_F(TcpBootstrap, WithoutDescriptorsRankZeroSaysSoAndAllRanksEnd) {
  hips::test::RankProcesses ranks(4, [this](int rank, const std::function<void()>&) {
    // One for the listener and one for a connection.
    if (rank == 0) use_descriptors(2, 0);
    auto bootstrap = make_tcp_bootstrap(rendezvous(rank, 4));
    return bootstrap ? std::string("connected") : bootstrap.error().message;
  });
  const auto outcomes = ranks.wait();
  for (const auto& outcome : outcomes) {
    EXPECT_FALSE(outcome.hung);
    EXPECT_NE(outcome.text, "connected");
  }
  EXPECT_THAT(outcomes[0].text,
              AllOf(HasSubstr("rank 0"), HasSubstr("ulimit -n"), HasSubstr("Too many open files")));
}

TEST_F(TcpBootstrap, RankZeroRaisesALowSoftLimitOfDescriptors) {
  hips::test::RankProcesses ranks(6, [this](int rank, const std::function<void()>&) {
    if (rank == 0) use_descriptors(2, 100);
    auto bootstrap = make_tcp_bootstrap(rendezvous(rank, 6));
    return bootstrap ? std::string("connected") : bootstrap.error().message;
  });
  for (const auto& outcome : ranks.wait()) EXPECT_EQ(outcome.text, "connected");
}

TEST(Agree, AllRanksGetTheSameOutcome) {
  const std::uint16_t port = hips::test::free_port();
  std::vector<std::future<Status>> ranks;
  for (Rank rank = 0; rank < 3; ++rank)
    ranks.push_back(std::async(std::launch::async, [rank, port]() -> Status {
      TcpRendezvous r;
      r.rank = rank;
      r.size = 3;
      r.host = "127.0.0.1";
      r.port = port;
      auto bootstrap = make_tcp_bootstrap(r);
      if (!bootstrap) return bootstrap.error();
      if (Status status = hips::comm::SetUpExchanges(**bootstrap).agree(Status::success()); !status.ok())
        return status;
      return hips::comm::SetUpExchanges(**bootstrap)
          .agree(rank == 1 ? Status::error(Code::kOutOfMemory, "no memory for 7 bytes") : Status::success());
    }));
  for (auto& rank : ranks) {
    const Status status = rank.get();
    EXPECT_EQ(status.code, Code::kOutOfMemory);
    EXPECT_EQ(status.message, "rank 1: no memory for 7 bytes");
  }
}

/// A bootstrap of one rank over the callbacks of the C API.
TEST(CallbackBootstrap, ReturnsTheDataAndTheErrorOfTheCallback) {
  static int result = 0;
  hips_bootstrap_t callbacks{};
  callbacks.struct_size = sizeof callbacks;
  callbacks.size = 1;
  callbacks.allgather = [](void*, const void* send, void* receive, std::size_t bytes) {
    if (bytes > 0) std::memcpy(receive, send, bytes);
    return result;
  };
  auto bootstrap = hips::comm::make_callback_bootstrap(callbacks);
  ASSERT_TRUE(bootstrap);
  EXPECT_EQ(text_of((*bootstrap)->allgather(blob_of("hello")).value()[0]), "hello");
  EXPECT_EQ((*bootstrap)->allgather({}).value()[0].size(), 0u);
  result = 17;
  EXPECT_THAT((*bootstrap)->allgather({}).error().message, HasSubstr("returned 17"));
}

TEST(CallbackBootstrap, RejectsInvalidArguments) {
  hips_bootstrap_t callbacks{};
  callbacks.size = 1;
  EXPECT_THAT(hips::comm::make_callback_bootstrap(callbacks).error().message, HasSubstr("struct_size"));
  callbacks.struct_size = sizeof callbacks;
  EXPECT_THAT(hips::comm::make_callback_bootstrap(callbacks).error().message, HasSubstr("allgather is null"));
  callbacks.allgather = [](void*, const void*, void*, std::size_t) { return 0; };
  callbacks.rank = 1;
  EXPECT_THAT(hips::comm::make_callback_bootstrap(callbacks).error().message,
              HasSubstr("rank 1 is out of range [0, 0]"));
}

TEST(Rendezvous, ReadsTheHipsVariables) {
  Config config;
  config.rank = 2;
  config.size = 4;
  config.root = "[fe80::1]:4711";
  config.timeout_ns = 5'000'000'000;
  const auto r = rendezvous_from(config, {});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->rank, 2);
  EXPECT_EQ(r->size, 4);
  EXPECT_EQ(r->host, "fe80::1");
  EXPECT_EQ(r->port, 4711);
  EXPECT_EQ(r->connect_timeout_ns, 5'000'000'000);
}

TEST(Rendezvous, ReadsTorchrunsVariablesAndUsesThePortAboveItsOwn) {
  const auto r = rendezvous_from({}, {{"RANK", "1"},
                                      {"WORLD_SIZE", "2"},
                                      {"MASTER_ADDR", "node1"},
                                      {"MASTER_PORT", "29500"},
                                      {"TORCHELASTIC_RUN_ID", "abc"}});
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->rank, 1);
  EXPECT_EQ(r->host, "node1");
  EXPECT_EQ(r->port, 29501);
  EXPECT_EQ(r->token, "abc");
}

TEST(Rendezvous, TakesRankAndSizeFromTheLauncherWhereOnlyTheRootIsNamed) {
  Config config;
  config.root = "node1:4711";
  for (const auto& [rank, size] :
       {std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), std::pair("PMI_RANK", "PMI_SIZE"),
        std::pair("SLURM_PROCID", "SLURM_NTASKS")}) {
    const auto r = rendezvous_from(config, {{rank, "3"}, {size, "9"}});
    ASSERT_TRUE(r) << r.error().message;
    EXPECT_EQ(r->rank, 3);
    EXPECT_EQ(r->size, 9);
    EXPECT_EQ(r->host, "node1");
    EXPECT_EQ(r->port, 4711);
    const auto without_root = rendezvous_from({}, {{rank, "3"}, {size, "9"}});
    ASSERT_FALSE(without_root);
    EXPECT_THAT(without_root.error().message,
                AllOf(HasSubstr("rank 3 of 9"), HasSubstr("HIPS_ROOT=host:port")));
  }
  const auto under_torchrun =
      rendezvous_from(config, {{"RANK", "3"}, {"WORLD_SIZE", "9"}, {"MASTER_ADDR", "other"}});
  ASSERT_TRUE(under_torchrun) << under_torchrun.error().message;
  EXPECT_EQ(under_torchrun->host, "node1");
  // A single rank needs no root.
  EXPECT_TRUE(rendezvous_from({}, {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}));
}

/// The variables of a task of srun.
hips::Environment task_of_srun() {
  return {{"SLURM_JOB_ID", "77"},
          {"SLURM_STEP_ID", "3"},
          {"SLURM_PROCID", "1"},
          {"SLURM_STEP_NUM_TASKS", "4"},
          {"SLURM_STEP_NODELIST", "node[003-005,9],x"}};
}

TEST(Rendezvous, UnderSrunRankZeroListensOnTheFirstNodeOfTheStep) {
  hips::Environment environment = task_of_srun();
  const auto r = rendezvous_from({}, environment);
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(r->rank, 1);
  EXPECT_EQ(r->size, 4);
  EXPECT_EQ(r->host, "node003");
  EXPECT_GE(r->port, 20000);
  EXPECT_EQ(r->token, "Slurm's step 77.3");
  // Another step of the job has another port.
  environment[1].second = "4";
  EXPECT_NE(rendezvous_from({}, environment)->port, r->port);
  // srun --mpi=pmi2 sets variables of mpiexec.hydra, too.
  environment.emplace_back("PMI_RANK", "1");
  environment.emplace_back("PMI_SIZE", "4");
  EXPECT_EQ(rendezvous_from({}, environment)->host, "node003");
  // A port that Slurm has reserved for the step.
  environment.emplace_back("SLURM_STEP_RESV_PORTS", "12000-12003");
  EXPECT_EQ(rendezvous_from({}, environment)->port, 12000);
  Config config;
  config.root = "other:4711";
  config.job_token = "secret";
  EXPECT_EQ(rendezvous_from(config, environment)->host, "other");
  config.root.clear();
  EXPECT_EQ(rendezvous_from(config, environment)->token, "secret");
  // torchrun and mpirun in a Slurm job.
  environment.insert(environment.end(),
                     {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "7"}});
  EXPECT_EQ(rendezvous_from({}, environment)->host, "a");
}

TEST(Rendezvous, ABatchScriptIsNoTaskOfSrun) {
  for (const char* step : {"", "4294967291", "4294967294", "x"}) {
    hips::Environment environment = task_of_srun();
    environment[1].second = step;
    EXPECT_FALSE(rendezvous_from({}, environment)) << step;
  }
  hips::Environment wrong = task_of_srun();
  wrong[2].second = "4";
  EXPECT_THAT(rendezvous_from({}, wrong).error().message, HasSubstr("SLURM_PROCID=4 is out of range [0, 3]"));
}

TEST(Rendezvous, TheFirstHostOfASlurmList) {
  EXPECT_EQ(hips::comm::first_host("a,b[1-2]"), "a");
  EXPECT_EQ(hips::comm::first_host("b[12,14]"), "b12");
  EXPECT_EQ(hips::comm::first_host("alone"), "alone");
}

TEST(Rendezvous, NamesTheMissingOrInvalidVariable) {
  const auto message = [](const Config& config, const hips::Environment& environment = {}) {
    const auto r = rendezvous_from(config, environment);
    EXPECT_FALSE(r);
    return r ? std::string() : r.error().message;
  };
  EXPECT_THAT(message({}), AllOf(HasSubstr("HIPS_RANK"), HasSubstr("mpirun"), HasSubstr("torchrun")));
  Config config;
  config.size = 4;
  EXPECT_THAT(message(config), HasSubstr("HIPS_SIZE is set but HIPS_RANK is not"));
  config.rank = 4;
  EXPECT_THAT(message(config), HasSubstr("HIPS_RANK=4 is out of range [0, 3]"));
  config.rank = 3;
  EXPECT_THAT(message(config), HasSubstr("HIPS_ROOT is not"));
  for (const char* root : {"node1", ":1", "node1:0", "node1:65536", "node1:port"}) {
    config.root = root;
    EXPECT_THAT(message(config), HasSubstr("HIPS_ROOT")) << root;
  }
  EXPECT_THAT(message({}, {{"RANK", "x"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK=\"x\""));
  EXPECT_THAT(message({}, {{"RANK", "0"}, {"WORLD_SIZE", "2"}}), HasSubstr("MASTER_ADDR"));
}

TEST(Rendezvous, ASingleRankNeedsNoRoot) {
  Config config;
  config.rank = 0;
  config.size = 1;
  const auto r = rendezvous_from(config, {});
  ASSERT_TRUE(r);
  EXPECT_TRUE(make_tcp_bootstrap(*r));
}

}  // namespace
}  // namespace bootstrap_test

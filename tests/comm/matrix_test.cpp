// The matrix: collective x type x operation x in place x ranks x count x form x backend. A normal run covers every
// pair of values, a run with sanitizers (HIPS_TEST_SAMPLE) some of these rows, HIPS_TEST_FULL all rows. With both
// variables it covers all rows of small vectors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <hips/hips.hpp>

#include "tests/choices.hpp"
#include "tests/comm/collective_task.hpp"
#include "tests/comm/whole_ranks.hpp"
#include "tests/hang_limit.hpp"
#include "tests/pairwise.hpp"

namespace matrix_test {
namespace {

using hips::ReduceOp;
using hips::UserOp;
using hips::UserOrder;
using hips::test::FunctionValues;
using hips::test::kOpen;
using hips::test::MatrixRow;
using hips::test::Numbers;
using hips::test::Task;
using hips::test::TaskShape;
using hips::test::TypedTask;
using namespace std::chrono_literals;

enum Axis : std::uint8_t { kKind, kType, kOp, kPlace, kRanks, kCount, kForm, kBackend, kNumAxes };

// The axes add two user functions to the library's operations, and one type of 24 bytes to its types.
constexpr int kCommuting = hips::kNumReduceOps, kInOrder = kCommuting + 1, kNumOps = kInOrder + 1;
constexpr int kStructure = hips::kNumDataTypes, kNumTypes = kStructure + 1;
enum Place : std::uint8_t { kApart, kInPlace, kNumPlaces };
constexpr std::array<int, 7> kNumRanks = {1, 2, 3, 4, 7, 8, 9};
// Elements of the whole vector; sections are parts of it.
constexpr std::array<std::uint64_t, 8> kCounts = {0, 1, 2, 3, 7, 13, 31, (1U << 20U) + 1};
constexpr int kLargeCount = kCounts.size() - 1;
std::uint64_t count_of(const MatrixRow& row) {
  if (row[kCount] == kLargeCount && hips::test::runs_a_sample()) return (1U << 16U) + 1;
  return kCounts[static_cast<std::size_t>(row[kCount])];
}
constexpr int kNumForms = 3;
/// Shared memory, a plan over shared memory, a plan over TCP, hierarchical calls on emulated nodes.
enum Backend : std::uint8_t { kMemory, kShmPlan, kTcp, kHierarchical, kNumBackends };
/// By number of ranks: a topology with several ranks per node.
const std::map<int, const char*> kNodesOf = {{4, "switch:2/2"}, {8, "bcube:2,1/2"}, {9, "switch:3/3"}};

bool is_allowed(const MatrixRow& row) {
  if (row[kCount] == kLargeCount && hips::test::runs_everything() && hips::test::runs_a_sample())
    return false;
  const int op = row[kOp], type = row[kType];
  const bool reduces = row[kKind] == kOpen || TaskShape::reduces(static_cast<Task::Kind>(row[kKind]));
  // Only reductions have an operation.
  if (op != kOpen && op != 0 && !reduces) return false;
  if (row[kKind] == static_cast<int>(Task::Kind::kBarrier) &&
      (row[kType] > 0 || row[kCount] > 0 || row[kPlace] > 0))
    return false;
  if (op != kOpen && type != kOpen && row[kKind] != kOpen && reduces && op < kCommuting) {
    if (type == kStructure) return false;
    if (!hips::applies_to(static_cast<ReduceOp>(op), static_cast<hips::DataType>(type))) return false;
  }
  if (row[kBackend] == kHierarchical && row[kRanks] != kOpen &&
      !kNodesOf.contains(kNumRanks[static_cast<std::size_t>(row[kRanks])]))
    return false;
  // Every rank would hold the large vectors of all ranks, on one machine.
  return !(op == kInOrder && row[kCount] == kLargeCount && row[kBackend] > kMemory && row[kRanks] > 3);
}

// User functions for any type; they work on its bytes.
template <typename T>
using BytesOf = std::array<std::uint8_t, sizeof(T)>;

/// Bytewise exclusive or.
template <typename T>
struct Mixture {
  using Element = T;
  static constexpr const char* kName = "mixture";
  static constexpr UserOrder kOrder = UserOrder::kCommutes;
  static T any(std::uint64_t mix) {
    BytesOf<T> bytes;
    for (std::uint8_t& byte : bytes)
      byte = static_cast<std::uint8_t>((mix = mix * 6364136223846793005U + 1) >> 56U);
    return std::bit_cast<T>(bytes);
  }
  static T combine(const T& a, const T& b) {
    auto mixed = std::bit_cast<BytesOf<T>>(a);
    for (std::size_t i = 0; i < sizeof(T); ++i) mixed[i] ^= std::bit_cast<BytesOf<T>>(b)[i];
    return std::bit_cast<T>(mixed);
  }
};

/// The composition (right one first) of two maps of {0, 1, 2} to itself. A map is a number below 27 whose base-3
/// digits are its values.
constexpr auto kComposed = [] {
  std::array<std::array<std::uint8_t, 27>, 27> composed{};
  constexpr std::array<int, 3> kPower = {1, 3, 9};
  for (int f = 0; f < 27; ++f)
    for (int g = 0; g < 27; ++g)
      for (const int power : kPower)
        composed[static_cast<std::size_t>(f)][static_cast<std::size_t>(g)] +=
            static_cast<std::uint8_t>(f / kPower[static_cast<std::size_t>(g / power % 3)] % 3 * power);
  return composed;
}();

/// Composition of such maps, one per byte: does not commute.
template <typename T>
struct Composition {
  using Element = T;
  static constexpr const char* kName = "composition";
  static constexpr UserOrder kOrder = UserOrder::kOrdered;
  static T any(std::uint64_t mix) {
    auto bytes = std::bit_cast<BytesOf<T>>(Mixture<T>::any(mix));
    for (std::uint8_t& byte : bytes) byte %= 27;
    return std::bit_cast<T>(bytes);
  }
  static T combine(const T& a, const T& b) {
    const auto left = std::bit_cast<BytesOf<T>>(a), right = std::bit_cast<BytesOf<T>>(b);
    BytesOf<T> both;
    for (std::size_t i = 0; i < sizeof(T); ++i) both[i] = kComposed[left[i]][right[i]];
    return std::bit_cast<T>(both);
  }
};

using Structure = std::array<std::uint64_t, 3>;

/// Half of the buffers are memory of hips_mem_alloc(), different ones on each rank.
bool in_is_registered(const TaskShape& shape) {
  return (shape.salt / 2 + static_cast<std::size_t>(shape.rank)) % 2 == 0;
}
bool out_is_registered(const TaskShape& shape) {
  return (shape.salt / 4 + static_cast<std::size_t>(shape.rank) / 2) % 2 == 0;
}

template <template <typename> typename Function, typename T>
std::unique_ptr<Task> task_of_function(const TaskShape& shape, Task::Form form, bool in_place) {
  static const UserOp<T> op = FunctionValues<Function<T>>::make_op();
  return std::make_unique<TypedTask<FunctionValues<Function<T>>>>(
      FunctionValues<Function<T>>{op.handle()}, shape, form, in_place, in_is_registered(shape),
      out_is_registered(shape));
}

template <typename T>
std::unique_ptr<Task> task_of_type(int op, const TaskShape& shape, Task::Form form, bool in_place) {
  if (op == kInOrder) return task_of_function<Composition, T>(shape, form, in_place);
  if constexpr (hips::Element<T>) {
    if (op < kCommuting)
      return std::make_unique<TypedTask<Numbers<T>>>(Numbers<T>{static_cast<ReduceOp>(op)}, shape, form,
                                                     in_place, in_is_registered(shape),
                                                     out_is_registered(shape));
  }
  return task_of_function<Mixture, T>(shape, form, in_place);
}

std::unique_ptr<Task> task_of(const MatrixRow& row, hips::Rank rank, std::size_t salt) {
  TaskShape shape{.kind = static_cast<Task::Kind>(row[kKind]),
                  .rank = rank,
                  .size = kNumRanks[static_cast<std::size_t>(row[kRanks])],
                  .salt = salt};
  const auto size = static_cast<std::uint64_t>(shape.size), count = count_of(row);
  shape.root = static_cast<hips::Rank>(salt % size);
  switch (shape.kind) {
    case Task::Kind::kReduceScatter:
    case Task::Kind::kAllgatherv:
      // Sections of different sizes, some of them empty.
      for (std::uint64_t r = 0; r < size; ++r)
        shape.counts.push_back(r == salt % size ? count - count / 2 / size * (size - 1) : count / 2 / size);
      break;
    case Task::Kind::kReduceScatterBlock:
    case Task::Kind::kAllgather:
    case Task::Kind::kGather:
    case Task::Kind::kScatter:
    case Task::Kind::kAlltoall:
      shape.counts.assign(size, count / size > 0 ? count / size : count);
      break;
    case Task::Kind::kBarrier:
      break;
    default:
      shape.counts.push_back(count);
  }
  // In the order of hips::DataType.
  static constexpr std::array kMakers = {
      task_of_type<std::int32_t>,  task_of_type<std::int64_t>,  task_of_type<float>,
      task_of_type<double>,        task_of_type<std::int8_t>,   task_of_type<std::int16_t>,
      task_of_type<std::uint8_t>,  task_of_type<std::uint16_t>, task_of_type<std::uint32_t>,
      task_of_type<std::uint64_t>, task_of_type<hips::Float16>, task_of_type<hips::Bfloat16>,
      task_of_type<Structure>};
  static_assert(kMakers.size() == kNumTypes);
  return kMakers[static_cast<std::size_t>(row[kType])](row[kOp], shape, static_cast<Task::Form>(row[kForm]),
                                                       row[kPlace] == kInPlace);
}

/// The rows of this run, by backend and number of ranks: each of these is a group of processes.
const std::map<std::pair<int, int>, std::vector<MatrixRow>>& rows() {
  static const auto all = [] {
    const std::vector<int> sizes = {Task::kNumKinds,  kNumTypes,      kNumOps,   kNumPlaces,
                                    kNumRanks.size(), kCounts.size(), kNumForms, kNumBackends};
    std::mt19937_64 random(hips::test::seed());
    auto chosen = hips::test::runs_everything() ? hips::test::all_rows(sizes, is_allowed)
                                                : hips::test::Pairwise(sizes, is_allowed, random).rows();
    if (hips::test::runs_a_sample() && !hips::test::runs_everything()) chosen.resize(chosen.size() / 4);
    std::map<std::pair<int, int>, std::vector<MatrixRow>> groups;
    for (MatrixRow& row : chosen) groups[{row[kBackend], row[kRanks]}].push_back(std::move(row));
    return groups;
  }();
  return all;
}

class Matrix : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(Matrix, IsExact) {
  const auto group = rows().find(GetParam());
  if (group == rows().end()) GTEST_SKIP() << "no row has been drawn";
  const std::uint64_t seed = hips::test::seed();
  const int num_ranks = kNumRanks[static_cast<std::size_t>(GetParam().second)];
  const auto body = [&](int rank) -> std::string {
    auto comm = hips::Communicator::from_environment();
    std::mt19937_64 program(seed);
    for (const MatrixRow& row : group->second) {
      auto task = task_of(row, rank, program() % 1000);
      const int starts = row[kForm] == static_cast<int>(Task::Form::kPersistent) ? 2 : 1;
      task->starts_left = starts;
      for (int start = 0; start < starts; ++start) {
        task->start(comm);
        task->wait();
        task->check();
      }
    }
    return "right";
  };
  hips::test::Environment environment;
  if (GetParam().first == kHierarchical) {
    environment["HIPS_TOPO"] = kNodesOf.at(num_ranks);
  } else if (GetParam().first != kMemory) {
    environment["HIPS_TRANSPORT"] = GetParam().first == kTcp ? "tcp" : "shm";
    // A multi-level topology with this number of servers; otherwise one switch.
    const std::map<int, const char*> wirings = {{4, "bcube:2,1"}, {8, "torus:4x2"}, {9, "bcube:3,1"}};
    const auto wiring = wirings.find(num_ranks);
    environment["HIPS_TOPO"] =
        wiring != wirings.end() ? wiring->second : "switch:" + std::to_string(num_ranks);
  }
  hips::test::expect_texts(
      num_ranks, body, "right", environment,
      hips::test::runs_everything() ? std::chrono::seconds(50min) : hips::test::kHangLimit);
}

std::vector<std::pair<int, int>> groups() {
  std::vector<std::pair<int, int>> all;
  for (int backend = 0; backend < kNumBackends; ++backend)
    for (int ranks = 0; ranks < static_cast<int>(kNumRanks.size()); ++ranks)
      if (backend != kHierarchical || kNodesOf.contains(kNumRanks[static_cast<std::size_t>(ranks)]))
        all.emplace_back(backend, ranks);
  return all;
}

std::string name_of(const testing::TestParamInfo<std::pair<int, int>>& group) {
  constexpr std::array<const char*, kNumBackends> kNames = {"Memory", "ShmPlan", "Tcp", "Hierarchical"};
  const auto [backend, ranks] = group.param;
  return kNames[static_cast<std::size_t>(backend)] +
         std::to_string(kNumRanks[static_cast<std::size_t>(ranks)]);
}

INSTANTIATE_TEST_SUITE_P(Of, Matrix, testing::ValuesIn(groups()), name_of);

}  // namespace
}  // namespace matrix_test

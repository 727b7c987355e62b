#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <hips/hips.hpp>

#include "tests/comm/task_values.hpp"

namespace hips::test {

/// One collective call with its buffers and expected results, drawn alike on all ranks. What MPI leaves to each
/// rank (in place or not, displacements of sections, blocking or not) each rank draws for itself.
class Task {
 public:
  enum class Kind {
    kAllreduce,
    kReduceScatterBlock,
    kReduceScatter,
    kAllgather,
    kAllgatherv,
    kBcast,
    kReduce,
    kBarrier,
    kGather,
    kScatter,
    kAlltoall
  };
  static constexpr int kNumKinds = 11;
  enum class Form { kBlocking, kNonBlocking, kPersistent };

  virtual ~Task() = default;
  /// Fills the buffers and starts the call. A blocking call is complete afterwards.
  virtual void start(Communicator& comm) = 0;
  [[nodiscard]] virtual bool test() = 0;
  virtual void wait() = 0;
  /// Throws if the result is wrong or other memory has changed.
  virtual void check() = 0;
  /// How often a persistent call is still to be started.
  int starts_left = 1;

  static std::unique_ptr<Task> draw(std::mt19937_64& program, std::mt19937_64& own, Rank rank, Rank size,
                                    std::uint64_t most_elements);
};

/// The properties of a call that all ranks share. `counts`: of all sections, of one vector, or none (barrier).
struct TaskShape {
  Task::Kind kind = Task::Kind::kAllreduce;
  Rank rank = 0, size = 1, root = 0;
  std::vector<std::uint64_t> counts{};
  std::size_t salt = 0;  ///< seed of the values

  [[nodiscard]] static bool reduces(Task::Kind kind) {
    return kind == Task::Kind::kAllreduce || kind == Task::Kind::kReduce ||
           kind == Task::Kind::kReduceScatter || kind == Task::Kind::kReduceScatterBlock;
  }
};

/// An allocator that uses hips_mem_alloc() or std::allocator. Each rank draws which one.
template <typename T>
struct TaskMemory {
  using value_type = T;

  explicit TaskMemory(bool is_registered) : registered(is_registered) {}
  template <typename U>
  explicit TaskMemory(const TaskMemory<U>& other) : registered(other.registered) {}
  T* allocate(std::size_t count) {
    if (!registered) return std::allocator<T>().allocate(count);
    void* memory = nullptr;
    if (hips_mem_alloc(count * sizeof(T), &memory) != HIPS_OK) throw std::runtime_error(hips_last_error());
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    if (!registered) return std::allocator<T>().deallocate(memory, count);
    // Fails if an operation still uses the memory.
    if (hips_mem_free(memory) != HIPS_OK) std::fprintf(stderr, "%s\n", hips_last_error()), std::abort();
  }
  friend bool operator==(const TaskMemory&, const TaskMemory&) = default;

  bool registered;
};

/// Values: Numbers or FunctionValues.
template <typename Values>
class TypedTask final : public Task {
  using T = typename Values::Element;

 public:
  TypedTask(Values values, TaskShape shape, Form form, bool in_place, bool in_registered, bool out_registered)
      : values_(values),
        kind_(shape.kind),
        form_(form),
        rank_(shape.rank),
        size_(shape.size),
        root_(shape.root),
        counts_(std::move(shape.counts)),
        salt_(shape.salt),
        in_place_(in_place),
        given_(static_cast<std::size_t>(shape.size)),
        in_(TaskMemory<T>(in_registered)),
        out_(TaskMemory<T>(out_registered)) {
    for (const std::uint64_t count : counts_) {
      first_.push_back(total_);
      total_ += count;
    }
  }

  /// Places the sections of an allgatherv in reverse order, with gaps.
  void place_apart(std::mt19937_64& own) {
    places_.resize(counts_.size());
    std::uint64_t at = own() % 5;
    for (std::size_t r = counts_.size(); r-- > 0; at += counts_[r] + own() % 3) places_[r] = at;
    extent_ = at;
  }

  void start(Communicator& comm) override {
    --starts_left;
    fill();
    hips_comm_t c = comm.handle();
    const hips_type_t type = values_.type();
    const hips_op_t op = values_.handle();
    const void* in = uses_input() ? static_cast<const void*>(in_.data() + kGuard) : HIPS_IN_PLACE;
    T* out = out_.data() + kGuard;
    const std::uint64_t count = counts_.empty() ? 0 : counts_[0];
    const std::uint64_t* places = places_.empty() ? nullptr : places_.data();
    if (form_ == Form::kPersistent && request_ != nullptr) return expect_ok(hips_start(request_));
    const auto call = [&](auto blocking, auto starting, auto preparing, auto... args) {
      switch (form_) {
        case Form::kBlocking:
          return expect_ok(blocking(args..., c));
        case Form::kNonBlocking:
          return expect_ok(starting(args..., c, &request_));
        case Form::kPersistent:
          expect_ok(preparing(args..., c, &request_));
          return expect_ok(hips_start(request_));
      }
    };
    switch (kind_) {
      case Kind::kAllreduce:
        return call(hips_allreduce, hips_iallreduce, hips_allreduce_init, in, out, count, type, op);
      case Kind::kReduceScatterBlock:
        return call(hips_reduce_scatter_block, hips_ireduce_scatter_block, hips_reduce_scatter_block_init, in,
                    out, count, type, op);
      case Kind::kReduceScatter:
        return call(hips_reduce_scatter, hips_ireduce_scatter, hips_reduce_scatter_init, in, out,
                    counts_.data(), type, op);
      case Kind::kAllgather:
        return call(hips_allgather, hips_iallgather, hips_allgather_init, in, out, count, type);
      case Kind::kAllgatherv:
        return call(hips_allgatherv, hips_iallgatherv, hips_allgatherv_init, in, out, counts_.data(), places,
                    type);
      case Kind::kBcast:
        return call(hips_bcast, hips_ibcast, hips_bcast_init, out, count, type, root_);
      case Kind::kReduce:
        return call(hips_reduce, hips_ireduce, hips_reduce_init, in, out, count, type, op, root_);
      case Kind::kBarrier:
        return call(hips_barrier, hips_ibarrier, hips_barrier_init);
      case Kind::kGather:
        return call(hips_gather, hips_igather, hips_gather_init, in, out, count, type, root_);
      case Kind::kScatter:
        // In place the root passes its section of the input as output.
        return call(
            hips_scatter, hips_iscatter, hips_scatter_init, static_cast<const void*>(in_.data() + kGuard),
            is_scatter_in_place() ? in_.data() + kGuard + first_[own_section()] : out, count, type, root_);
      case Kind::kAlltoall:
        return call(hips_alltoall, hips_ialltoall, hips_alltoall_init, in, out, count, type);
    }
  }

  bool test() override {
    if (form_ == Form::kBlocking) return true;
    int done = 0;
    expect_ok(hips_test(&request_, &done));
    return done != 0;
  }
  void wait() override {
    if (form_ != Form::kBlocking) expect_ok(hips_wait(&request_));
  }

  void check() override {
    std::vector<T> right = before_;
    place_result(right);
    const bool same = std::memcmp(right.data(), out_.data(), right.size() * sizeof(T)) == 0;
    for (std::size_t i = 0; !same && i < right.size(); ++i) {
      // After a reduce_scatter in place only the result is defined.
      if (scatters() && !uses_input() && i >= kGuard + counts_[own_section()] && i + kGuard < right.size())
        continue;
      if (std::memcmp(&right[i], &out_[i], sizeof(T)) != 0)
        throw std::runtime_error(
            text() + ": element " +
            std::to_string(static_cast<std::int64_t>(i) - static_cast<std::int64_t>(kGuard)) + " is " +
            Values::number(out_[i]) + " instead of " + Values::number(right[i]));
    }
    if (std::memcmp(in_.data(), in_before_.data(), in_.size() * sizeof(T)) != 0)
      throw std::runtime_error(text() + ": the input has changed");
    if (starts_left == 0 && form_ == Form::kPersistent) expect_ok(hips_request_free(&request_));
  }

  ~TypedTask() override {
    if (form_ == Form::kPersistent) (void)hips_request_free(&request_);  // of a call that has failed
  }
  TypedTask(const TypedTask&) = delete;
  TypedTask& operator=(const TypedTask&) = delete;

 private:
  static constexpr std::size_t kGuard = 3;  ///< elements on both sides that must not change

  static void expect_ok(hips_status_t status) {
    if (status != HIPS_OK) throw std::runtime_error(hips_last_error());
  }
  [[nodiscard]] std::string text() const {
    static constexpr const char* kNames[] = {"allreduce",      "reduce_scatter_block",
                                             "reduce_scatter", "allgather",
                                             "allgatherv",     "bcast",
                                             "reduce",         "barrier",
                                             "gather",         "scatter",
                                             "alltoall"};
    static constexpr const char* kForms[] = {"blocking", "non-blocking", "persistent"};
    std::string result = std::string("wrong: ") + kNames[static_cast<int>(kind_)] + ", " +
                         kForms[static_cast<int>(form_)] + ", " + values_.text() + ", root " +
                         std::to_string(root_) + (in_place_ ? ", in place" : "") +
                         (places_.empty() ? "" : ", placed") + ", counts";
    for (const std::uint64_t count : counts_) result += " " + std::to_string(count);
    return result;
  }

  [[nodiscard]] bool scatters() const {
    return kind_ == Kind::kReduceScatterBlock || kind_ == Kind::kReduceScatter;
  }
  [[nodiscard]] bool gathers() const {
    return kind_ == Kind::kAllgather || kind_ == Kind::kAllgatherv || kind_ == Kind::kGather;
  }
  [[nodiscard]] bool is_scatter_in_place() const { return in_place_ && rank_ == root_; }
  [[nodiscard]] std::size_t own_section() const { return static_cast<std::size_t>(rank_); }
  [[nodiscard]] bool uses_input() const {
    if (kind_ == Kind::kBcast || kind_ == Kind::kBarrier) return false;
    if (kind_ == Kind::kScatter || kind_ == Kind::kAlltoall) return true;
    return !in_place_ || ((kind_ == Kind::kReduce || kind_ == Kind::kGather) && rank_ != root_);
  }
  [[nodiscard]] std::uint64_t place(std::size_t r) const { return places_.empty() ? first_[r] : places_[r]; }
  // Values repeat after a prime number of elements, which divides no segment, slice or share. So a misplaced
  // element is noticed, and a long vector is generated as fast as it is read.
  static constexpr std::uint64_t kPeriod = 4099;
  static T in_turn(std::vector<T>& table, std::uint64_t i, const auto& make) {
    for (i %= kPeriod; table.size() <= i;) table.push_back(make(table.size()));
    return table[i];
  }
  [[nodiscard]] T given(Rank r, std::uint64_t i) {
    return in_turn(given_[static_cast<std::size_t>(r)], i,
                   [&](std::size_t turn) { return values_.given(r, turn + salt_); });
  }
  [[nodiscard]] T reduced(std::uint64_t i) {
    return in_turn(reduced_, i, [&](std::size_t turn) { return values_.reduced(size_, turn + salt_); });
  }

  void fill() {
    const bool sections = scatters() || gathers() || kind_ == Kind::kScatter || kind_ == Kind::kAlltoall;
    const std::uint64_t vector = sections ? total_ : counts_.empty() ? 0 : counts_[0];
    std::uint64_t out_elements = vector;
    if (scatters() && uses_input()) out_elements = counts_[own_section()];
    if (!places_.empty()) out_elements = extent_;
    if ((kind_ == Kind::kReduce || kind_ == Kind::kGather) && rank_ != root_) out_elements = 0;
    std::uint64_t in_elements = !uses_input() ? 0 : gathers() ? counts_[own_section()] : vector;
    if (kind_ == Kind::kScatter) {
      out_elements = is_scatter_in_place() ? 0 : counts_[own_section()];
      if (rank_ != root_) in_elements = 0;
    }
    const T guard = Values::guard();
    // A persistent call keeps its buffers.
    in_.resize(in_elements + 2 * kGuard);
    out_.resize(out_elements + 2 * kGuard);
    std::fill(in_.begin(), in_.end(), guard);
    std::fill(out_.begin(), out_.end(), guard);
    T* const target = uses_input() ? in_.data() + kGuard : out_.data() + kGuard;
    if (gathers()) {
      const std::uint64_t at = uses_input() ? 0 : place(own_section());
      for (std::uint64_t i = 0; i < counts_[own_section()]; ++i)
        target[at + i] = given(rank_, first_[own_section()] + i);
    } else if (kind_ == Kind::kBcast) {
      for (std::uint64_t i = 0; rank_ == root_ && i < vector; ++i) target[i] = given(root_, i);
    } else if (kind_ == Kind::kScatter) {
      for (std::uint64_t i = 0; i < in_elements; ++i) target[i] = given(root_, i);
    } else if (kind_ != Kind::kBarrier) {
      for (std::uint64_t i = 0; i < vector; ++i) target[i] = given(rank_, i);
    }
    in_before_.assign(in_.begin(), in_.end());
    before_.assign(out_.begin(), out_.end());
  }

  void place_result(std::vector<T>& right) {
    T* const out = right.data() + kGuard;
    const std::uint64_t vector = counts_.empty() ? 0 : counts_[0];
    if (kind_ == Kind::kAllreduce || (kind_ == Kind::kReduce && rank_ == root_)) {
      for (std::uint64_t i = 0; i < vector; ++i) out[i] = reduced(i);
    } else if (kind_ == Kind::kBcast) {
      for (std::uint64_t i = 0; i < vector; ++i) out[i] = given(root_, i);
    } else if (scatters()) {
      for (std::uint64_t i = 0; i < counts_[own_section()]; ++i) out[i] = reduced(first_[own_section()] + i);
    } else if (kind_ == Kind::kScatter) {
      for (std::uint64_t i = 0; !is_scatter_in_place() && i < counts_[own_section()]; ++i)
        out[i] = given(root_, first_[own_section()] + i);
    } else if (kind_ == Kind::kAlltoall) {
      for (std::size_t r = 0; r < counts_.size(); ++r)
        for (std::uint64_t i = 0; i < counts_[r]; ++i)
          out[first_[r] + i] = given(static_cast<Rank>(r), first_[own_section()] + i);
    } else if (gathers() && (kind_ != Kind::kGather || rank_ == root_)) {
      for (std::size_t r = 0; r < counts_.size(); ++r)
        for (std::uint64_t i = 0; i < counts_[r]; ++i)
          out[place(r) + i] = given(static_cast<Rank>(r), first_[r] + i);
    }
  }

  Values values_;
  Kind kind_;
  Form form_;
  Rank rank_, size_, root_;
  std::vector<std::uint64_t> counts_, first_, places_;
  std::uint64_t total_ = 0, extent_ = 0;
  std::size_t salt_;
  bool in_place_;
  std::vector<std::vector<T>> given_;  ///< by rank
  std::vector<T> reduced_;
  std::vector<T, TaskMemory<T>> in_, out_;
  std::vector<T> in_before_, before_;
  hips_request_t request_ = nullptr;
};

/// Draws the rest of a call: with `program` alike on all ranks.
inline TaskShape draw_shape(std::mt19937_64& program, Task::Kind kind, Rank rank, Rank size,
                            std::uint64_t most_elements) {
  TaskShape shape{.kind = kind, .rank = rank, .size = size};
  shape.root = static_cast<Rank>(program() % static_cast<std::uint64_t>(size));
  constexpr std::uint64_t kCounts[] = {0, 1, 2, 3, 7, 13, 101, 1031, 8209, 40009, 300007, (1U << 20U) + 1};
  const auto drawn = [&](std::uint64_t most) {
    std::uint64_t count = kCounts[program() % std::size(kCounts)];
    while (count > most) count = kCounts[program() % std::size(kCounts)];
    return count;
  };
  shape.salt = program() % 1000;
  if (kind == Task::Kind::kReduceScatter || kind == Task::Kind::kAllgatherv) {
    for (Rank r = 0; r < size; ++r)
      shape.counts.push_back(drawn(most_elements / static_cast<std::uint64_t>(size)));
  } else if (kind == Task::Kind::kReduceScatterBlock || kind == Task::Kind::kAllgather ||
             kind == Task::Kind::kGather || kind == Task::Kind::kScatter || kind == Task::Kind::kAlltoall) {
    shape.counts.assign(static_cast<std::size_t>(size),
                        drawn(most_elements / static_cast<std::uint64_t>(size)));
  } else if (kind != Task::Kind::kBarrier) {
    shape.counts.push_back(drawn(most_elements));
  }
  return shape;
}

template <typename Values>
std::unique_ptr<Task> draw_task(Values values, const TaskShape& shape, std::mt19937_64& own) {
  const auto form = static_cast<Task::Form>(own() % 3);
  auto task = std::make_unique<TypedTask<Values>>(values, shape, form, own() % 3 == 0, own() % 2 == 0,
                                                  own() % 2 == 0);
  if (form == Task::Form::kPersistent) task->starts_left = 1 + static_cast<int>(own() % 2);
  if (shape.kind == Task::Kind::kAllgatherv && own() % 2 == 0) task->place_apart(own);
  return task;
}

template <typename T>
std::unique_ptr<Task> typed_task(std::mt19937_64& program, std::mt19937_64& own, Rank rank, Rank size,
                                 std::uint64_t most_elements) {
  const auto kind = static_cast<Task::Kind>(program() % Task::kNumKinds);
  auto op = static_cast<ReduceOp>(program() % kNumReduceOps);
  if (!TaskShape::reduces(kind) || !applies_to(op, data_type_of<T>())) op = ReduceOp::kSum;
  return draw_task(Numbers<T>{op}, draw_shape(program, kind, rank, size, most_elements), own);
}

inline std::unique_ptr<Task> Task::draw(std::mt19937_64& program, std::mt19937_64& own, Rank rank, Rank size,
                                        std::uint64_t most_elements) {
  const auto drawn = [&]<typename... T>(std::mt19937_64& random) {
    using Make = decltype(&typed_task<float>);
    constexpr Make kMakers[] = {typed_task<T>...};
    return kMakers[random() % sizeof...(T)](program, own, rank, size, most_elements);
  };
  return drawn
      .template operator()<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                           std::uint32_t, std::uint64_t, Float16, Bfloat16, float, double>(program);
}

}  // namespace hips::test

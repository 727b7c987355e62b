#include "tools/hips-allreduce-perf/hips_variants.hpp"

#include <hips/hips.h>

#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

namespace hips::perf {
namespace {

class NonBlockingCalls final : public OtherAllreduce {
 public:
  explicit NonBlockingCalls(PerfGroup& group) : group_(group) {}
  [[nodiscard]] std::string name() const override { return "hips_iallreduce() and hips_wait()"; }
  [[nodiscard]] std::string label() const override { return "nonblk"; }
  [[nodiscard]] bool has(DataType, ReduceOp) const override { return true; }
  void allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) override {
    hips_request_t request = group_.iallreduce(in, out, count, type, op);
    expect_ok(hips_wait(&request));
  }

 private:
  PerfGroup& group_;
};

class PersistentCalls final : public OtherAllreduce {
 public:
  explicit PersistentCalls(PerfGroup& group) : group_(group) {}
  ~PersistentCalls() override { (void)hips_request_free(&request_); }
  [[nodiscard]] std::string name() const override { return "hips_start() and hips_wait()"; }
  [[nodiscard]] std::string label() const override { return "persist"; }
  [[nodiscard]] bool has(DataType, ReduceOp) const override { return true; }
  void allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) override {
    const Arguments arguments{in, out, count, type, op};
    if (request_ == HIPS_REQUEST_NULL || arguments != arguments_) {
      expect_ok(hips_request_free(&request_));
      request_ = group_.allreduce_init(in, out, count, type, op);
      arguments_ = arguments;
    }
    expect_ok(hips_start(request_));
    expect_ok(hips_wait(&request_));
  }

 private:
  using Arguments = std::tuple<const void*, void*, std::uint64_t, DataType, ReduceOp>;

  PerfGroup& group_;
  hips_request_t request_ = HIPS_REQUEST_NULL;
  Arguments arguments_;  ///< those of `request_`
};

class OrdinaryMemory final : public OtherAllreduce {
 public:
  explicit OrdinaryMemory(PerfGroup& group) : group_(group) {}
  [[nodiscard]] std::string name() const override { return "hips_allreduce() in memory of malloc()"; }
  [[nodiscard]] std::string label() const override { return "malloc"; }
  [[nodiscard]] bool has(DataType, ReduceOp) const override { return true; }
  void allreduce(const void* in, void*, std::uint64_t count, DataType type, ReduceOp op) override {
    // The values of the compared call are copied, because the time of an operation may depend on them.
    if (const Shape shape(count, type, op); shape != shape_) {
      const auto* const bytes = static_cast<const std::byte*>(in);
      in_.assign(bytes, bytes + count * size_of(type));
      out_.resize(in_.size());
      shape_ = shape;
    }
    group_.allreduce(in_.data(), out_.data(), count, type, op);
  }

 private:
  using Shape = std::tuple<std::uint64_t, DataType, ReduceOp>;

  PerfGroup& group_;
  std::vector<std::byte> in_, out_;
  std::optional<Shape> shape_;  ///< of the call whose values they hold
};

}  // namespace

std::unique_ptr<OtherAllreduce> make_nonblocking(PerfGroup& group) {
  return std::make_unique<NonBlockingCalls>(group);
}
std::unique_ptr<OtherAllreduce> make_persistent(PerfGroup& group) {
  return std::make_unique<PersistentCalls>(group);
}
std::unique_ptr<OtherAllreduce> make_ordinary(PerfGroup& group) {
  return std::make_unique<OrdinaryMemory>(group);
}

}  // namespace hips::perf

#include "tools/hips-allreduce-perf/own_contenders.hpp"

#include <hips/hips.h>

#include <cstddef>
#include <optional>
#include <tuple>
#include <vector>

namespace hips::perf {
namespace {

class NonBlocking final : public Contender {
 public:
  explicit NonBlocking(Group& group) : group_(group) {}
  [[nodiscard]] std::string name() const override { return "hips_iallreduce() and hips_wait()"; }
  [[nodiscard]] std::string label() const override { return "nonblk"; }
  [[nodiscard]] bool has(DataType, ReduceOp) const override { return true; }
  void allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) override {
    hips_request_t request = group_.iallreduce(in, out, count, type, op);
    expect_ok(hips_wait(&request));
  }

 private:
  Group& group_;
};

class Persistent final : public Contender {
 public:
  explicit Persistent(Group& group) : group_(group) {}
  ~Persistent() override { (void)hips_request_free(&request_); }
  [[nodiscard]] std::string name() const override { return "hips_start() and hips_wait()"; }
  [[nodiscard]] std::string label() const override { return "persist"; }
  [[nodiscard]] bool has(DataType, ReduceOp) const override { return true; }
  void allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) override {
    const Made made{in, out, count, type, op};
    if (request_ == HIPS_REQUEST_NULL || made != made_) {
      expect_ok(hips_request_free(&request_));
      request_ = group_.allreduce_init(in, out, count, type, op);
      made_ = made;
    }
    expect_ok(hips_start(request_));
    expect_ok(hips_wait(&request_));
  }

 private:
  using Made = std::tuple<const void*, void*, std::uint64_t, DataType, ReduceOp>;

  Group& group_;
  hips_request_t request_ = HIPS_REQUEST_NULL;
  Made made_;  ///< for these arguments
};

class Ordinary final : public Contender {
 public:
  explicit Ordinary(Group& group) : group_(group) {}
  [[nodiscard]] std::string name() const override { return "hips_allreduce() in memory of malloc()"; }
  [[nodiscard]] std::string label() const override { return "malloc"; }
  [[nodiscard]] bool has(DataType, ReduceOp) const override { return true; }
  void allreduce(const void* in, void*, std::uint64_t count, DataType type, ReduceOp op) override {
    // Those that it is compared with have the values: so that no operation meets other numbers here.
    if (const Of of(count, type, op); of != of_) {
      const auto* const bytes = static_cast<const std::byte*>(in);
      in_.assign(bytes, bytes + count * size_of(type));
      out_.resize(in_.size());
      of_ = of;
    }
    group_.allreduce(in_.data(), out_.data(), count, type, op);
  }

 private:
  using Of = std::tuple<std::uint64_t, DataType, ReduceOp>;

  Group& group_;
  std::vector<std::byte> in_, out_;
  std::optional<Of> of_;  ///< what they hold the values of
};

}  // namespace

std::unique_ptr<Contender> make_nonblocking(Group& group) {
  return std::make_unique<NonBlocking>(group);
}
std::unique_ptr<Contender> make_persistent(Group& group) {
  return std::make_unique<Persistent>(group);
}
std::unique_ptr<Contender> make_ordinary(Group& group) {
  return std::make_unique<Ordinary>(group);
}

}  // namespace hips::perf

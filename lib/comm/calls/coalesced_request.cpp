#include "lib/comm/calls/coalesced_request.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/comm/calls/coalesced.hpp"

namespace hips::comm {
namespace {

class CoalescedRequest final : public Request {
 public:
  ~CoalescedRequest() override { (void)wait(); }

  /// Prepares one more call, of a large vector or of a bucket of small ones.
  Status add(Communicator& communicator, std::span<const CoalescedBuffer> buffers, ReduceOp op) {
    Part& part = parts_.emplace_back();
    part.buffers.assign(buffers.begin(), buffers.end());
    const CoalescedBuffer& front = buffers.front();
    CallArgs args = Communicator::allreduce_args(front.in, front.out, front.count, front.type, op);
    args.priority = front.priority;
    if (part.packed()) {
      std::size_t bytes = 0;
      args.count = 0;
      for (const CoalescedBuffer& buffer : buffers) {
        bytes += buckets::bytes_of(buffer);
        args.count += buffer.count;
      }
      part.memory.resize(std::max<std::size_t>(bytes, 1));
      args.in = args.out = part.memory.data();
    }
    auto made = communicator.prepare_request(args);
    if (!made) return made.error();
    part.request = std::move(*made);
    return Status::success();
  }

  Status renew(const CallArgs& /*args*/) override {
    return Status::error(Code::kUnsupported, "a request of many vectors cannot be used again");
  }

  Status start() override {
    first_failure_ = {};
    next_ = 0;
    num_started_ = 0;
    for (Part& part : parts_) {
      if (part.packed()) (void)buckets::pack(part.buffers, part.memory.data());
      if (Status status = part.request->start(); !status.ok()) {
        // The communicator has failed, so that those that were started end soon.
        (void)wait();
        return status;
      }
      ++num_started_;
    }
    active_ = true;
    return Status::success();
  }

  [[nodiscard]] bool active() const override { return active_; }

  bool has_ended() override {
    return std::all_of(parts_.begin() + static_cast<std::ptrdiff_t>(next_), parts_.end(),
                       [](const Part& part) { return part.request->has_ended(); });
  }

  // The parts end about in their order, so that looking at the first is enough until it has ended.
  bool test() override {
    while (next_ < num_started_) {
      if (!parts_[next_].request->test()) return false;
      finish_next();
    }
    active_ = false;
    return true;
  }

  Status wait() override {
    while (next_ < num_started_) finish_next();
    active_ = false;
    return std::exchange(first_failure_, Status::success());
  }

 private:
  struct Part {
    std::vector<CoalescedBuffer> buffers;
    std::vector<std::byte> memory;  ///< of small vectors together
    std::unique_ptr<Request> request;
    [[nodiscard]] bool packed() const { return buffers.size() > 1; }
  };

  void finish_next() {
    Part& part = parts_[next_];
    Status status = part.request->wait();
    ++next_;
    if (!status.ok()) {
      if (first_failure_.ok()) first_failure_ = std::move(status);
    } else if (part.packed()) {
      buckets::unpack(part.buffers, part.memory.data());
    }
  }

  std::vector<Part> parts_;
  std::size_t num_started_ = 0, next_ = 0;  ///< those before next_ have ended
  bool active_ = false;
  Status first_failure_;
};

}  // namespace

Result<std::unique_ptr<Request>> prepare_coalesced(Communicator& communicator,
                                                   std::span<const CoalescedBuffer> list, ReduceOp op) {
  if (Status status = check_coalesced(list, op, communicator.rank(), communicator.size()); !status.ok())
    return fail(std::move(status));
  std::vector<CoalescedBuffer> sorted(list.begin(), list.end()), small;
  std::ranges::stable_sort(sorted, {}, &CoalescedBuffer::priority);
  auto request = std::make_unique<CoalescedRequest>();
  Status first;
  buckets::for_each(sorted, small, [&](std::span<const CoalescedBuffer> bucket) {
    if (first.ok()) first = request->add(communicator, bucket, op);
  });
  if (!first.ok()) return fail(std::move(first));
  return std::unique_ptr<Request>(std::move(request));
}

}  // namespace hips::comm

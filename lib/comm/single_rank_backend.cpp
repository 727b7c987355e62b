#include "lib/comm/single_rank_backend.hpp"

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "lib/reduce/reduce.hpp"

namespace hips::comm {
namespace {

void carry_out(const CallArgs& args) {
  if (reduces(args.collective)) {
    reduce::fold(args.type, args.op, args.out, {&args.in, 1}, static_cast<std::size_t>(args.count));
  } else if (args.collective == Collective::kScatter || args.collective == Collective::kAlltoall) {
    if (args.count > 0 && args.out != args.in)
      std::memcpy(args.out, args.in, args.count * size_of(args.type));
  } else if (has_sections(args.collective) && args.count > 0) {
    std::byte* const to = args.out + args.sections->displacement(0) * size_of(args.type);
    if (to != args.in) std::memcpy(to, args.in, args.count * size_of(args.type));
  }
}

class SingleRankCall final : public PendingCall {
 public:
  Status set(const CallArgs& args) override {
    args_ = args;
    return Status::success();
  }
  void start() override { carry_out(args_); }
  std::optional<Status> test() override { return Status::success(); }
  [[nodiscard]] bool done() const override { return true; }
  Status wait(const WaitOptions& /*options*/) override { return Status::success(); }
  [[nodiscard]] std::vector<Rank> waiting_for() const override { return {}; }
  [[nodiscard]] std::string waiting_text() const override { return {}; }

 private:
  CallArgs args_;
};

}  // namespace

Status SingleRankBackend::run(const CallArgs& args, Communicator& /*caller*/) {
  carry_out(args);
  return Status::success();
}

std::unique_ptr<PendingCall> SingleRankBackend::make_call() {
  return std::make_unique<SingleRankCall>();
}

}  // namespace hips::comm

#include "lib/comm/calls/team_call.hpp"

#include <cstring>

#include "lib/comm/calls/ordered_reduce.hpp"
#include "lib/reduce/reduce.hpp"

namespace hips::comm {

Status TeamCall::set(const CallArgs& args) {
  is_alltoall_ = args.collective == Collective::kAlltoall;
  if (is_alltoall_) return set_alltoall(args);
  if (is_gathered(args)) return set_gathered(args);
  reduction_.reset();
  return set_plain(args);
}

Status TeamCall::set_gathered(const CallArgs& args) {
  const std::size_t bytes = gathered_bytes(args, parts_.size);
  if (gathered_.bytes() < bytes) gathered_ = parts_.buffers.take(bytes);
  Status status = set_plain(gather_instead(args, parts_.size, gathered_.data()));
  if (!status.ok()) return status;
  reduction_ = args;
  plan_args_.user_call = {.count = args.count,
                          .type = args.type,
                          .op = args.op,
                          .collective = args.collective,
                          .detail = args.detail()};
  return status;
}

Status TeamCall::set_plain(const CallArgs& args) {
  auto use = parts_.plans.of(args, parts_.team);
  if (!use) return use.error();
  use_ = *std::move(use);
  args_ = args;
  input_in_buffer_ = false;
  plan_args_ = {.program = use_.program,
                .in = args.in,
                .out = args.out,
                .count = args.count,
                .type = args.type,
                .op = args.op,
                .priority = args.priority,
                .collective = args.collective,
                .detail = args.detail(),
                .boundaries = use_.arrangement ? use_.arrangement->boundaries : nullptr};
  if (args.collective != Collective::kAllreduce) set_vector();
  return Status::success();
}

void TeamCall::set_vector() {
  switch (args_.collective) {
    case Collective::kAllreduce:
      return;
    case Collective::kBcast:
      if (use_.by_allreduce) return set_bitwise_or(args_.count);
      plan_args_.in = plan_args_.out;
      return;
    case Collective::kReduce:
      if (parts_.rank == args_.root) return;
      use_buffer(args_.count * size_of(args_.type));
      plan_args_.out = buffer_.data();
      return;
    case Collective::kReduceScatter:
      return set_scatter();
    case Collective::kAllgather:
      return set_gather();
    case Collective::kGather:
      return set_gather();
    case Collective::kScatter:
      return set_rooted_scatter();
    case Collective::kAlltoall:
      return;  // of its scatters
    case Collective::kBarrier:
      plan_args_.in = plan_args_.out = &token_;
      plan_args_.count = 1;
      plan_args_.type = DataType::kUint8;
      return;
  }
}

void TeamCall::use_buffer(std::uint64_t bytes) {
  if (buffer_.bytes() < bytes) buffer_ = parts_.buffers.take(bytes);
}

void TeamCall::set_scatter() {
  use_buffer(args_.count * size_of(args_.type));
  plan_args_.out = buffer_.data();
  if (!use_.arrangement || use_.arrangement->in_order) return;
  plan_args_.in = buffer_.data();
  input_in_buffer_ = true;
}

void TeamCall::set_rooted_scatter() {
  if (use_.by_allreduce) return set_bitwise_or(args_.count);
  const bool direct = parts_.rank == args_.root && use_.arrangement->in_order;
  if (direct) {
    plan_args_.out = const_cast<std::byte*>(args_.in);  // the root has all blocks, so nothing is written
  } else {
    use_buffer(args_.count * size_of(args_.type));
    plan_args_.out = buffer_.data();
    input_in_buffer_ = parts_.rank == args_.root;
  }
  plan_args_.in = plan_args_.out;
}

void TeamCall::set_gather() {
  const bool has_result = args_.collective == Collective::kAllgather || parts_.rank == args_.root;
  const bool direct =
      has_result && use_.arrangement && use_.arrangement->in_order && args_.sections->packed();
  if (!direct) {
    use_buffer(args_.count * size_of(args_.type));
    plan_args_.out = buffer_.data();
    input_in_buffer_ = true;
  }
  plan_args_.in = plan_args_.out;
  if (use_.by_allreduce) set_bitwise_or(args_.count);
}

void TeamCall::set_bitwise_or(std::uint64_t elements) {
  const std::uint64_t bytes = elements * size_of(args_.type);
  use_buffer(bytes);
  plan_args_.in = plan_args_.out = buffer_.data();
  plan_args_.op = ReduceOp::kBor;
  plan_args_.type = DataType::kUint8;
  plan_args_.count = bytes;
}

// ---- Start ---------------------------------------------------------------------------------------------

void TeamCall::start() {
  if (is_alltoall_) return for_each_scatter([](TeamCall& scatter) { scatter.start(); });
  fill();
  undelivered_ = true;
  operation_ = parts_.team.start(plan_args_);
}

void TeamCall::start_in_progress() {
  if (is_alltoall_) return for_each_scatter([](TeamCall& scatter) { scatter.start_in_progress(); });
  fill();
  undelivered_ = true;
  operation_ = parts_.team.start_in_progress(plan_args_);
}

void TeamCall::fill() {
  if ((args_.collective == Collective::kReduceScatter || args_.collective == Collective::kScatter) &&
      input_in_buffer_)
    fill_scatter();
  if (args_.collective == Collective::kAllgather || args_.collective == Collective::kGather) fill_gather();
  const bool is_of_root = args_.collective == Collective::kBcast || args_.collective == Collective::kScatter;
  if (is_of_root && use_.by_allreduce && args_.count > 0) {
    if (parts_.rank == args_.root)
      std::memcpy(buffer_.data(), args_.collective == Collective::kScatter ? args_.in : args_.out,
                  plan_args_.count);
    else
      std::memset(buffer_.data(), 0, plan_args_.count);
  }
}

void TeamCall::fill_scatter() {
  const std::size_t element_bytes = size_of(args_.type);
  for (const Arrangement::Piece& piece : use_.arrangement->pieces) {
    const std::uint64_t from = args_.sections->first(static_cast<std::size_t>(piece.rank)) + piece.in_section;
    std::memcpy(buffer_.data() + piece.in_plan * element_bytes, args_.in + from * element_bytes,
                piece.elements * element_bytes);
  }
}

void TeamCall::fill_gather() {
  const std::size_t element_bytes = size_of(args_.type);
  const Sections& sections = *args_.sections;
  const auto self = static_cast<std::size_t>(parts_.rank);
  const std::size_t own_bytes = sections.count(self) * element_bytes;
  if (use_.by_allreduce) {
    if (args_.count > 0) std::memset(buffer_.data(), 0, args_.count * element_bytes);
    if (own_bytes > 0)
      std::memcpy(buffer_.data() + sections.first(self) * element_bytes, args_.in, own_bytes);
    return;
  }
  if (!input_in_buffer_) {
    std::byte* const to = args_.out + sections.first(self) * element_bytes;
    if (own_bytes > 0 && to != args_.in) std::memcpy(to, args_.in, own_bytes);
    return;
  }
  for (const Arrangement::Piece& piece : use_.arrangement->pieces) {
    if (piece.rank != parts_.rank) continue;
    std::memcpy(buffer_.data() + piece.in_plan * element_bytes, args_.in + piece.in_section * element_bytes,
                piece.elements * element_bytes);
  }
}

// ---- Completion ----------------------------------------------------------------------------------------

bool TeamCall::done() const {
  if (is_alltoall_) return unfinished_scatter().done();
  return !operation_ || operation_->done();
}

std::vector<Rank> TeamCall::waiting_for() const {
  return is_alltoall_ ? unfinished_scatter().waiting_for() : operation_->waiting_for();
}

std::string TeamCall::waiting_text() const {
  return is_alltoall_ ? unfinished_scatter().waiting_text() : operation_->waiting_text();
}

std::optional<Status> TeamCall::test() {
  if (is_alltoall_) return test_alltoall();
  if (!done()) parts_.engine.try_progress();
  if (!done()) return std::nullopt;
  return deliver();
}

Status TeamCall::wait(const WaitOptions& options) {
  if (is_alltoall_) return wait_for_alltoall(options);
  if (!operation_) return Status::success();
  Status status = parts_.engine.wait(*operation_, options);
  return done() ? deliver() : status;
}

Status TeamCall::deliver() {
  if (!operation_) return Status::success();
  if (operation_->status().ok() && undelivered_) {
    if (args_.collective == Collective::kReduceScatter || args_.collective == Collective::kScatter)
      deliver_section();
    if (args_.collective == Collective::kBcast && use_.by_allreduce && args_.count > 0)
      std::memcpy(args_.out, buffer_.data(), plan_args_.count);
    const bool gathers = args_.collective == Collective::kAllgather ||
                         (args_.collective == Collective::kGather && parts_.rank == args_.root);
    if (gathers && plan_args_.out != args_.out) deliver_sections();
    if (reduction_) reduce_gathered(*reduction_, parts_.rank, parts_.size, gathered_.data());
  }
  undelivered_ = false;
  return operation_->status();
}

bool TeamCall::is_section_in_place() const {
  return args_.collective == Collective::kScatter && parts_.rank == args_.root && args_.in != nullptr &&
         args_.out ==
             args_.in + args_.sections->first(static_cast<std::size_t>(parts_.rank)) * size_of(args_.type);
}

void TeamCall::deliver_section() {
  const std::size_t element_bytes = size_of(args_.type);
  const auto self = static_cast<std::size_t>(parts_.rank);
  const std::uint64_t count = args_.sections->count(self);
  if (count == 0) return;
  const std::byte* const vector = plan_args_.out;
  if (use_.by_allreduce) {
    std::memmove(args_.out, vector + args_.sections->first(self) * element_bytes, count * element_bytes);
  } else if (!is_section_in_place()) {
    for (const Arrangement::Piece& piece : use_.arrangement->pieces) {
      if (piece.rank != parts_.rank) continue;
      std::memcpy(args_.out + piece.in_section * element_bytes, vector + piece.in_plan * element_bytes,
                  piece.elements * element_bytes);
    }
  }
  if (args_.op == ReduceOp::kAvg) reduce::divide(args_.type, args_.out, count, args_.sections->num_ranks());
}

void TeamCall::deliver_sections() {
  const std::size_t element_bytes = size_of(args_.type);
  const Sections& sections = *args_.sections;
  if (use_.arrangement) {
    for (const Arrangement::Piece& piece : use_.arrangement->pieces) {
      const std::uint64_t to = sections.displacement(static_cast<std::size_t>(piece.rank)) + piece.in_section;
      std::memcpy(args_.out + to * element_bytes, buffer_.data() + piece.in_plan * element_bytes,
                  piece.elements * element_bytes);
    }
    return;
  }
  for (std::size_t rank = 0; rank < sections.num_ranks(); ++rank) {
    if (sections.count(rank) > 0)
      std::memcpy(args_.out + sections.displacement(rank) * element_bytes,
                  buffer_.data() + sections.first(rank) * element_bytes,
                  sections.count(rank) * element_bytes);
  }
}

// ---- Alltoall ------------------------------------------------------------------------------------------

template <typename Visit>
void TeamCall::for_each_scatter(const Visit& visit) {
  for (Rank root = 0; root < parts_.size; ++root) visit(*scatters_[static_cast<std::size_t>(root)]);
}

Status TeamCall::set_alltoall(const CallArgs& args) {
  const Sections& sections = *args.sections;
  CallArgs scatter = args;
  scatter.collective = Collective::kScatter;
  for (scatter.root = 0; scatter.root < parts_.size; ++scatter.root) {
    const auto root = static_cast<std::size_t>(scatter.root);
    if (scatters_.size() == root) scatters_.push_back(std::make_unique<TeamCall>(parts_));
    scatter.in = scatter.root == parts_.rank ? args.in : nullptr;
    scatter.out = args.out == nullptr ? nullptr : args.out + sections.first(root) * size_of(args.type);
    TeamCall& call = *scatters_[root];
    if (Status status = call.set(scatter); !status.ok()) return status;
    // Ranks compare what the user has called.
    call.plan_args_.user_call = {.count = args.count,
                                 .type = args.type,
                                 .op = args.op,
                                 .collective = args.collective,
                                 .detail = args.detail()};
  }
  return Status::success();
}

const TeamCall& TeamCall::unfinished_scatter() const {
  for (const auto& scatter : scatters_)
    if (!scatter->done()) return *scatter;
  return *scatters_.back();
}

std::optional<Status> TeamCall::test_alltoall() {
  if (!done()) parts_.engine.try_progress();
  if (!done()) return std::nullopt;
  Status first;
  for_each_scatter([&](TeamCall& scatter) {
    if (Status status = scatter.deliver(); first.ok()) first = std::move(status);
  });
  return first;
}

Status TeamCall::wait_for_alltoall(const WaitOptions& options) {
  for (const auto& scatter : scatters_) {
    // At the deadline the call stays outstanding.
    if (Status status = scatter->wait(options); !scatter->done()) return status;
  }
  return *test_alltoall();
}

}  // namespace hips::comm

#include "lib/comm/calls/team_call.hpp"

#include <cstring>

#include "lib/comm/calls/ordered_reduce.hpp"
#include "lib/reduce/reduce.hpp"

namespace hips::comm {

Status TeamCall::set(const CallArgs& args) {
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

void TeamCall::set_gather() {
  const bool direct = use_.arrangement && use_.arrangement->in_order && args_.sections->packed();
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
  fill();
  undelivered_ = true;
  operation_ = parts_.team.start(plan_args_);
}

void TeamCall::start_in_progress() {
  fill();
  undelivered_ = true;
  operation_ = parts_.team.start_in_progress(plan_args_);
}

void TeamCall::fill() {
  if (args_.collective == Collective::kReduceScatter && input_in_buffer_) fill_scatter();
  if (args_.collective == Collective::kAllgather) fill_gather();
  if (args_.collective == Collective::kBcast && use_.by_allreduce && args_.count > 0) {
    if (parts_.rank == args_.root)
      std::memcpy(buffer_.data(), args_.out, plan_args_.count);
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

std::optional<Status> TeamCall::test() {
  if (!done()) parts_.engine.try_progress();
  if (!done()) return std::nullopt;
  return deliver();
}

Status TeamCall::wait(const WaitOptions& options) {
  if (!operation_) return Status::success();
  Status status = parts_.engine.wait(*operation_, options);
  return done() ? deliver() : status;
}

Status TeamCall::deliver() {
  if (!operation_) return Status::success();
  if (operation_->status().ok() && undelivered_) {
    if (args_.collective == Collective::kReduceScatter) deliver_section();
    if (args_.collective == Collective::kBcast && use_.by_allreduce && args_.count > 0)
      std::memcpy(args_.out, buffer_.data(), plan_args_.count);
    if (args_.collective == Collective::kAllgather && plan_args_.out != args_.out) deliver_sections();
    if (reduction_) reduce_gathered(*reduction_, parts_.rank, parts_.size, gathered_.data());
  }
  undelivered_ = false;
  return operation_->status();
}

void TeamCall::deliver_section() {
  const std::size_t element_bytes = size_of(args_.type);
  const auto self = static_cast<std::size_t>(parts_.rank);
  const std::uint64_t count = args_.sections->count(self);
  if (count == 0) return;
  if (use_.by_allreduce) {
    std::memcpy(args_.out, buffer_.data() + args_.sections->first(self) * element_bytes,
                count * element_bytes);
  } else {
    for (const Arrangement::Piece& piece : use_.arrangement->pieces) {
      if (piece.rank != parts_.rank) continue;
      std::memcpy(args_.out + piece.in_section * element_bytes,
                  buffer_.data() + piece.in_plan * element_bytes, piece.elements * element_bytes);
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

}  // namespace hips::comm

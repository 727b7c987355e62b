#include "python/hips_torch/process_group.hpp"

#include <mutex>
#include <set>
#include <utility>

#include "python/hips_torch/error.hpp"
#include "python/hips_torch/python_lock.hpp"
#include "python/hips_torch/store_bootstrap.hpp"
#include "python/hips_torch/tensors.hpp"
#include "python/hips_torch/work.hpp"

namespace hips::torch_backend {
namespace {

/// The place of this process in its job, which its first group tells.
struct Job {
  int rank = 0, size = 0;
};

/// The groups of this process.
class Groups {
 public:
  Job add(ProcessGroupHips& group) {
    const std::lock_guard lock(mutex_);
    if (all_.empty()) job_ = {group.getRank(), group.getSize()};
    all_.insert(&group);
    return job_;
  }
  void remove(ProcessGroupHips& group) {
    const std::lock_guard lock(mutex_);
    all_.erase(&group);
  }
  void end_all() {
    const std::lock_guard lock(mutex_);
    for (ProcessGroupHips* group : all_) group->end();
  }

 private:
  std::mutex mutex_;
  std::set<ProcessGroupHips*> all_;
  Job job_;
};

Groups& groups() {
  static Groups& instance = *new Groups;  // groups may outlive static objects
  return instance;
}

/// The vectors of all lists, one list after the other.
std::vector<at::Tensor> concatenated(const std::vector<std::vector<at::Tensor>>& lists) {
  std::vector<at::Tensor> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

/// The first list, which has a tensor for each rank.
std::vector<at::Tensor>& list_of_ranks(const char* call, std::vector<std::vector<at::Tensor>>& lists, int size) {
  check_number(call, "lists of tensors", lists.size(), 1);
  check_number(call, "tensors in the list", lists.front().size(), static_cast<std::size_t>(size), ", one for each rank");
  for (const at::Tensor& tensor : lists.front()) check_dense(call, tensor);
  return lists.front();
}

}  // namespace

ProcessGroupHips::ProcessGroupHips(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                   std::chrono::milliseconds timeout)
    : ProcessGroupBase(rank, size) {
  const Job job = groups().add(*this);
  StoreBootstrap bootstrap(store, rank, size);
  const hips_bootstrap_t callbacks = bootstrap.callbacks();
  hips_comm_config_t config = HIPS_COMM_CONFIG_INIT;
  config.name = "process group";
  config.job_rank = job.rank;
  config.job_size = job.size;
  config.timeout_ms = timeout.count();
  if (hips_comm_create(&config, &callbacks, &comm_) != HIPS_OK) {
    groups().remove(*this);
    throw HipsError::last();
  }
  completer_ = std::make_unique<Completer>();
}

ProcessGroupHips::~ProcessGroupHips() {
  groups().remove(*this);
  without_python_lock([this] { end(); });
  (void)hips_comm_destroy(comm_);
}

void ProcessGroupHips::end() {
  if (completer_->has_works()) (void)hips_comm_abort(comm_, "its process group was destroyed while calls were outstanding");
  completer_->stop();
}

void ProcessGroupHips::end_all() { groups().end_all(); }

WorkPointer ProcessGroupHips::run(c10d::OpType op, const char* title, const std::vector<at::Tensor>& inputs,
                                  std::vector<at::Tensor> outputs, const Start& start, std::function<void()> copy_out) {
  auto work = c10::make_intrusive<HipsWork>(rank_, op, title, inputs, std::move(outputs), std::move(copy_out));
  throw_if_failed(completer_->start(work, start));
  ++num_started_;
  return work;
}

WorkPointer ProcessGroupHips::broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) {
  const Dense tensor(only_tensor("broadcast", tensors));
  return run(
      c10d::OpType::BROADCAST, "hips:broadcast", tensors, tensors,
      [&](hips_request_t* request) {
        return hips_ibcast(tensor.data(), tensor.bytes(), HIPS_UINT8, static_cast<int>(options.rootRank), comm_, request);
      },
      [tensor] { tensor.copy_out(); });
}

WorkPointer ProcessGroupHips::allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) {
  const Dense tensor(only_tensor("all_reduce", tensors));
  const Reduction reduction = reduction_of("all_reduce", tensors.front(), options.reduceOp);
  return run(
      c10d::OpType::ALLREDUCE, "hips:all_reduce", tensors, tensors,
      [&](hips_request_t* request) {
        return hips_iallreduce(HIPS_IN_PLACE, tensor.data(), tensor.elements(), reduction.type, reduction.op, comm_, request);
      },
      [tensor] { tensor.copy_out(); });
}

WorkPointer ProcessGroupHips::allreduce_coalesced(std::vector<at::Tensor>& tensors,
                                                  const c10d::AllreduceCoalescedOptions& options) {
  constexpr const char* kCall = "all_reduce_coalesced";
  TORCH_CHECK_VALUE(!tensors.empty(), "hips: ", kCall, ": the list of tensors is empty; expected one tensor or more");
  std::vector<Dense> vectors;
  std::vector<hips_buffer_t> buffers;
  hips_op_t op = HIPS_OP_NULL;
  for (const at::Tensor& tensor : tensors) {
    check_dense(kCall, tensor);
    const Dense& vector = vectors.emplace_back(tensor);
    const Reduction reduction = reduction_of(kCall, tensor, options.reduceOp);
    TORCH_CHECK_TYPE(op == HIPS_OP_NULL || op == reduction.op, "hips: ", kCall,
                     ": booleans and numbers in one list; expected either");
    op = reduction.op;
    buffers.push_back({HIPS_IN_PLACE, vector.data(), vector.elements(), reduction.type, 0});
  }
  return run(
      c10d::OpType::ALLREDUCE_COALESCED, "hips:all_reduce", tensors, tensors,
      [&](hips_request_t* request) {
        return hips_iallreduce_coalesced(buffers.data(), buffers.size(), op, comm_, request);
      },
      [vectors] {
        for (const Dense& vector : vectors) vector.copy_out();
      });
}

WorkPointer ProcessGroupHips::reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) {
  const Dense tensor(only_tensor("reduce", tensors));
  const Reduction reduction = reduction_of("reduce", tensors.front(), options.reduceOp);
  const bool is_root = options.rootRank == rank_;
  return run(
      c10d::OpType::REDUCE, "hips:reduce", tensors, tensors,
      [&](hips_request_t* request) {
        return hips_ireduce(is_root ? HIPS_IN_PLACE : tensor.data(), is_root ? tensor.data() : nullptr, tensor.elements(),
                            reduction.type, reduction.op, static_cast<int>(options.rootRank), comm_, request);
      },
      [tensor, is_root] {
        if (is_root) tensor.copy_out();
      });
}

WorkPointer ProcessGroupHips::allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                                        const c10d::AllgatherOptions& /*options*/) {
  constexpr const char* kCall = "all_gather";
  const Dense input(only_tensor(kCall, inputs));
  auto& list = list_of_ranks(kCall, outputs, size_);
  for (const at::Tensor& tensor : list) check_alike(kCall, tensor, inputs.front(), false);
  check_alike(kCall, list[static_cast<std::size_t>(rank_)], inputs.front(), true);
  const Flat flat(list, false);
  return run(
      c10d::OpType::ALLGATHER, "hips:all_gather", inputs, list,
      [&](hips_request_t* request) {
        return hips_iallgatherv(input.data(), flat.data(), flat.bytes().data(), nullptr, HIPS_UINT8, comm_, request);
      },
      // The input may be copied, too.
      [flat, input] { flat.copy_out(); });
}

WorkPointer ProcessGroupHips::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& /*options*/) {
  constexpr const char* kCall = "all_gather_into_tensor";
  check_dense(kCall, output);
  check_dense(kCall, input);
  check_alike(kCall, output, input, false);
  TORCH_CHECK_VALUE(output.numel() == input.numel() * size_, "hips: ", kCall, ": output of ", output.numel(),
                    " elements; expected ", input.numel() * size_, ", those of ", size_, " ranks");
  const Dense from(input), to(output);
  return run(
      c10d::OpType::_ALLGATHER_BASE, "hips:_all_gather_base", {input}, {output},
      [&](hips_request_t* request) {
        return hips_iallgather(from.data(), to.data(), from.bytes(), HIPS_UINT8, comm_, request);
      },
      [from, to] { to.copy_out(); });
}

WorkPointer ProcessGroupHips::allgather_coalesced(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                                                  const c10d::AllgatherOptions& /*options*/) {
  constexpr const char* kCall = "all_gather_coalesced";
  TORCH_CHECK_VALUE(!inputs.empty(), "hips: ", kCall, ": the list of inputs is empty; expected one tensor or more");
  check_number(kCall, "lists of tensors", outputs.size(), static_cast<std::size_t>(size_), ", one for each rank");
  for (const at::Tensor& tensor : inputs) check_dense(kCall, tensor);
  for (const auto& list : outputs) {
    check_number(kCall, "outputs of a rank", list.size(), inputs.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      check_dense(kCall, list[i]);
      check_alike(kCall, list[i], inputs[i], true);
    }
  }
  const std::vector<at::Tensor> all = concatenated(outputs);
  const Flat from(inputs, true), to(all, false);
  std::uint64_t bytes = 0;
  for (const std::uint64_t one : from.bytes()) bytes += one;
  return run(
      c10d::OpType::ALLGATHER_COALESCED, "hips:all_gather", inputs, all,
      [&](hips_request_t* request) { return hips_iallgather(from.data(), to.data(), bytes, HIPS_UINT8, comm_, request); },
      [from, to] { to.copy_out(); });
}

WorkPointer ProcessGroupHips::reduce_scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                                             const c10d::ReduceScatterOptions& options) {
  constexpr const char* kCall = "reduce_scatter";
  const Dense output(only_tensor(kCall, outputs));
  auto& list = list_of_ranks(kCall, inputs, size_);
  for (const at::Tensor& tensor : list) check_alike(kCall, tensor, outputs.front(), false);
  check_alike(kCall, list[static_cast<std::size_t>(rank_)], outputs.front(), true);
  const Reduction reduction = reduction_of(kCall, outputs.front(), options.reduceOp);
  const Flat flat(list, true);
  return run(
      c10d::OpType::REDUCE_SCATTER, "hips:reduce_scatter", list, outputs,
      [&](hips_request_t* request) {
        return hips_ireduce_scatter(flat.data(), output.data(), flat.elements().data(), reduction.type, reduction.op, comm_,
                                    request);
      },
      [flat, output] { output.copy_out(); });
}

WorkPointer ProcessGroupHips::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                   const c10d::ReduceScatterOptions& options) {
  constexpr const char* kCall = "reduce_scatter_tensor";
  check_dense(kCall, output);
  check_dense(kCall, input);
  check_alike(kCall, input, output, false);
  TORCH_CHECK_VALUE(input.numel() == output.numel() * size_, "hips: ", kCall, ": input of ", input.numel(),
                    " elements; expected ", output.numel() * size_, ", those of ", size_, " ranks");
  const Dense from(input), to(output);
  const Reduction reduction = reduction_of(kCall, output, options.reduceOp);
  return run(
      c10d::OpType::_REDUCE_SCATTER_BASE, "hips:_reduce_scatter_base", {input}, {output},
      [&](hips_request_t* request) {
        return hips_ireduce_scatter_block(from.data(), to.data(), to.elements(), reduction.type, reduction.op, comm_, request);
      },
      [from, to] { to.copy_out(); });
}

WorkPointer ProcessGroupHips::gather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                                     const c10d::GatherOptions& options) {
  constexpr const char* kCall = "gather";
  const Dense input(only_tensor(kCall, inputs));
  const auto start = [&](hips_request_t* request, void* to) {
    return hips_igather(input.data(), to, input.bytes(), HIPS_UINT8, static_cast<int>(options.rootRank), comm_, request);
  };
  if (rank_ != options.rootRank) {
    check_number(kCall, "lists of outputs on a rank that is not the root", outputs.size(), 0);
    return run(
        c10d::OpType::GATHER, "hips:gather", inputs, {}, [&](hips_request_t* request) { return start(request, nullptr); },
        [input] {});
  }
  auto& list = list_of_ranks(kCall, outputs, size_);
  for (const at::Tensor& tensor : list) check_alike(kCall, tensor, inputs.front(), true);
  const Flat flat(list, false);
  return run(
      c10d::OpType::GATHER, "hips:gather", inputs, list,
      [&](hips_request_t* request) { return start(request, flat.data()); }, [flat, input] { flat.copy_out(); });
}

WorkPointer ProcessGroupHips::scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                                      const c10d::ScatterOptions& options) {
  constexpr const char* kCall = "scatter";
  const Dense output(only_tensor(kCall, outputs));
  const auto start = [&](hips_request_t* request, const void* from) {
    return hips_iscatter(from, output.data(), output.bytes(), HIPS_UINT8, static_cast<int>(options.rootRank), comm_, request);
  };
  if (rank_ != options.rootRank) {
    check_number(kCall, "lists of inputs on a rank that is not the root", inputs.size(), 0);
    return run(
        c10d::OpType::SCATTER, "hips:scatter", outputs, outputs,
        [&](hips_request_t* request) { return start(request, nullptr); }, [output] { output.copy_out(); });
  }
  auto& list = list_of_ranks(kCall, inputs, size_);
  for (const at::Tensor& tensor : list) check_alike(kCall, tensor, outputs.front(), true);
  const Flat flat(list, true);
  return run(
      c10d::OpType::SCATTER, "hips:scatter", list, outputs,
      [&](hips_request_t* request) { return start(request, flat.data()); }, [flat, output] { output.copy_out(); });
}

WorkPointer ProcessGroupHips::alltoall(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                                       const c10d::AllToAllOptions& /*options*/) {
  constexpr const char* kCall = "all_to_all";
  for (const auto* const list : {&outputs, &inputs}) {
    check_number(kCall, "tensors in a list", list->size(), static_cast<std::size_t>(size_), ", one for each rank");
    for (const at::Tensor& tensor : *list) {
      check_dense(kCall, tensor);
      check_alike(kCall, tensor, inputs.front(), true);
    }
  }
  const Flat from(inputs, true), to(outputs, false);
  return run(
      c10d::OpType::ALLTOALL, "hips:all_to_all", inputs, outputs,
      [&](hips_request_t* request) {
        return hips_ialltoall(from.data(), to.data(), from.bytes().front(), HIPS_UINT8, comm_, request);
      },
      [from, to] { to.copy_out(); });
}

WorkPointer ProcessGroupHips::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                                            std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& /*options*/) {
  constexpr const char* kCall = "all_to_all_single";
  check_dense(kCall, output);
  check_dense(kCall, input);
  check_alike(kCall, output, input, true);
  const std::int64_t rows = input.dim() > 0 ? input.size(0) : 1;
  TORCH_CHECK_VALUE(rows % size_ == 0, "hips: ", kCall, ": ", rows, " rows; expected a multiple of ", size_, ", the ranks");
  for (const auto* const splits : {&output_splits, &input_splits})
    for (const std::int64_t split : *splits)
      TORCH_CHECK_VALUE(split == rows / size_, "hips: ", kCall, ": a part has ", split, " rows; expected ", rows / size_,
                        ", as many for each rank (parts of different sizes are not supported)");
  const Dense from(input), to(output);
  return run(
      c10d::OpType::ALLTOALL_BASE, "hips:all_to_all", {input}, {output},
      [&](hips_request_t* request) {
        return hips_ialltoall(from.data(), to.data(), from.bytes() / static_cast<std::uint64_t>(size_), HIPS_UINT8, comm_,
                              request);
      },
      [from, to] { to.copy_out(); });
}

WorkPointer ProcessGroupHips::barrier(const c10d::BarrierOptions& /*options*/) {
  return run(
      c10d::OpType::BARRIER, "hips:barrier", {}, {}, [&](hips_request_t* request) { return hips_ibarrier(comm_, request); }, {});
}

}  // namespace hips::torch_backend

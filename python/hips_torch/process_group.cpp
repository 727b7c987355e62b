#include "python/hips_torch/process_group.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "python/hips_torch/error.hpp"
#include "python/hips_torch/messages.hpp"
#include "python/hips_torch/python_lock.hpp"
#include "python/hips_torch/sparse.hpp"
#include "python/hips_torch/store_bootstrap.hpp"
#include "python/hips_torch/tensors.hpp"
#include "python/hips_torch/work.hpp"

namespace hips::torch_backend {
namespace {

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

/// Throws a ValueError unless the rows of the tensor are divisible among the ranks.
void check_rows(const char* call, const at::Tensor& tensor, int size) {
  const std::int64_t rows = tensor.dim() > 0 ? tensor.size(0) : 1;
  TORCH_CHECK_VALUE(rows % size == 0, "hips: ", call, ": ", rows, " rows; expected a multiple of ", size, ", the ranks");
}

/// The tensor's rows for each rank, `splits` of them; equally many where that is empty.
std::vector<at::Tensor> parts_of(const char* call, const at::Tensor& tensor, const std::vector<std::int64_t>& splits, int size) {
  if (splits.empty()) {
    check_rows(call, tensor, size);
    return tensor.split_with_sizes(std::vector<std::int64_t>(static_cast<std::size_t>(size), tensor.size(0) / size));
  }
  check_number(call, "splits", splits.size(), static_cast<std::size_t>(size), ", one for each rank");
  return tensor.split_with_sizes(splits);
}

}  // namespace

/// The communicator and the threads of a group, apart from it: the end of a work may drop the last reference to the group on one of
/// these threads, and the end of the process ends groups that other threads are about to destroy.
struct ProcessGroupHips::Parts {
  hips_comm_t comm = nullptr;
  const std::shared_ptr<Completer> completer = Completer::make();
  std::mutex messages_mutex;
  std::shared_ptr<Messages> messages;
  std::atomic<bool> ended{false};

  Parts() = default;
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() {
    end();
    if (comm != nullptr) (void)hips_comm_destroy(comm);
  }

  /// Aborts what is outstanding, on all ranks, and waits until that has ended. Nothing may be started afterwards. The caller
  /// does not hold Python's lock: works that end may need it.
  void end() {
    if (ended.exchange(true)) return;
    // A call that has ended may still be a work that another thread is completing.
    constexpr std::chrono::microseconds kNap{50};
    constexpr int kNaps = 2000;
    bool is_outstanding = completer->has_outstanding();
    for (int i = 0; is_outstanding && i < kNaps; ++i) {
      std::this_thread::sleep_for(kNap);
      is_outstanding = completer->has_outstanding();
    }
    if (is_outstanding) (void)hips_comm_abort(comm, "its process group was destroyed while calls were outstanding");
    completer->stop();
    std::shared_ptr<Messages> stopping;
    {
      const std::lock_guard lock(messages_mutex);
      stopping = messages;
    }
    if (stopping) stopping->stop();
  }

  /// Of all groups of this process that have not ended.
  class All {
   public:
    static All& instance() {
      static All& all = *new All;  // groups may outlive static objects
      return all;
    }
    void add(const std::shared_ptr<Parts>& parts) {
      const std::lock_guard lock(mutex_);
      all_.erase(std::remove_if(all_.begin(), all_.end(), [](const auto& one) { return one.expired(); }), all_.end());
      all_.push_back(parts);
    }
    void end() {
      std::vector<std::weak_ptr<Parts>> all;
      {
        const std::lock_guard lock(mutex_);
        all.swap(all_);
      }
      // Without the lock: works that end here may destroy groups.
      for (const auto& one : all)
        if (const auto parts = one.lock()) parts->end();
    }

   private:
    std::mutex mutex_;
    std::vector<std::weak_ptr<Parts>> all_;
  };
};

ProcessGroupHips::ProcessGroupHips(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                   std::chrono::milliseconds timeout, Job job)
    : ProcessGroupBase(rank, size), store_(store), timeout_(timeout), job_(job), parts_(std::make_shared<Parts>()) {
  StoreBootstrap bootstrap(store, rank, size);
  const hips_bootstrap_t callbacks = bootstrap.callbacks();
  hips_comm_config_t config = HIPS_COMM_CONFIG_INIT;
  config.name = "process group";
  config.job_rank = job_.rank;
  config.job_size = job_.size;
  config.timeout_ms = timeout.count();
  if (hips_comm_create(&config, &callbacks, &comm_) != HIPS_OK) throw HipsError::last();
  parts_->comm = comm_;
  Parts::All::instance().add(parts_);
}

ProcessGroupHips::~ProcessGroupHips() {
  without_python_lock([this] { parts_.reset(); });
}

void ProcessGroupHips::end_all() { Parts::All::instance().end(); }

WorkPointer ProcessGroupHips::run(c10d::OpType op, const char* title, const std::vector<at::Tensor>& inputs,
                                  std::vector<at::Tensor> outputs, const Start& start, std::function<void()> copy_out) {
  auto work = c10::make_intrusive<HipsWork>(rank_, op, title, inputs, std::move(outputs), std::move(copy_out));
  throw_if_failed(parts_->completer->start(work, start));
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
  check_number("all_reduce", "tensors", tensors.size(), 1);
  if (tensors.front().layout() == at::kSparse) return sum_of_sparse(tensors, options.reduceOp);
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
  // NCCL allows that the output is one of the inputs.
  std::vector<at::Tensor> inputs_apart = list;
  for (at::Tensor& tensor : inputs_apart)
    if (overlap(tensor, outputs.front())) tensor = tensor.detach().clone();
  const Flat flat(inputs_apart, true);
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
  // NCCL allows that the output is this rank's part of the input.
  const Dense from(overlap(input, output) ? input.detach().clone() : input), to(output);
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

std::vector<std::int64_t> ProcessGroupHips::numbers_of_all(const std::vector<std::int64_t>& mine) {
  std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(size_));
  const auto start = [&](hips_request_t* request) {
    return hips_iallgather(mine.data(), all.data(), mine.size(), HIPS_INT64, comm_, request);
  };
  run(c10d::OpType::ALLGATHER, "hips:sizes", {}, {}, start, {})->wait();
  return all;
}

WorkPointer ProcessGroupHips::exchange(const char* call, c10d::OpType op, const std::vector<at::Tensor>& outputs,
                                       const std::vector<at::Tensor>& inputs) {
  const auto size = static_cast<std::size_t>(size_);
  std::vector<std::int64_t> mine;
  for (const auto* const list : {&inputs, &outputs}) {
    check_number(call, "tensors in a list", list->size(), size, ", one for each rank");
    for (const at::Tensor& tensor : *list) {
      check_dense(call, tensor);
      check_alike(call, tensor, inputs.front(), false);
      mine.push_back(static_cast<std::int64_t>(tensor.nbytes()));
    }
  }
  const std::vector<std::int64_t> all = numbers_of_all(mine);
  bool all_equal = true;
  std::int64_t most = 0;
  for (std::size_t from = 0; from < size; ++from) {
    for (std::size_t to = 0; to < size; ++to) {
      const std::int64_t sent = all[2 * size * from + to], expected = all[2 * size * to + size + from];
      // Every rank finds the same.
      TORCH_CHECK_VALUE(sent == expected, "hips: ", call, ": rank ", from, " sends ", sent, " bytes to rank ", to, ", which expects ",
                        expected);
      all_equal = all_equal && sent == all.front();
      most = std::max(most, sent);
    }
  }
  const auto bytes = static_cast<std::uint64_t>(most);
  const auto start = [&](const void* from, void* to, std::function<void()> copy_out) {
    return run(
        op, "hips:all_to_all", inputs, outputs,
        [&](hips_request_t* request) { return hips_ialltoall(from, to, bytes, HIPS_UINT8, comm_, request); }, std::move(copy_out));
  };
  if (all_equal) {
    const Flat from(inputs, true), to(outputs, false);
    return start(from.data(), to.data(), [from, to] { to.copy_out(); });
  }
  const Padded from(inputs, bytes, true), to(outputs, bytes, false);
  return start(from.data(), to.data(), [from, to] { to.copy_out(); });
}

WorkPointer ProcessGroupHips::alltoall(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                                       const c10d::AllToAllOptions& /*options*/) {
  return exchange("all_to_all", c10d::OpType::ALLTOALL, outputs, inputs);
}

WorkPointer ProcessGroupHips::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                                            std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& /*options*/) {
  constexpr const char* kCall = "all_to_all_single";
  check_dense(kCall, output);
  check_dense(kCall, input);
  if (!output_splits.empty() || !input_splits.empty())
    return exchange(kCall, c10d::OpType::ALLTOALL_BASE, parts_of(kCall, output, output_splits, size_),
                    parts_of(kCall, input, input_splits, size_));
  check_alike(kCall, output, input, true);
  check_rows(kCall, input, size_);
  const Dense from(input), to(output);
  return run(
      c10d::OpType::ALLTOALL_BASE, "hips:all_to_all", {input}, {output},
      [&](hips_request_t* request) {
        return hips_ialltoall(from.data(), to.data(), from.bytes() / static_cast<std::uint64_t>(size_), HIPS_UINT8, comm_,
                              request);
      },
      [from, to] { to.copy_out(); });
}

WorkPointer ProcessGroupHips::sum_of_sparse(std::vector<at::Tensor>& tensors, const c10d::ReduceOp& op) {
  const at::Tensor& tensor = tensors.front();
  TORCH_CHECK_TYPE(tensor.device().is_cpu(), "hips: all_reduce: the tensor is on ", tensor.device(),
                   "; this backend takes CPU tensors");
  TORCH_CHECK_VALUE(static_cast<c10d::ReduceOp::RedOpType>(op) == c10d::ReduceOp::SUM,
                    "hips: all_reduce: sparse tensors are reduced with SUM only");
  SparseSum sum(tensor);
  sum.set_shapes(numbers_of_all(sum.shape()));
  return run(
      c10d::OpType::ALLREDUCE, "hips:sparse_all_reduce", {}, tensors,
      [&](hips_request_t* request) {
        return hips_iallgather(sum.data(), sum.gathered(), sum.bytes(), HIPS_UINT8, comm_, request);
      },
      [sum] { sum.copy_out(); });
}

WorkPointer ProcessGroupHips::barrier(const c10d::BarrierOptions& /*options*/) {
  return run(
      c10d::OpType::BARRIER, "hips:barrier", {}, {}, [&](hips_request_t* request) { return hips_ibarrier(comm_, request); }, {});
}

Messages& ProcessGroupHips::messages(const char* call, int peer) {
  TORCH_CHECK_VALUE(peer == MessageWork::kAnyRank || (peer >= 0 && peer < size_ && peer != rank_), "hips: ", call, ": rank ", peer,
                    "; expected another rank of the group, from 0 to ", size_ - 1);
  const std::lock_guard lock(parts_->messages_mutex);
  if (!parts_->messages) parts_->messages = Messages::make(store_, rank_, size_, job_, timeout_);
  return *parts_->messages;
}

WorkPointer ProcessGroupHips::send(std::vector<at::Tensor>& tensors, int to, int tag) {
  return messages("send", to).send(only_tensor("send", tensors), to, tag);
}

WorkPointer ProcessGroupHips::recv(std::vector<at::Tensor>& tensors, int from, int tag) {
  return messages("recv", from).receive(only_tensor("recv", tensors), from, tag);
}

WorkPointer ProcessGroupHips::recvAnysource(std::vector<at::Tensor>& tensors, int tag) {
  return messages("recv", MessageWork::kAnyRank).receive(only_tensor("recv", tensors), MessageWork::kAnyRank, tag);
}

}  // namespace hips::torch_backend

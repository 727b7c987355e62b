#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <hips/hips.h>

#include "python/hips_torch/channel.hpp"
#include "python/hips_torch/completer.hpp"
#include "python/hips_torch/torch_api.hpp"

namespace hips::torch_backend {

class Messages;

/// PyTorch's process group on a communicator of HiPS, for CPU tensors.
///
/// Each collective starts at once and gives a Work (work.hpp). Contiguous tensors are reduced and moved in place, lists of tensors
/// too where they lie one behind the other; others go through a copy. Collectives take place in the order in which they were
/// started, the same on all ranks. Messages between two ranks are apart from them (messages.hpp).
///
/// Errors   HipsError: of HiPS; the process group has failed then, on all ranks. TypeError, ValueError: what no rank can do
///          with these tensors; found before the collective begins.
/// Threads  any.
class ProcessGroupHips final : public ProcessGroupBase {
 public:
  /// Makes the communicator of a group, which has some or all ranks of the job. Collective. A call that waits longer than `timeout`
  /// fails on all ranks.
  ProcessGroupHips(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, std::chrono::milliseconds timeout, Job job);
  ~ProcessGroupHips() override;
  /// Aborts what is outstanding in all groups of this process, which is about to exit, and waits until that has ended. The caller
  /// does not hold Python's lock: works that end may need it.
  static void end_all();

  const std::string getBackendName() const override { return "hips"; }  // NOLINT: as PyTorch declares it
  /// "HiPS, 2 lanes, mesh on both levels on BCube(3,1); shm"
  [[nodiscard]] std::string describe() const { return hips_comm_describe(comm_); }

  WorkPointer broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  WorkPointer allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_coalesced(std::vector<at::Tensor>& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPointer reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) override;
  WorkPointer allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                        const c10d::AllgatherOptions& options) override;
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_coalesced(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                                  const c10d::AllgatherOptions& options) override;
  WorkPointer reduce_scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                             const c10d::ReduceScatterOptions& options) override;
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override;
  WorkPointer gather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                     const c10d::GatherOptions& options) override;
  WorkPointer scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                      const c10d::ScatterOptions& options) override;
  WorkPointer alltoall(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                       const c10d::AllToAllOptions& options) override;
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                            std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  WorkPointer barrier(const c10d::BarrierOptions& options) override;
  WorkPointer send(std::vector<at::Tensor>& tensors, int to, int tag) override;
  WorkPointer recv(std::vector<at::Tensor>& tensors, int from, int tag) override;
  WorkPointer recvAnysource(std::vector<at::Tensor>& tensors, int tag) override;

  void setSequenceNumberForGroup() override {}
  /// The number of collectives that this rank has started.
  uint64_t getSequenceNumberForGroup() override { return num_started_; }

 private:
  using Start = std::function<hips_status_t(hips_request_t*)>;

  /// Starts a collective; the tensors are kept until it has ended, and `copy_out` runs then.
  WorkPointer run(c10d::OpType op, const char* title, const std::vector<at::Tensor>& inputs, std::vector<at::Tensor> outputs,
                  const Start& start, std::function<void()> copy_out);

  /// What each rank passes, one after the other; waits for all ranks.
  std::vector<std::int64_t> numbers_of_all(const std::vector<std::int64_t>& mine);
  /// Of tensors of any sizes, which the ranks compare first.
  WorkPointer exchange(const char* call, c10d::OpType op, const std::vector<at::Tensor>& outputs,
                       const std::vector<at::Tensor>& inputs);
  WorkPointer sum_of_sparse(std::vector<at::Tensor>& tensors, const c10d::ReduceOp& op);

  /// Started by the first message. Throws a ValueError where `peer` is no other rank of the group.
  Messages& messages(const char* call, int peer);

  const c10::intrusive_ptr<c10d::Store> store_;
  const std::chrono::milliseconds timeout_;
  Job job_;
  hips_comm_t comm_ = nullptr;  ///< that of `parts_`
  struct Parts;
  std::shared_ptr<Parts> parts_;
  std::atomic<std::uint64_t> num_started_{0};
};

}  // namespace hips::torch_backend

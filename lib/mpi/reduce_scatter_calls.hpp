#pragma once

#include <mpi.h>

#include <cstdint>

#include "lib/mpi/count.hpp"
#include "lib/mpi/program_call.hpp"

namespace hips::mpi {

/// What the two reduce-scatters have in common.
class ReduceScatterCall : public ProgramCall {
 public:
  ReduceScatterCall(const CallNames& names, const void* in, void* out, MPI_Datatype type, MPI_Op op,
                    MPI_Comm of)
      : ProgramCall(names, of), in_(in), out_(out), type_(type), op_(op) {}

  bool accept(const CommRecord& record, const char*& reason) override;
  void prepare(CommRecord& record) override;

 protected:
  ReduceScatterCall(ReduceScatterCall&&) = default;

  /// May the sections be looked at?
  [[nodiscard]] virtual bool has_counts() const = 0;
  /// Elements of that rank's section, as the program said.
  [[nodiscard]] virtual std::int64_t count_of(int rank) const = 0;

  const void* in_;
  void* out_;
  MPI_Datatype type_;
  MPI_Op op_;
};

/// MPI_Reduce_scatter and MPI_Ireduce_scatter.
class ReduceScatterCountsCall final : public ReduceScatterCall {
 public:
  ReduceScatterCountsCall(const void* in, void* out, Counts counts, MPI_Datatype type, MPI_Op op, MPI_Comm of)
      : ReduceScatterCall(kNames, in, out, type, op, of), counts_(counts) {}

  [[nodiscard]] int on_host() const override;
  [[nodiscard]] int start_on_host(MPI_Request* request) const override;

 private:
  static constexpr CallNames kNames{"MPI_Reduce_scatter", "MPI_Ireduce_scatter"};

  [[nodiscard]] bool has_counts() const override { return counts_.exist(); }
  [[nodiscard]] std::int64_t count_of(int rank) const override { return counts_[rank]; }

  Counts counts_;
};

/// MPI_Reduce_scatter_block and MPI_Ireduce_scatter_block.
class ReduceScatterBlockCall final : public ReduceScatterCall {
 public:
  ReduceScatterBlockCall(const void* in, void* out, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm of)
      : ReduceScatterCall(kNames, in, out, type, op, of), count_(count) {}

  [[nodiscard]] int on_host() const override;
  [[nodiscard]] int start_on_host(MPI_Request* request) const override;

 private:
  static constexpr CallNames kNames{"MPI_Reduce_scatter_block", "MPI_Ireduce_scatter_block"};

  [[nodiscard]] bool has_counts() const override { return true; }
  [[nodiscard]] std::int64_t count_of(int /*rank*/) const override { return count_.value(); }

  Count count_;
};

}  // namespace hips::mpi

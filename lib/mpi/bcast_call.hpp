#pragma once

#include <mpi.h>

#include "lib/mpi/buffer_type.hpp"
#include "lib/mpi/count.hpp"
#include "lib/mpi/program_call.hpp"

namespace hips::mpi {

/// MPI_Bcast and MPI_Ibcast, of any type: ranks need not pass the same one, so bytes are counted.
class BcastCall final : public ProgramCall {
 public:
  BcastCall(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm of)
      : ProgramCall(kNames, of), buffer_(buffer), count_(count), type_(type), root_(root) {}

  [[nodiscard]] int on_host() const override;
  [[nodiscard]] int start_on_host(MPI_Request* request) const override;
  bool accept(const CommRecord& record, const char*& reason) override;
  void prepare(CommRecord& record) override;
  int pack() override;
  int unpack() override;
  [[nodiscard]] bool packs() const override { return !shape_.plain; }
  int outlive() override;

 private:
  static constexpr CallNames kNames{"MPI_Bcast", "MPI_Ibcast"};

  void* buffer_;
  Count count_;
  MPI_Datatype type_;
  int root_;
  BufferType shape_;
  bool is_root_ = false;
  Packed packed_;
  KeptType kept_type_;
};

}  // namespace hips::mpi

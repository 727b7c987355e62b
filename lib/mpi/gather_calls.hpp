#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/mpi/buffer_type.hpp"
#include "lib/mpi/count.hpp"
#include "lib/mpi/program_call.hpp"

namespace hips::mpi {

/// What the two all-gathers have in common. Sections are counted in bytes: ranks may pass different types of
/// the same signature.
class GatherCall : public ProgramCall {
 public:
  GatherCall(const CallNames& names, const void* in, Count in_count, MPI_Datatype in_type, void* out,
             MPI_Datatype out_type, MPI_Comm of)
      : ProgramCall(names, of),
        in_(in),
        in_count_(in_count),
        in_type_(in_type),
        out_(out),
        out_type_(out_type) {}

  bool accept(const CommRecord& record, const char*& reason) override;
  void prepare(CommRecord& record) override;
  int pack() override;
  int unpack() override;
  [[nodiscard]] bool packs() const override { return !shape_.plain || !in_shape_.plain; }
  int outlive() override;

 protected:
  GatherCall(GatherCall&&) = default;

  /// May the sections be looked at?
  [[nodiscard]] virtual bool has_sections() const = 0;
  /// Of that rank's section, as the program said: elements, and where they begin in elements from `out` on.
  [[nodiscard]] virtual std::int64_t count_of(int rank) const = 0;
  [[nodiscard]] virtual std::int64_t place_of(int rank) const = 0;

  const void* in_;
  Count in_count_;
  MPI_Datatype in_type_;
  void* out_;
  MPI_Datatype out_type_;

 private:
  [[nodiscard]] bool in_place() const { return in_ == MPI_IN_PLACE; }
  /// A section while it is packed, and in the program's memory; of a call that packs sections.
  [[nodiscard]] std::size_t begin(int rank) const;
  [[nodiscard]] std::int64_t elements(int rank) const;
  [[nodiscard]] std::byte* place(int rank) const;

  int rank_ = 0, size_ = 0;
  BufferType shape_, in_shape_;
  Packed own_, sections_;
  std::vector<std::int64_t> places_;  ///< bytes from `out` on, where sections are packed
  KeptType kept_type_;
};

/// MPI_Allgather and MPI_Iallgather.
class AllgatherCall final : public GatherCall {
 public:
  AllgatherCall(const void* in, Count in_count, MPI_Datatype in_type, void* out, Count out_count,
                MPI_Datatype out_type, MPI_Comm of)
      : GatherCall(kNames, in, in_count, in_type, out, out_type, of), out_count_(out_count) {}

  [[nodiscard]] int on_host() const override;
  [[nodiscard]] int start_on_host(MPI_Request* request) const override;

 private:
  static constexpr CallNames kNames{"MPI_Allgather", "MPI_Iallgather"};

  [[nodiscard]] bool has_sections() const override { return true; }
  [[nodiscard]] std::int64_t count_of(int /*rank*/) const override { return out_count_.value(); }
  [[nodiscard]] std::int64_t place_of(int rank) const override { return rank * out_count_.value(); }

  Count out_count_;
};

/// MPI_Allgatherv and MPI_Iallgatherv.
class AllgathervCall final : public GatherCall {
 public:
  AllgathervCall(const void* in, Count in_count, MPI_Datatype in_type, void* out, Counts counts,
                 Places displacements, MPI_Datatype out_type, MPI_Comm of)
      : GatherCall(kNames, in, in_count, in_type, out, out_type, of),
        counts_(counts),
        displacements_(displacements) {}

  [[nodiscard]] int on_host() const override;
  [[nodiscard]] int start_on_host(MPI_Request* request) const override;

 private:
  static constexpr CallNames kNames{"MPI_Allgatherv", "MPI_Iallgatherv"};

  [[nodiscard]] bool has_sections() const override { return counts_.exist() && displacements_.exist(); }
  [[nodiscard]] std::int64_t count_of(int rank) const override { return counts_[rank]; }
  [[nodiscard]] std::int64_t place_of(int rank) const override { return displacements_[rank]; }

  Counts counts_;
  Places displacements_;
};

}  // namespace hips::mpi

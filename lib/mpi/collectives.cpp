#include "lib/mpi/collectives.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "lib/mpi/buffer_type.hpp"
#include "lib/mpi/carry.hpp"
#include "lib/mpi/comm_record.hpp"
#include "lib/mpi/error.hpp"
#include "lib/mpi/host.hpp"
#include "lib/mpi/inside.hpp"
#include "lib/mpi/predefined.hpp"
#include "lib/mpi/process.hpp"
#include "lib/mpi/reduction_call.hpp"

namespace hips::mpi {
namespace {

/// The host's function of that name, whatever MPI it is of.
template <typename Function>
Function* of_host(const char* name) {
  return reinterpret_cast<Function*>(host_symbol(name));
}

/// One of the program's calls: what is of one collective in it.
class ProgramCall : public HostedCall {
 public:
  using HostedCall::HostedCall;

  /// Says it in HiPS' words; false where the host is to carry it, for `reason`, which lives as long as the
  /// program. By what MPI makes equal on all ranks, or what is wrong on this one.
  virtual bool accept(CommRecord& record, const char*& reason) = 0;
  /// Is the call worth setting a communicator up?
  [[nodiscard]] virtual bool sets_up() const { return true; }

 protected:
  static constexpr const char* kNothing = "nothing to move";
  static constexpr const char* kWrong = "arguments that are wrong here";

  /// Type and operation of a reduction; as MPI_Allreduce decides.
  bool accept_reduction(MPI_Datatype type, MPI_Op op, const char*& reason) {
    const Reduction reduction = reduction_of(type, op);
    args.type = reduction.type;
    args.op = reduction.op;
    reason = reduction.verdict == Reduction::Verdict::kOtherType ? "reduction of another type"
             : reduction.verdict == Reduction::Verdict::kOtherOp ? "reduction by another op"
                                                                 : "op that is not for its type";
    return reduction.verdict == Reduction::Verdict::kTake;
  }
  void set_in(const void* in) { args.in = static_cast<const std::byte*>(in); }
  void set_out(void* out) { args.out = static_cast<std::byte*>(out); }
};

int route(Process& process, ProgramCall& call) {
  // A null handle is an error, and the host has the words for it.
  if (call.comm == nullptr || call.comm == host()->no_comm) return call.on_host();
  CommRecord* const record =
      call.sets_up() ? CommRecord::of(process, call.comm) : CommRecord::existing(process, call.comm);
  if (record == nullptr) return call.on_host();
  if (!record->failure().ok()) return raise_error(call.comm, *record, record->failure(), call.name);
  if (record->communicator() == nullptr) {
    if (process.reports()) process.report().add_declined(record->declined());
    return call.on_host();
  }
  const char* reason = "";
  if (call.accept(*record, reason)) return carry(process, *record, call);
  // A peer that passed something else may wait for us in HiPS: let it find out.
  record->communicator()->note_declined(call.name);
  if (process.reports()) process.report().add_declined(std::string(call.name) + ": " + reason);
  return call.on_host();
}

int enter(ProgramCall& call) {
  if (t_inside) return call.on_host();
  Process* const process = Process::active();
  if (process == nullptr) return call.on_host();
  const Inside inside;
  // Nothing may be thrown into a program of C or Fortran.
  try {
    return route(*process, call);
  } catch (const std::bad_alloc&) {
    return raise_code(call.comm, MPI_ERR_NO_MEM);
  } catch (const std::exception&) {
    return raise_code(call.comm, MPI_ERR_INTERN);
  }
}

// ---- Barrier, broadcast, reduce ------------------------------------------------------------------------

class Barrier final : public ProgramCall {
 public:
  explicit Barrier(MPI_Comm of) : ProgramCall("MPI_Barrier", of) { args.collective = Collective::kBarrier; }
  [[nodiscard]] int on_host() const override {
    static auto* const function = of_host<decltype(PMPI_Barrier)>("PMPI_Barrier");
    return function(comm);
  }
  [[nodiscard]] bool sets_up() const override { return false; }
  bool accept(CommRecord&, const char*&) override { return true; }
};

class Bcast final : public ProgramCall {
 public:
  Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm of)
      : ProgramCall("MPI_Bcast", of), buffer_(buffer), count_(count), type_(type), root_(root) {}
  [[nodiscard]] int on_host() const override {
    static auto* const function = of_host<decltype(PMPI_Bcast)>("PMPI_Bcast");
    return function(buffer_, count_, type_, root_, comm);
  }
  bool accept(CommRecord& record, const char*& reason) override {
    const auto type = BufferType::of(type_);
    reason = kWrong;
    if (!type || count_ < 0 || root_ < 0 || root_ >= record.communicator()->size()) return false;
    reason = kNothing;
    if (count_ == 0 || type->size == 0) return false;
    shape_ = *type;
    args.collective = Collective::kBcast;
    args.count = static_cast<std::uint64_t>(count_) * static_cast<std::uint64_t>(type->size);
    args.root = root_;
    is_root_ = record.communicator()->rank() == root_;
    set_out(shape_.plain ? static_cast<std::byte*>(buffer_) : packed_.make(args.count));
    args.in = args.out;
    return true;
  }
  int pack() override {
    return shape_.plain || !is_root_ ? MPI_SUCCESS : packed_.pack(buffer_, count_, shape_, 0, comm);
  }
  int unpack() override {
    return shape_.plain || is_root_ ? MPI_SUCCESS : packed_.unpack(buffer_, count_, shape_, 0, comm);
  }

 private:
  void* buffer_;
  int count_;
  MPI_Datatype type_;
  int root_;
  BufferType shape_;
  bool is_root_ = false;
  Packed packed_;
};

class Reduce final : public ProgramCall {
 public:
  Reduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm of)
      : ProgramCall("MPI_Reduce", of), in_(in), out_(out), count_(count), type_(type), op_(op), root_(root) {}
  [[nodiscard]] int on_host() const override {
    static auto* const function = of_host<decltype(PMPI_Reduce)>("PMPI_Reduce");
    return function(in_, out_, count_, type_, op_, root_, comm);
  }
  bool accept(CommRecord& record, const char*& reason) override {
    if (!accept_reduction(type_, op_, reason)) return false;
    const bool is_root = record.communicator()->rank() == root_;
    reason = kWrong;
    if (count_ < 0 || root_ < 0 || root_ >= record.communicator()->size() ||
        (in_ == MPI_IN_PLACE && !is_root))
      return false;
    reason = kNothing;
    if (count_ == 0) return false;
    args.collective = Collective::kReduce;
    args.count = static_cast<std::uint64_t>(count_);
    args.root = root_;
    set_in(in_ == MPI_IN_PLACE ? out_ : in_);
    set_out(is_root ? out_ : nullptr);
    return true;
  }

 private:
  const void* in_;
  void* out_;
  int count_;
  MPI_Datatype type_;
  MPI_Op op_;
  int root_;
};

// ---- Reduce-scatter ------------------------------------------------------------------------------------

class ReduceScatter : public ProgramCall {
 public:
  ReduceScatter(const char* function, const void* in, void* out, MPI_Datatype type, MPI_Op op, MPI_Comm of)
      : ProgramCall(function, of), in_(in), out_(out), type_(type), op_(op) {}

 protected:
  bool accept_sections(CommRecord& record, const std::vector<std::uint64_t>& counts, const char*& reason) {
    args.collective = Collective::kReduceScatter;
    args.sections = record.sections(counts, {});
    args.count = args.sections->total();
    set_in(in_ == MPI_IN_PLACE ? out_ : in_);
    set_out(out_);
    reason = kNothing;
    return args.count > 0;
  }

  const void* in_;
  void* out_;
  MPI_Datatype type_;
  MPI_Op op_;
};

class ReduceScatterCounts final : public ReduceScatter {
 public:
  ReduceScatterCounts(const void* in, void* out, const int* counts, MPI_Datatype type, MPI_Op op, MPI_Comm of)
      : ReduceScatter("MPI_Reduce_scatter", in, out, type, op, of), counts_(counts) {}
  [[nodiscard]] int on_host() const override {
    static auto* const function = of_host<decltype(PMPI_Reduce_scatter)>("PMPI_Reduce_scatter");
    return function(in_, out_, counts_, type_, op_, comm);
  }
  bool accept(CommRecord& record, const char*& reason) override {
    if (!accept_reduction(type_, op_, reason)) return false;
    reason = kWrong;
    const int size = record.communicator()->size();
    if (counts_ == nullptr || std::any_of(counts_, counts_ + size, [](int count) { return count < 0; }))
      return false;
    return accept_sections(record, {counts_, counts_ + size}, reason);
  }

 private:
  const int* counts_;
};

class ReduceScatterBlock final : public ReduceScatter {
 public:
  ReduceScatterBlock(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm of)
      : ReduceScatter("MPI_Reduce_scatter_block", in, out, type, op, of), count_(count) {}
  [[nodiscard]] int on_host() const override {
    static auto* const function = of_host<decltype(PMPI_Reduce_scatter_block)>("PMPI_Reduce_scatter_block");
    return function(in_, out_, count_, type_, op_, comm);
  }
  bool accept(CommRecord& record, const char*& reason) override {
    if (!accept_reduction(type_, op_, reason)) return false;
    reason = kWrong;
    if (count_ < 0) return false;
    const auto size = static_cast<std::size_t>(record.communicator()->size());
    return accept_sections(record, std::vector<std::uint64_t>(size, static_cast<std::uint64_t>(count_)),
                           reason);
  }

 private:
  int count_;
};

// ---- All-gather ----------------------------------------------------------------------------------------

/// Sections are counted in bytes: ranks may pass different types of the same signature.
class Gather : public ProgramCall {
 public:
  Gather(const char* function, const void* in, int in_count, MPI_Datatype in_type, void* out,
         MPI_Datatype out_type, MPI_Comm of)
      : ProgramCall(function, of),
        in_(in),
        in_count_(in_count),
        in_type_(in_type),
        out_(out),
        out_type_(out_type) {}

  int pack() override {
    const auto self = static_cast<std::size_t>(rank_);
    if (in_ == MPI_IN_PLACE)
      return shape_.plain ? MPI_SUCCESS
                          : sections_.pack(place(self), counts_[self], shape_, begin(self), comm);
    return in_shape_.plain ? MPI_SUCCESS : own_.pack(in_, in_count_, in_shape_, 0, comm);
  }
  int unpack() override {
    if (shape_.plain) return MPI_SUCCESS;
    for (std::size_t r = 0; r < counts_.size(); ++r) {
      if (in_ == MPI_IN_PLACE && r == static_cast<std::size_t>(rank_)) continue;
      if (const int code = sections_.unpack(place(r), counts_[r], shape_, begin(r), comm);
          code != MPI_SUCCESS)
        return code;
    }
    return MPI_SUCCESS;
  }

 protected:
  /// With counts_ and places_ (elements of the type from `out` on) of all ranks.
  bool accept_sections(CommRecord& record, const char*& reason) {
    const auto shape = BufferType::of(out_type_);
    const auto in_shape = in_ == MPI_IN_PLACE ? shape : BufferType::of(in_type_);
    rank_ = record.communicator()->rank();
    const auto self = static_cast<std::size_t>(rank_);
    reason = kWrong;
    if (!shape || !in_shape ||
        std::any_of(counts_.begin(), counts_.end(), [](int count) { return count < 0; }))
      return false;
    if (in_ != MPI_IN_PLACE && (in_count_ < 0 || in_count_ * in_shape->size != counts_[self] * shape->size))
      return false;
    shape_ = *shape;
    in_shape_ = *in_shape;
    // HiPS' places are no negative numbers: what lies before `out` goes through memory of ours.
    if (std::any_of(places_.begin(), places_.end(), [](std::int64_t at) { return at < 0; }))
      shape_.plain = false;
    std::vector<std::uint64_t> counts, places;
    for (std::size_t r = 0; r < counts_.size(); ++r) {
      counts.push_back(static_cast<std::uint64_t>(counts_[r]) * static_cast<std::uint64_t>(shape_.size));
      if (shape_.plain) places.push_back(static_cast<std::uint64_t>(places_[r] * shape_.extent));
    }
    args.collective = Collective::kAllgather;
    args.sections = record.sections(counts, places);
    args.count = args.sections->total();
    reason = kNothing;
    if (args.count == 0) return false;
    set_out(shape_.plain ? static_cast<std::byte*>(out_) : sections_.make(args.count));
    if (in_ == MPI_IN_PLACE)
      args.in = args.out + args.sections->place(self);
    else
      set_in(in_shape_.plain ? in_ : own_.make(counts[self]));
    return true;
  }

  const void* in_;
  int in_count_;
  MPI_Datatype in_type_;
  void* out_;
  MPI_Datatype out_type_;
  std::vector<int> counts_;
  std::vector<std::int64_t> places_;

 private:
  [[nodiscard]] std::byte* place(std::size_t rank) const {
    return static_cast<std::byte*>(out_) + places_[rank] * shape_.extent;
  }
  [[nodiscard]] std::size_t begin(std::size_t rank) const { return args.sections->first(rank); }

  int rank_ = 0;
  BufferType shape_, in_shape_;
  Packed own_, sections_;
};

class Allgather final : public Gather {
 public:
  Allgather(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
            MPI_Datatype out_type, MPI_Comm of)
      : Gather("MPI_Allgather", in, in_count, in_type, out, out_type, of), out_count_(out_count) {}
  [[nodiscard]] int on_host() const override {
    static auto* const function = of_host<decltype(PMPI_Allgather)>("PMPI_Allgather");
    return function(in_, in_count_, in_type_, out_, out_count_, out_type_, comm);
  }
  bool accept(CommRecord& record, const char*& reason) override {
    const auto size = static_cast<std::size_t>(record.communicator()->size());
    counts_.assign(size, out_count_);
    for (std::size_t r = 0; r < size; ++r) places_.push_back(static_cast<std::int64_t>(r) * out_count_);
    return accept_sections(record, reason);
  }

 private:
  int out_count_;
};

class Allgatherv final : public Gather {
 public:
  Allgatherv(const void* in, int in_count, MPI_Datatype in_type, void* out, const int* counts,
             const int* displacements, MPI_Datatype out_type, MPI_Comm of)
      : Gather("MPI_Allgatherv", in, in_count, in_type, out, out_type, of),
        given_counts_(counts),
        displacements_(displacements) {}
  [[nodiscard]] int on_host() const override {
    static auto* const function = of_host<decltype(PMPI_Allgatherv)>("PMPI_Allgatherv");
    return function(in_, in_count_, in_type_, out_, given_counts_, displacements_, out_type_, comm);
  }
  bool accept(CommRecord& record, const char*& reason) override {
    reason = kWrong;
    if (given_counts_ == nullptr || displacements_ == nullptr) return false;
    const int size = record.communicator()->size();
    counts_.assign(given_counts_, given_counts_ + size);
    places_.assign(displacements_, displacements_ + size);
    return accept_sections(record, reason);
  }

 private:
  const int* given_counts_;
  const int* displacements_;
};

}  // namespace

int barrier(MPI_Comm comm) {
  Barrier call(comm);
  return enter(call);
}

int bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  Bcast call(buffer, count, type, root, comm);
  return enter(call);
}

int reduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  Reduce call(in, out, count, type, op, root, comm);
  return enter(call);
}

int reduce_scatter(const void* in, void* out, const int counts[], MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm) {
  ReduceScatterCounts call(in, out, counts, type, op, comm);
  return enter(call);
}

int reduce_scatter_block(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  ReduceScatterBlock call(in, out, count, type, op, comm);
  return enter(call);
}

int allgather(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
              MPI_Datatype out_type, MPI_Comm comm) {
  Allgather call(in, in_count, in_type, out, out_count, out_type, comm);
  return enter(call);
}

int allgatherv(const void* in, int in_count, MPI_Datatype in_type, void* out, const int counts[],
               const int displacements[], MPI_Datatype out_type, MPI_Comm comm) {
  Allgatherv call(in, in_count, in_type, out, counts, displacements, out_type, comm);
  return enter(call);
}

}  // namespace hips::mpi

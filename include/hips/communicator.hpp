#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <hips/hips.h>
#include <hips/buffer.hpp>
#include <hips/half.hpp>
#include <hips/last_error.hpp>
#include <hips/request.hpp>
#include <hips/status.hpp>
#include <hips/types.hpp>
#include <hips/user_op.hpp>

namespace hips {

/// The C++ types that HiPS reduces: integers of 8 to 64 bits (not bool, nor character types but signed and
/// unsigned char), float, double, Float16 and Bfloat16 (half.hpp).
template <typename T>
concept Element = (std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                   !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> && !std::same_as<T, char16_t> &&
                   !std::same_as<T, char32_t> && !std::is_const_v<T> && sizeof(T) <= 8) ||
                  std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, Float16> ||
                  std::same_as<T, Bfloat16>;

/// long and long long are both kInt64 where they have 64 bits.
template <Element T>
constexpr DataType data_type_of() {
  if constexpr (std::same_as<T, float>) return DataType::kFloat32;
  if constexpr (std::same_as<T, double>) return DataType::kFloat64;
  if constexpr (std::same_as<T, Float16>) return DataType::kFloat16;
  if constexpr (std::same_as<T, Bfloat16>) return DataType::kBfloat16;
  if constexpr (std::integral<T>) {
    constexpr bool kSigned = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return kSigned ? DataType::kInt8 : DataType::kUint8;
    if constexpr (sizeof(T) == 2) return kSigned ? DataType::kInt16 : DataType::kUint16;
    if constexpr (sizeof(T) == 4) return kSigned ? DataType::kInt32 : DataType::kUint32;
    if constexpr (sizeof(T) == 8) return kSigned ? DataType::kInt64 : DataType::kUint64;
  }
}

/// What reduces vectors of T: an operation of the library on types that it knows, or a function for T.
template <typename Op, typename T>
concept ReductionOf = (Element<T> && std::same_as<Op, ReduceOp>) || std::same_as<Op, UserOp<T>>;

/// How a communicator is made. An empty string means: from the environment (HIPS_TOPO, HIPS_ALGORITHM,
/// HIPS_PATTERN), else the default.
struct CommunicatorOptions {
  std::string topology{};   ///< "bcube:3,1"; default: one switch that connects all ranks
  std::string algorithm{};  ///< default: chosen by size
  std::string pattern{};    ///< "mesh,ring"; default: chosen by size on switches, ring on cables
  std::string name{};       ///< in logs
  ThreadMode thread_mode = ThreadMode::kSerialized;  ///< split() and duplicate() pass it on
  /// Of a communicator that has some of the ranks of a job: this rank's number in the job, and how many there are. It is
  /// planned on the part of the topology that its ranks occupy. 0, 0: it has them all.
  Rank job_rank = 0, job_size = 0;
  std::chrono::milliseconds timeout{0};  ///< longest time that a call may wait; 0: HIPS_TIMEOUT, or no limit
};

/// How the ranks find each other when neither the environment nor MPI says it.
struct CommunicatorBootstrap {
  int rank = 0;
  int size = 1;
  /// Every rank gives `send`; `receive` takes size * send.size() bytes, in rank order. May throw.
  std::function<void(std::span<const std::byte> send, std::span<std::byte> receive)> allgather{};
};

/// A group of ranks that reduce together: an MPI-like communicator. This class is a thin header-only layer on
/// the C API, so that program and library need not share a C++ runtime.
///
/// **Who owns which buffer until which event**
///
/// - Inputs (`in`): the call reads them, and nobody writes them. They may be overwritten once it is complete.
/// - Outputs (`out`, `inout`, `buffer`): the call reads and writes them, in any order. Afterwards they hold
///   the result, or undefined values when the call threw.
/// - The buffers of a Request belong to it until test() or wait() says that the call is complete.
/// - Strings of Options, and counts of sections, are copied.
/// - What the function of Bootstrap refers to is used until create() returns.
///
/// **Buffers** may be passed as they are, and the element type is deduced: std::vector, std::array, C arrays,
/// RegisteredBuffer, spans. The forms that take `T` explicitly, as allreduce<float>(in, out, op), also take
/// what converts to a span.
///
/// Right:
///
///     hips::Communicator comm = hips::Communicator::from_environment({.topology = "bcube:3,1"});
///     std::vector<float> gradient = ...;
///     comm.allreduce(gradient, hips::ReduceOp::kSum);
///     gradient.clear();  // the call has returned: no rank reads it any more
///
/// Wrong:
///
///     std::span<float> all(gradient);
///     comm.allreduce(all.first(600), all.last(600), hips::ReduceOp::kSum);
///     // gradient has 1000 elements: input and output overlap in 200. Throws kInvalidArgument on this rank,
///     // and the call did not take place: the other ranks wait for the next call of this one.
///
/// Threads  one call at a time on a communicator; different communicators from different threads at once.
/// Errors   throws Error. One that is found before a call begins, as kInvalidArgument, leaves the
///          communicator as it was. Any other has failed the communicator: each later call throws the same
///          error, on every rank. hips.h says which is which, at hips_status_t. Error::status() has the rank
///          at fault.
class Communicator {
 public:
  using Options = CommunicatorOptions;
  using Bootstrap = CommunicatorBootstrap;

  /// Makes a communicator of the ranks that HIPS_RANK, HIPS_SIZE and HIPS_ROOT=host:port describe, or the
  /// variables of torchrun. Collective.
  ///
  /// Errors   kTimeout: a rank did not come within a minute, or HIPS_TIMEOUT. Otherwise as create().
  static Communicator from_environment(const Options& options = {}) { return make(options, nullptr); }

  /// Makes a communicator of the ranks of `bootstrap`, which is used only until this returns. Collective.
  ///
  /// Errors   every error reaches every rank. kInvalidArgument: a malformed topology, or one of another size.
  ///          kMismatch: the ranks' settings differ. kUnsupported: no transport reaches a peer, or the
  ///          algorithm does not run on this topology.
  static Communicator create(const Bootstrap& bootstrap, const Options& options = {}) {
    hips_bootstrap_t callbacks{};
    callbacks.struct_size = sizeof callbacks;
    callbacks.rank = bootstrap.rank;
    callbacks.size = bootstrap.size;
    callbacks.context = const_cast<Bootstrap*>(&bootstrap);
    callbacks.allgather = [](void* context, const void* send, void* receive, std::size_t bytes) noexcept {
      const auto& ranks = *static_cast<const Bootstrap*>(context);
      try {
        ranks.allgather({static_cast<const std::byte*>(send), bytes},
                        {static_cast<std::byte*>(receive), bytes * static_cast<std::size_t>(ranks.size)});
        return 0;
      } catch (...) {
        // No exception may pass through C; create() then throws kSystem.
        return 1;
      }
    };
    return make(options, &callbacks);
  }

  /// Takes a communicator of the C API over, such as one of hips_comm_create_mpi().
  [[nodiscard]] static Communicator adopt(hips_comm_t comm) { return Communicator(comm); }

  Communicator(Communicator&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
  /// Destroys the old communicator at once, as the destructor does.
  Communicator& operator=(Communicator&& other) noexcept {
    if (this != &other) (void)hips_comm_destroy(std::exchange(comm_, std::exchange(other.comm_, nullptr)));
    return *this;
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Leaves: peers that still need data of this rank get kPeerLost. Waits for nobody. Requests stay valid,
  /// and the communicator leaves when the last of them has ended.
  ~Communicator() { (void)hips_comm_destroy(comm_); }

  /// Makes a communicator of the ranks that pass the same color, ordered by key, then by rank here; planned
  /// on what they occupy of the topology. Empty for HIPS_UNDEFINED. Collective.
  ///
  /// Errors   as create(), on all ranks of a color alike.
  [[nodiscard]] std::optional<Communicator> split(int color, int key = 0) {
    hips_comm_t newcomm = nullptr;
    throw_if_failed(hips_comm_split(comm_, color, key, &newcomm));
    if (newcomm == nullptr) return std::nullopt;
    return Communicator(newcomm);
  }
  /// Makes another communicator of the same ranks and plans. Collective. Errors as create().
  [[nodiscard]] Communicator duplicate() {
    hips_comm_t newcomm = nullptr;
    throw_if_failed(hips_comm_dup(comm_, &newcomm));
    return Communicator(newcomm);
  }

  /// Makes a communicator of the ranks that have neither died nor destroyed this one, in their order, planned on what they occupy of
  /// the topology. Collective over them, once this one has failed; it stays failed. Ranks that die meanwhile are left out, too.
  ///
  /// Errors   as create(), on all ranks. kTimeout: a rank that is left has not called it within HIPS_TIMEOUT.
  [[nodiscard]] Communicator shrink() {
    hips_comm_t newcomm = nullptr;
    throw_if_failed(hips_comm_shrink(comm_, &newcomm));
    return Communicator(newcomm);
  }

  /// Ends the calls on all ranks: a blocked or outstanding one, and every later one, throws kAborted with
  /// this rank and `text`. The communicator stays failed. Without effect when it has failed before.
  ///
  /// Threads  any, also while another thread is in a call on this communicator.
  void abort(const std::string& text) { throw_if_failed(hips_comm_abort(comm_, text.c_str())); }

  [[nodiscard]] Rank rank() const {
    int rank = 0;
    throw_if_failed(hips_comm_rank(comm_, &rank));
    return rank;
  }
  [[nodiscard]] Rank size() const {
    int size = 0;
    throw_if_failed(hips_comm_size(comm_, &size));
    return size;
  }
  /// "HiPS, 2 lanes, mesh on both levels on BCube(3,1); shm; emulated: 9 servers on 1 node"
  [[nodiscard]] std::string describe() const { return hips_comm_describe(comm_); }

  /// out[i] = op over all ranks of in[i]. Blocks. Bitwise the same on all ranks. `op` is a ReduceOp or, as in
  /// all reductions, a UserOp<T>.
  ///
  /// Shapes   in and out: the same number of elements, on every rank; they do not overlap, or are the same.
  /// Errors   kInvalidArgument: sizes differ, the buffers overlap in part, or a bitwise or logical operation
  ///          on a floating type; the call did not take place.
  template <typename T, ReductionOf<T> Op>
  void allreduce(std::span<const T> in, std::span<T> out, const Op& op) {
    throw_if_failed(
        hips_allreduce(check_sizes(in, out).data(), out.data(), in.size(), type_of<T>(), op_of(op), comm_));
  }
  template <typename In, typename Out, ReductionOf<ElementOf<Out>> Op>
  requires detail::DeducedBuffers<In, Out>
  void allreduce(In&& in, Out&& out, const Op& op) {
    allreduce<ElementOf<Out>>(detail::input(in), detail::output(out), op);
  }

  /// inout[i] = op over all ranks of inout[i]. Blocks. Bitwise the same on all ranks.
  template <typename T, ReductionOf<T> Op>
  void allreduce(std::span<T> inout, const Op& op) {
    throw_if_failed(
        hips_allreduce(HIPS_IN_PLACE, inout.data(), inout.size(), type_of<T>(), op_of(op), comm_));
  }
  template <detail::DeducedOutput Out, ReductionOf<ElementOf<Out>> Op>
  void allreduce(Out&& inout, const Op& op) {
    allreduce<ElementOf<Out>>(detail::output(inout), op);
  }

  /// allreduce() of each of many vectors, in place, as one call: small ones are packed together, several
  /// calls are outstanding at once, the lowest priority number first and, when there are none or equal ones,
  /// the first of the list. Blocks until all results are there.
  ///
  /// Shapes   as many vectors, of the same lengths and priorities, on every rank; no priorities, or one each.
  /// Errors   as allreduce(); names the vector. An error that comes up later leaves all outputs undefined.
  /// Example  std::vector<std::vector<float>> gradients = ...; comm.allreduce_coalesced(gradients, op);
  template <typename T, ReductionOf<T> Op>
  void allreduce_coalesced(std::span<const std::span<T>> vectors, const Op& op,
                           std::span<const std::int32_t> priorities = {}) {
    const std::vector<hips_buffer_t> list = buffers_of<T>("allreduce_coalesced", vectors, priorities);
    throw_if_failed(hips_allreduce_coalesced(list.data(), list.size(), op_of(op), comm_));
  }
  template <detail::DeducedVectors Vectors, ReductionOf<detail::ElementOfVectors<Vectors>> Op>
  void allreduce_coalesced(Vectors&& vectors, const Op& op, std::span<const std::int32_t> priorities = {}) {
    using T = detail::ElementOfVectors<Vectors>;
    const std::vector<hips_buffer_t> list = buffers_of<T>("allreduce_coalesced", vectors, priorities);
    throw_if_failed(hips_allreduce_coalesced(list.data(), list.size(), op_of(op), comm_));
  }

  /// Starts out[i] = op over all ranks of in[i], and returns; Request::wait() ends it. Until then the buffers
  /// belong to the call. Calls take place in the order in which they were started, blocking ones among them.
  ///
  /// Errors   as allreduce(); the request throws what is found out later.
  template <typename T, ReductionOf<T> Op>
  [[nodiscard]] Request iallreduce(std::span<const T> in, std::span<T> out, const Op& op) {
    return request(hips_iallreduce, check_sizes(in, out).data(), out, op);
  }
  template <typename In, typename Out, ReductionOf<ElementOf<Out>> Op>
  requires detail::DeducedBuffers<In, Out>
  [[nodiscard]] Request iallreduce(In&& in, Out&& out, const Op& op) {
    return iallreduce<ElementOf<Out>>(detail::input(in), detail::output(out), op);
  }
  template <typename T, ReductionOf<T> Op>
  [[nodiscard]] Request iallreduce(std::span<T> inout, const Op& op) {
    return request(hips_iallreduce, HIPS_IN_PLACE, inout, op);
  }
  template <detail::DeducedOutput Out, ReductionOf<ElementOf<Out>> Op>
  [[nodiscard]] Request iallreduce(Out&& inout, const Op& op) {
    return iallreduce<ElementOf<Out>>(detail::output(inout), op);
  }

  /// Starts allreduce_coalesced(), and returns. The list is copied; memory for all small vectors together
  /// belongs to the request until it ends.
  template <typename T, ReductionOf<T> Op>
  [[nodiscard]] Request iallreduce_coalesced(std::span<const std::span<T>> vectors, const Op& op,
                                             std::span<const std::int32_t> priorities = {}) {
    return coalesced<T>(vectors, op, priorities);
  }
  template <detail::DeducedVectors Vectors, ReductionOf<detail::ElementOfVectors<Vectors>> Op>
  [[nodiscard]] Request iallreduce_coalesced(Vectors&& vectors, const Op& op,
                                             std::span<const std::int32_t> priorities = {}) {
    return coalesced<detail::ElementOfVectors<Vectors>>(vectors, op, priorities);
  }

  /// Makes a persistent request: Request::start() starts its call, any number of times. Local; what depends
  /// on the arguments is decided here.
  template <typename T, ReductionOf<T> Op>
  [[nodiscard]] Request allreduce_init(std::span<const T> in, std::span<T> out, const Op& op) {
    return request(hips_allreduce_init, check_sizes(in, out).data(), out, op);
  }
  template <typename In, typename Out, ReductionOf<ElementOf<Out>> Op>
  requires detail::DeducedBuffers<In, Out>
  [[nodiscard]] Request allreduce_init(In&& in, Out&& out, const Op& op) {
    return allreduce_init<ElementOf<Out>>(detail::input(in), detail::output(out), op);
  }
  template <typename T, ReductionOf<T> Op>
  [[nodiscard]] Request allreduce_init(std::span<T> inout, const Op& op) {
    return request(hips_allreduce_init, HIPS_IN_PLACE, inout, op);
  }
  template <detail::DeducedOutput Out, ReductionOf<ElementOf<Out>> Op>
  [[nodiscard]] Request allreduce_init(Out&& inout, const Op& op) {
    return allreduce_init<ElementOf<Out>>(detail::output(inout), op);
  }

  // ---- The other collectives. Each also exists as i...(), which starts it and gives a Request, and as
  // ..._init(), which makes a persistent request. All ranks make the same call with the same counts and root;
  // what hips.h says of each holds here. A call is in place when input and output are the same memory.

  /// out = section rank() of the reduction of `in` over all ranks.
  ///
  /// Shapes   in: size() sections of out.size() elements each. In place: `in` begins where `out` does.
  template <typename T, ReductionOf<T> Op>
  void reduce_scatter_block(std::span<const T> in, std::span<T> out, const Op& op) {
    check_sections("reduce_scatter_block", in.size(), out.size());
    throw_if_failed(hips_reduce_scatter_block(scattered(in, out), out.data(), out.size(), type_of<T>(),
                                              op_of(op), comm_));
  }
  template <typename In, typename Out, ReductionOf<ElementOf<Out>> Op>
  requires detail::DeducedBuffers<In, Out>
  void reduce_scatter_block(In&& in, Out&& out, const Op& op) {
    reduce_scatter_block<ElementOf<Out>>(detail::input(in), detail::output(out), op);
  }
  template <typename T, ReductionOf<T> Op>
  [[nodiscard]] Request ireduce_scatter_block(std::span<const T> in, std::span<T> out, const Op& op) {
    check_sections("reduce_scatter_block", in.size(), out.size());
    return made(hips_ireduce_scatter_block, scattered(in, out), out.data(), out.size(), type_of<T>(),
                op_of(op));
  }
  template <typename In, typename Out, ReductionOf<ElementOf<Out>> Op>
  requires detail::DeducedBuffers<In, Out>
  [[nodiscard]] Request ireduce_scatter_block(In&& in, Out&& out, const Op& op) {
    return ireduce_scatter_block<ElementOf<Out>>(detail::input(in), detail::output(out), op);
  }
  template <typename T, ReductionOf<T> Op>
  [[nodiscard]] Request reduce_scatter_block_init(std::span<const T> in, std::span<T> out, const Op& op) {
    check_sections("reduce_scatter_block", in.size(), out.size());
    return made(hips_reduce_scatter_block_init, scattered(in, out), out.data(), out.size(), type_of<T>(),
                op_of(op));
  }
  template <typename In, typename Out, ReductionOf<ElementOf<Out>> Op>
  requires detail::DeducedBuffers<In, Out>
  [[nodiscard]] Request reduce_scatter_block_init(In&& in, Out&& out, const Op& op) {
    return reduce_scatter_block_init<ElementOf<Out>>(detail::input(in), detail::output(out), op);
  }

  /// The same with a length for each section.
  ///
  /// Shapes   counts: one for each rank; in: their sum; out: counts[rank()].
  template <typename T, ReductionOf<T> Op>
  void reduce_scatter(std::span<const T> in, std::span<T> out, std::span<const std::uint64_t> counts,
                      const Op& op) {
    check_counts("reduce_scatter", counts, in.size(), out.size());
    throw_if_failed(
        hips_reduce_scatter(scattered(in, out), out.data(), counts.data(), type_of<T>(), op_of(op), comm_));
  }
  template <typename In, typename Out, ReductionOf<ElementOf<Out>> Op>
  requires detail::DeducedBuffers<In, Out>
  void reduce_scatter(In&& in, Out&& out, std::span<const std::uint64_t> counts, const Op& op) {
    reduce_scatter<ElementOf<Out>>(detail::input(in), detail::output(out), counts, op);
  }
  template <typename T, ReductionOf<T> Op>
  [[nodiscard]] Request ireduce_scatter(std::span<const T> in, std::span<T> out,
                                        std::span<const std::uint64_t> counts, const Op& op) {
    check_counts("reduce_scatter", counts, in.size(), out.size());
    return made(hips_ireduce_scatter, scattered(in, out), out.data(), counts.data(), type_of<T>(), op_of(op));
  }
  template <typename In, typename Out, ReductionOf<ElementOf<Out>> Op>
  requires detail::DeducedBuffers<In, Out>
  [[nodiscard]] Request ireduce_scatter(In&& in, Out&& out, std::span<const std::uint64_t> counts,
                                        const Op& op) {
    return ireduce_scatter<ElementOf<Out>>(detail::input(in), detail::output(out), counts, op);
  }
  template <typename T, ReductionOf<T> Op>
  [[nodiscard]] Request reduce_scatter_init(std::span<const T> in, std::span<T> out,
                                            std::span<const std::uint64_t> counts, const Op& op) {
    check_counts("reduce_scatter", counts, in.size(), out.size());
    return made(hips_reduce_scatter_init, scattered(in, out), out.data(), counts.data(), type_of<T>(),
                op_of(op));
  }
  template <typename In, typename Out, ReductionOf<ElementOf<Out>> Op>
  requires detail::DeducedBuffers<In, Out>
  [[nodiscard]] Request reduce_scatter_init(In&& in, Out&& out, std::span<const std::uint64_t> counts,
                                            const Op& op) {
    return reduce_scatter_init<ElementOf<Out>>(detail::input(in), detail::output(out), counts, op);
  }

  /// out = `in` of all ranks, in rank order.
  ///
  /// Shapes   out: size() times in.size() elements of any plain data. In place: `in` is this rank's section of
  ///          `out`.
  template <PlainData T>
  void allgather(std::span<const T> in, std::span<T> out) {
    check_sections("allgather", out.size(), in.size());
    throw_if_failed(
        hips_allgather(gathered(in, out, in.size() * self()), out.data(), in.size(), type_of<T>(), comm_));
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  void allgather(In&& in, Out&& out) { allgather<ElementOf<Out>>(detail::input(in), detail::output(out)); }
  template <PlainData T>
  [[nodiscard]] Request iallgather(std::span<const T> in, std::span<T> out) {
    check_sections("allgather", out.size(), in.size());
    return made(hips_iallgather, gathered(in, out, in.size() * self()), out.data(), in.size(), type_of<T>());
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  [[nodiscard]] Request iallgather(In&& in, Out&& out) {
    return iallgather<ElementOf<Out>>(detail::input(in), detail::output(out));
  }
  template <PlainData T>
  [[nodiscard]] Request allgather_init(std::span<const T> in, std::span<T> out) {
    check_sections("allgather", out.size(), in.size());
    return made(hips_allgather_init, gathered(in, out, in.size() * self()), out.data(), in.size(),
                type_of<T>());
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  [[nodiscard]] Request allgather_init(In&& in, Out&& out) {
    return allgather_init<ElementOf<Out>>(detail::input(in), detail::output(out));
  }

  /// The same with a length for each section, one after the other.
  ///
  /// Shapes   counts: one for each rank; in: counts[rank()]; out: their sum.
  template <PlainData T>
  void allgatherv(std::span<const T> in, std::span<T> out, std::span<const std::uint64_t> counts) {
    check_counts("allgatherv", counts, out.size(), in.size());
    throw_if_failed(hips_allgatherv(gathered(in, out, before(counts)), out.data(), counts.data(), nullptr,
                                    type_of<T>(), comm_));
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  void allgatherv(In&& in, Out&& out, std::span<const std::uint64_t> counts) {
    allgatherv<ElementOf<Out>>(detail::input(in), detail::output(out), counts);
  }
  template <PlainData T>
  [[nodiscard]] Request iallgatherv(std::span<const T> in, std::span<T> out,
                                    std::span<const std::uint64_t> counts) {
    check_counts("allgatherv", counts, out.size(), in.size());
    return made(hips_iallgatherv, gathered(in, out, before(counts)), out.data(), counts.data(),
                static_cast<const std::uint64_t*>(nullptr), type_of<T>());
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  [[nodiscard]] Request iallgatherv(In&& in, Out&& out, std::span<const std::uint64_t> counts) {
    return iallgatherv<ElementOf<Out>>(detail::input(in), detail::output(out), counts);
  }
  template <PlainData T>
  [[nodiscard]] Request allgatherv_init(std::span<const T> in, std::span<T> out,
                                        std::span<const std::uint64_t> counts) {
    check_counts("allgatherv", counts, out.size(), in.size());
    return made(hips_allgatherv_init, gathered(in, out, before(counts)), out.data(), counts.data(),
                static_cast<const std::uint64_t*>(nullptr), type_of<T>());
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  [[nodiscard]] Request allgatherv_init(In&& in, Out&& out, std::span<const std::uint64_t> counts) {
    return allgatherv_init<ElementOf<Out>>(detail::input(in), detail::output(out), counts);
  }

  /// buffer = buffer of `root`. Shapes: the same number of elements, of any plain data, on all ranks.
  template <PlainData T>
  void bcast(std::span<T> buffer, Rank root) {
    throw_if_failed(hips_bcast(buffer.data(), buffer.size(), type_of<T>(), root, comm_));
  }
  template <detail::DeducedOutput Out>
  requires PlainData<ElementOf<Out>>
  void bcast(Out&& buffer, Rank root) { bcast<ElementOf<Out>>(detail::output(buffer), root); }
  template <PlainData T>
  [[nodiscard]] Request ibcast(std::span<T> buffer, Rank root) {
    return made(hips_ibcast, buffer.data(), buffer.size(), type_of<T>(), root);
  }
  template <detail::DeducedOutput Out>
  requires PlainData<ElementOf<Out>>
  [[nodiscard]] Request ibcast(Out&& buffer, Rank root) {
    return ibcast<ElementOf<Out>>(detail::output(buffer), root);
  }
  template <PlainData T>
  [[nodiscard]] Request bcast_init(std::span<T> buffer, Rank root) {
    return made(hips_bcast_init, buffer.data(), buffer.size(), type_of<T>(), root);
  }
  template <detail::DeducedOutput Out>
  requires PlainData<ElementOf<Out>>
  [[nodiscard]] Request bcast_init(Out&& buffer, Rank root) {
    return bcast_init<ElementOf<Out>>(detail::output(buffer), root);
  }

  /// out = op over all ranks of `in`, on `root`. Shapes: `out` may be empty on the other ranks.
  template <typename T, ReductionOf<T> Op>
  void reduce(std::span<const T> in, std::span<T> out, const Op& op, Rank root) {
    throw_if_failed(
        hips_reduce(reduced(in, out, root), out.data(), in.size(), type_of<T>(), op_of(op), root, comm_));
  }
  template <typename In, typename Out, ReductionOf<ElementOf<Out>> Op>
  requires detail::DeducedBuffers<In, Out>
  void reduce(In&& in, Out&& out, const Op& op, Rank root) {
    reduce<ElementOf<Out>>(detail::input(in), detail::output(out), op, root);
  }
  template <typename T, ReductionOf<T> Op>
  [[nodiscard]] Request ireduce(std::span<const T> in, std::span<T> out, const Op& op, Rank root) {
    return made(hips_ireduce, reduced(in, out, root), out.data(), in.size(), type_of<T>(), op_of(op), root);
  }
  template <typename In, typename Out, ReductionOf<ElementOf<Out>> Op>
  requires detail::DeducedBuffers<In, Out>
  [[nodiscard]] Request ireduce(In&& in, Out&& out, const Op& op, Rank root) {
    return ireduce<ElementOf<Out>>(detail::input(in), detail::output(out), op, root);
  }
  template <typename T, ReductionOf<T> Op>
  [[nodiscard]] Request reduce_init(std::span<const T> in, std::span<T> out, const Op& op, Rank root) {
    return made(hips_reduce_init, reduced(in, out, root), out.data(), in.size(), type_of<T>(), op_of(op),
                root);
  }
  template <typename In, typename Out, ReductionOf<ElementOf<Out>> Op>
  requires detail::DeducedBuffers<In, Out>
  [[nodiscard]] Request reduce_init(In&& in, Out&& out, const Op& op, Rank root) {
    return reduce_init<ElementOf<Out>>(detail::input(in), detail::output(out), op, root);
  }

  /// out = `in` of all ranks, in rank order, on `root`.
  ///
  /// Shapes   out: size() times in.size() elements of any plain data; may be empty on the other ranks. In place, on the root:
  ///          `in` is its section of `out`.
  template <PlainData T>
  void gather(std::span<const T> in, std::span<T> out, Rank root) {
    if (self() == static_cast<std::size_t>(root)) check_sections("gather", out.size(), in.size());
    throw_if_failed(hips_gather(
        self() == static_cast<std::size_t>(root) ? gathered(in, out, in.size() * self()) : in.data(),
        out.data(), in.size(), type_of<T>(), root, comm_));
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  void gather(In&& in, Out&& out, Rank root) {
    gather<ElementOf<Out>>(detail::input(in), detail::output(out), root);
  }
  template <PlainData T>
  [[nodiscard]] Request igather(std::span<const T> in, std::span<T> out, Rank root) {
    if (self() == static_cast<std::size_t>(root)) check_sections("gather", out.size(), in.size());
    return made(hips_igather,
                self() == static_cast<std::size_t>(root) ? gathered(in, out, in.size() * self()) : in.data(),
                out.data(), in.size(), type_of<T>(), root);
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  [[nodiscard]] Request igather(In&& in, Out&& out, Rank root) {
    return igather<ElementOf<Out>>(detail::input(in), detail::output(out), root);
  }
  template <PlainData T>
  [[nodiscard]] Request gather_init(std::span<const T> in, std::span<T> out, Rank root) {
    if (self() == static_cast<std::size_t>(root)) check_sections("gather", out.size(), in.size());
    return made(hips_gather_init,
                self() == static_cast<std::size_t>(root) ? gathered(in, out, in.size() * self()) : in.data(),
                out.data(), in.size(), type_of<T>(), root);
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  [[nodiscard]] Request gather_init(In&& in, Out&& out, Rank root) {
    return gather_init<ElementOf<Out>>(detail::input(in), detail::output(out), root);
  }

  /// out = section rank() of `in` of `root`.
  ///
  /// Shapes   in: size() sections of out.size() elements each, of any plain data; may be empty on the other ranks. The root may
  ///          pass its section of `in` as `out`, which then stays as it is.
  template <PlainData T>
  void scatter(std::span<const T> in, std::span<T> out, Rank root) {
    if (self() == static_cast<std::size_t>(root)) check_sections("scatter", in.size(), out.size());
    throw_if_failed(hips_scatter(in.data(), out.data(), out.size(), type_of<T>(), root, comm_));
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  void scatter(In&& in, Out&& out, Rank root) {
    scatter<ElementOf<Out>>(detail::input(in), detail::output(out), root);
  }
  template <PlainData T>
  [[nodiscard]] Request iscatter(std::span<const T> in, std::span<T> out, Rank root) {
    if (self() == static_cast<std::size_t>(root)) check_sections("scatter", in.size(), out.size());
    return made(hips_iscatter, in.data(), out.data(), out.size(), type_of<T>(), root);
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  [[nodiscard]] Request iscatter(In&& in, Out&& out, Rank root) {
    return iscatter<ElementOf<Out>>(detail::input(in), detail::output(out), root);
  }
  template <PlainData T>
  [[nodiscard]] Request scatter_init(std::span<const T> in, std::span<T> out, Rank root) {
    if (self() == static_cast<std::size_t>(root)) check_sections("scatter", in.size(), out.size());
    return made(hips_scatter_init, in.data(), out.data(), out.size(), type_of<T>(), root);
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  [[nodiscard]] Request scatter_init(In&& in, Out&& out, Rank root) {
    return scatter_init<ElementOf<Out>>(detail::input(in), detail::output(out), root);
  }

  /// out = section rank() of `in` of all ranks, in rank order.
  ///
  /// Shapes   in and out: the same number of elements of any plain data, a multiple of size(); they do not overlap.
  template <PlainData T>
  void alltoall(std::span<const T> in, std::span<T> out) {
    check_sections("alltoall", in.size(), in.size() / static_cast<std::size_t>(size()));
    (void)check_sizes(in, out);
    throw_if_failed(hips_alltoall(in.data(), out.data(), in.size() / static_cast<std::size_t>(size()),
                                  type_of<T>(), comm_));
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  void alltoall(In&& in, Out&& out) { alltoall<ElementOf<Out>>(detail::input(in), detail::output(out)); }
  template <PlainData T>
  [[nodiscard]] Request ialltoall(std::span<const T> in, std::span<T> out) {
    check_sections("alltoall", in.size(), in.size() / static_cast<std::size_t>(size()));
    (void)check_sizes(in, out);
    return made(hips_ialltoall, in.data(), out.data(), in.size() / static_cast<std::size_t>(size()),
                type_of<T>());
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  [[nodiscard]] Request ialltoall(In&& in, Out&& out) {
    return ialltoall<ElementOf<Out>>(detail::input(in), detail::output(out));
  }
  template <PlainData T>
  [[nodiscard]] Request alltoall_init(std::span<const T> in, std::span<T> out) {
    check_sections("alltoall", in.size(), in.size() / static_cast<std::size_t>(size()));
    (void)check_sizes(in, out);
    return made(hips_alltoall_init, in.data(), out.data(), in.size() / static_cast<std::size_t>(size()),
                type_of<T>());
  }
  template <typename In, typename Out>
  requires detail::DeducedBuffers<In, Out> && PlainData<ElementOf<Out>>
  [[nodiscard]] Request alltoall_init(In&& in, Out&& out) {
    return alltoall_init<ElementOf<Out>>(detail::input(in), detail::output(out));
  }

  /// Returns once every rank has called it.
  void barrier() { throw_if_failed(hips_barrier(comm_)); }
  [[nodiscard]] Request ibarrier() { return made(hips_ibarrier); }
  [[nodiscard]] Request barrier_init() { return made(hips_barrier_init); }

  /// For calls of the C API; still owned by this object.
  [[nodiscard]] hips_comm_t handle() const { return comm_; }

 private:
  explicit Communicator(hips_comm_t comm) : comm_(comm) {}

  static Communicator make(const Options& options, const hips_bootstrap_t* bootstrap) {
    const auto text = [](const std::string& value) { return value.empty() ? nullptr : value.c_str(); };
    hips_comm_config_t config = HIPS_COMM_CONFIG_INIT;
    config.topology = text(options.topology);
    config.algorithm = text(options.algorithm);
    config.pattern = text(options.pattern);
    config.name = text(options.name);
    config.thread_mode = static_cast<int>(options.thread_mode);
    config.job_rank = options.job_rank;
    config.job_size = options.job_size;
    config.timeout_ms = options.timeout.count();
    hips_comm_t comm = nullptr;
    throw_if_failed(hips_comm_create(&config, bootstrap, &comm));
    return Communicator(comm);
  }

  template <typename T>
  static std::span<const T> check_sizes(std::span<const T> in, std::span<T> out) {
    return check_sizes_of("allreduce", in, out);
  }
  template <typename T>
  static std::span<const T> check_sizes_of(const char* call, std::span<const T> in, std::span<T> out) {
    if (in.size() != out.size())
      refuse(call, "input has " + std::to_string(in.size()) + " elements, output " +
                       std::to_string(out.size()) + "; give both the same");
    return in;
  }

  template <typename T, typename Vectors>
  static std::vector<hips_buffer_t> buffers_of(const char* call, Vectors&& vectors,
                                               std::span<const std::int32_t> priorities) {
    const std::size_t num = std::ranges::size(vectors);
    if (!priorities.empty() && priorities.size() != num)
      refuse(call, std::to_string(num) + " vectors, but " + std::to_string(priorities.size()) +
                       " priorities; give none, or one for each vector");
    std::vector<hips_buffer_t> list;
    list.reserve(num);
    for (auto&& vector : vectors) {
      const std::int32_t priority = priorities.empty() ? 0 : priorities[list.size()];
      list.push_back(
          {HIPS_IN_PLACE, std::ranges::data(vector), std::ranges::size(vector), type_of<T>(), priority});
    }
    return list;
  }

  template <typename T, typename Vectors, typename Op>
  Request coalesced(Vectors&& vectors, const Op& op, std::span<const std::int32_t> priorities) {
    const std::vector<hips_buffer_t> list = buffers_of<T>("iallreduce_coalesced", vectors, priorities);
    return made(hips_iallreduce_coalesced, list.data(), list.size(), op_of(op));
  }

  template <typename T, typename Op>
  Request request(decltype(&hips_iallreduce) make_it, const void* in, std::span<T> out, const Op& op) {
    hips_request_t made = nullptr;
    throw_if_failed(make_it(in, out.data(), out.size(), type_of<T>(), op_of(op), comm_, &made));
    return Request(made);
  }

  template <typename T>
  static constexpr hips_type_t type_of() {
    if constexpr (Element<T>) {
      return static_cast<hips_type_t>(data_type_of<T>());
    } else {
      return static_cast<hips_type_t>(bytes_type(sizeof(T)));
    }
  }
  static constexpr hips_op_t op_of(ReduceOp op) { return static_cast<hips_op_t>(op); }
  template <typename T>
  static hips_op_t op_of(const UserOp<T>& op) {
    return op.handle();
  }
  [[nodiscard]] std::size_t self() const { return static_cast<std::size_t>(rank()); }
  [[nodiscard]] std::size_t before(std::span<const std::uint64_t> counts) const {
    return std::accumulate(counts.begin(), counts.begin() + rank(), std::size_t{0});
  }

  [[noreturn]] static void refuse(const char* call, const std::string& text) {
    throw Error(Status::error(Code::kInvalidArgument, std::string(call) + ": " + text));
  }
  /// `whole` elements are a section of `one` for each rank.
  void check_sections(const char* call, std::size_t whole, std::size_t one) const {
    const auto ranks = static_cast<std::size_t>(size());
    if (one * ranks != whole)
      refuse(call, std::to_string(whole) + " elements are not " + std::to_string(one) + " for each of " +
                       std::to_string(ranks) + " ranks");
  }
  void check_counts(const char* call, std::span<const std::uint64_t> counts, std::size_t whole,
                    std::size_t one) const {
    const auto ranks = static_cast<std::size_t>(size());
    if (counts.size() != ranks)
      refuse(call, std::to_string(counts.size()) + " counts; give one for each of " + std::to_string(ranks) +
                       " ranks");
    const std::uint64_t sum = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    if (sum != whole || counts[self()] != one)
      refuse(call, "counts of " + std::to_string(sum) + " in all and " + std::to_string(counts[self()]) +
                       " here, but the buffers have " + std::to_string(whole) + " and " +
                       std::to_string(one) + " elements");
  }

  // The same memory means in place.
  template <typename T>
  static const void* scattered(std::span<const T> in, std::span<T> out) {
    return in.data() == out.data() ? HIPS_IN_PLACE : in.data();
  }
  template <typename T>
  static const void* gathered(std::span<const T> in, std::span<T> out, std::size_t place) {
    return in.data() == out.data() + place ? HIPS_IN_PLACE : in.data();
  }
  template <typename T>
  const void* reduced(std::span<const T> in, std::span<T> out, Rank root) const {
    if (rank() != root) return in.data();
    (void)check_sizes_of("reduce", in, out);
    return in.data() == out.data() ? HIPS_IN_PLACE : in.data();
  }

  template <typename Make, typename... Args>
  Request made(Make make_it, Args... args) {
    hips_request_t request = nullptr;
    throw_if_failed(make_it(args..., comm_, &request));
    return Request(request);
  }

  hips_comm_t comm_ = nullptr;
};

}  // namespace hips

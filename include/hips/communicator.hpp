#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <hips/hips.h>
#include <hips/half.hpp>
#include <hips/request.hpp>
#include <hips/status.hpp>
#include <hips/types.hpp>

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

/// What a communicator is made of. An empty string means: from the environment (HIPS_TOPO, HIPS_ALGORITHM,
/// HIPS_PATTERN), else the default.
struct CommunicatorOptions {
  std::string topology{};   ///< "bcube:3,1"; default: one switch of all ranks
  std::string algorithm{};  ///< default: by size
  std::string pattern{};    ///< "mesh,ring"; default: by size on switches, ring on cables
  std::string name{};       ///< in logs
};

/// How the ranks find each other, where neither the environment nor MPI says it.
struct CommunicatorBootstrap {
  int rank = 0;
  int size = 1;
  /// Every rank gives `send`; `receive` takes size * send.size() bytes, in rank order. May throw.
  std::function<void(std::span<const std::byte> send, std::span<std::byte> receive)> allgather{};
};

/// A group of ranks that reduce together: an MPI-like communicator. A thin, header-only face of the C API, so
/// that program and library need not share a C++ runtime.
///
/// **Who owns which buffer until which event**
///
/// | buffer | before the call | during the call | after the call returns or throws |
/// |---|---|---|---|
/// | `in` of allreduce(in, out, op) | caller | HiPS reads it; nobody writes | caller: may be overwritten at
/// once | | `out` of allreduce(in, out, op) | caller | HiPS writes it, in any order | caller: holds the
/// result, or garbage when it threw | | `inout` of allreduce(inout, op) | caller | HiPS reads and writes it |
/// caller: holds the result, or garbage when it threw | | strings of Options | caller | copied | caller | |
/// what Bootstrap's functions refer to | caller | HiPS calls them | caller; with `progress`, when the
/// communicator is gone |
///
/// Right:
///
///     hips::Communicator comm = hips::Communicator::from_environment({.topology = "bcube:3,1"});
///     std::vector<float> gradient = ...;
///     comm.allreduce(std::span(gradient), hips::ReduceOp::kSum);
///     gradient.clear();  // the call has returned: no rank reads it any more
///
/// Wrong:
///
///     std::span<float> all(gradient);
///     comm.allreduce<float>(all.first(600), all.last(600), hips::ReduceOp::kSum);
///     // gradient has 1000 elements: input and output overlap in 200. Throws kInvalidArgument on this rank,
///     // and the call did not take place: the others wait for this rank's next one.
///
/// Threads  one call at a time on a communicator; different communicators from different threads at once.
/// Errors   throws Error. After kMismatch, kPeerLost, kAborted or kTimeout the communicator has failed: each
///          later call throws the same, on every rank.
class Communicator {
 public:
  using Options = CommunicatorOptions;
  using Bootstrap = CommunicatorBootstrap;

  /// Of the ranks that HIPS_RANK, HIPS_SIZE and HIPS_ROOT=host:port describe, or torchrun's variables.
  /// Collective.
  ///
  /// Errors   kTimeout: a rank did not come within a minute, or HIPS_TIMEOUT. Else as create().
  static Communicator from_environment(const Options& options = {}) { return make(options, nullptr); }

  /// Of the ranks of `bootstrap`, which is used only until this returns. Collective.
  ///
  /// Errors   every error reaches every rank. kInvalidArgument: a malformed or misfitting topology.
  /// kMismatch:
  ///          the ranks' settings differ. kUnsupported: no way to a peer, or not this algorithm here.
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

  Communicator(Communicator&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
  Communicator& operator=(Communicator&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Says goodbye to the peers; waits for nobody.
  ~Communicator() { (void)hips_comm_destroy(comm_); }

  [[nodiscard]] Rank rank() const {
    int rank = 0;
    check(hips_comm_rank(comm_, &rank));
    return rank;
  }
  [[nodiscard]] Rank size() const {
    int size = 0;
    check(hips_comm_size(comm_, &size));
    return size;
  }
  /// "HiPS, 2 lanes, mesh on both levels on BCube(3,1); shm; emulated: 9 servers on 1 host"
  [[nodiscard]] std::string describe() const { return hips_comm_describe(comm_); }

  /// out[i] = op over all ranks of in[i]. Blocks. Bitwise the same on all ranks.
  ///
  /// Shapes   in and out: the same number of elements, on every rank; they do not overlap, or are the same.
  /// Errors   kInvalidArgument: sizes differ, the buffers overlap in part, or a bitwise or logical operation
  /// on
  ///          a floating type; the call did not take place.
  template <Element T>
  void allreduce(std::span<const T> in, std::span<T> out, ReduceOp op) {
    check(hips_allreduce(check_sizes(in, out).data(), out.data(), in.size(),
                         static_cast<hips_type_t>(data_type_of<T>()), static_cast<hips_op_t>(op), comm_));
  }

  /// inout[i] = op over all ranks of inout[i]. Blocks. Bitwise the same on all ranks.
  template <Element T>
  void allreduce(std::span<T> inout, ReduceOp op) {
    check(hips_allreduce(HIPS_IN_PLACE, inout.data(), inout.size(),
                         static_cast<hips_type_t>(data_type_of<T>()), static_cast<hips_op_t>(op), comm_));
  }

  /// Starts out[i] = op over all ranks of in[i], and returns; Request::wait() ends it. Until then the buffers
  /// belong to the call. Calls take place in the order in which they were started, blocking ones among them.
  ///
  /// Errors   as allreduce(); what is found out later is thrown by the request.
  template <Element T>
  [[nodiscard]] Request iallreduce(std::span<const T> in, std::span<T> out, ReduceOp op) {
    return request(hips_iallreduce, check_sizes(in, out).data(), out, op);
  }
  template <Element T>
  [[nodiscard]] Request iallreduce(std::span<T> inout, ReduceOp op) {
    return request(hips_iallreduce, HIPS_IN_PLACE, inout, op);
  }

  /// A call to be started any number of times by Request::start(). Local; decides all that can be decided
  /// once.
  template <Element T>
  [[nodiscard]] Request allreduce_init(std::span<const T> in, std::span<T> out, ReduceOp op) {
    return request(hips_allreduce_init, check_sizes(in, out).data(), out, op);
  }
  template <Element T>
  [[nodiscard]] Request allreduce_init(std::span<T> inout, ReduceOp op) {
    return request(hips_allreduce_init, HIPS_IN_PLACE, inout, op);
  }

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
    hips_comm_t comm = nullptr;
    check(hips_comm_create(&config, bootstrap, &comm));
    return Communicator(comm);
  }

  template <typename T>
  static std::span<const T> check_sizes(std::span<const T> in, std::span<T> out) {
    if (in.size() != out.size())
      throw Error(Status::error(Code::kInvalidArgument,
                                "allreduce: input has " + std::to_string(in.size()) + " elements, output " +
                                    std::to_string(out.size()) + "; give both the same"));
    return in;
  }

  template <typename T>
  Request request(decltype(&hips_iallreduce) make_it, const void* in, std::span<T> out, ReduceOp op) {
    hips_request_t made = nullptr;
    check(make_it(in, out.data(), out.size(), static_cast<hips_type_t>(data_type_of<T>()),
                  static_cast<hips_op_t>(op), comm_, &made));
    return Request(made);
  }

  static void check(hips_status_t status) {
    if (status != HIPS_OK) throw Error(Status::error(static_cast<Code>(status), hips_last_error()));
  }

  hips_comm_t comm_ = nullptr;
};

}  // namespace hips

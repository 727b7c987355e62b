#pragma once

/// A dense model that is trained asynchronously: the C++ API. <hips/ps_model.h> says what it is and what it guarantees.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hips/ps_model.h>
#include <hips/communicator.hpp>
#include <hips/last_error.hpp>
#include <hips/request.hpp>
#include <hips/types.hpp>

namespace hips::ps {

/// A range whose elements end with it.
template <typename R>
concept Temporary = std::ranges::range<R> && !std::ranges::borrowed_range<R>;

/// How a model is made; the same on all ranks.
template <Element T>
struct ModelOptions {
  std::uint64_t count = 0;               ///< elements
  std::span<const T> first{};            ///< values in the beginning; empty: zeros
  std::uint32_t num_shards = 0;          ///< shard s lies on node s; 0: one on each node
  std::uint64_t delay_max = UINT64_MAX;  ///< of an update that is applied
  bool sends_at_once = false;            ///< updates and values are not scheduled
  /// The norms of the groups of updates that the replica of a shard may lack, together: see recover(). Negative: there are no replicas.
  double divergence_max = -1;
};

/// A vector of `T` that all ranks of a communicator fetch and add updates to, without waiting for each other.
///
///     hips::ps::Model<float> model(comm, {.count = weights.size(), .num_shards = 1, .delay_max = 16});
///     model.fetch(weights);
///     for (...) {
///       compute(weights, update);           // the change, such as the gradient times minus the learning rate
///       model.push_fetch(update, weights);  // weights = the model with this and other ranks' updates
///     }
///
/// Shapes   `values`, `update`: `count` elements. `applied`: num_shards() flags, 0 where the part of a shard is handed back; may
///          be empty.
/// Owns     the model; it keeps the communicator. The destructor is collective, and waits for all ranks, but where an
///          exception unwinds the stack.
/// Threads  any number at once; making and destroying: as calls of the communicator.
/// Errors   throws Error: kInvalidArgument where a span has another size. Anything else has failed the model and its
///          communicator, on all ranks.
template <Element T>
class Model {
 public:
  /// A shard: the elements [begin, begin + length).
  struct Shard {
    std::uint64_t begin = 0, length = 0;
  };

  /// Collective.
  Model(const Communicator& comm, const ModelOptions<T>& options) : count_(options.count) {
    hips_ps_model_config_t config = HIPS_PS_MODEL_CONFIG_INIT;
    config.count = options.count;
    config.type = static_cast<hips_type_t>(data_type_of<T>());
    config.num_shards = options.num_shards;
    config.delay_max = options.delay_max;
    config.sends_at_once = options.sends_at_once ? 1 : 0;
    config.divergence_max = options.divergence_max;
    if (!options.first.empty()) {
      check("first", count_, options.first.size());
      config.first = options.first.data();
    }
    throw_if_failed(hips_ps_model_create(comm.handle(), &config, &model_));
  }
  Model(Model&& other) noexcept : model_(std::exchange(other.model_, nullptr)), count_(other.count_) {}
  Model& operator=(Model&& other) noexcept {
    Model taken(std::move(other));
    std::swap(model_, taken.model_);
    std::swap(count_, taken.count_);
    return *this;
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  /// While an exception unwinds the stack this rank may never meet the others, so it aborts the communicator.
  ~Model() {
    if (std::uncaught_exceptions() > exceptions_)
      (void)hips_ps_model_abort(model_, "an exception ended the use of its model");
    else
      (void)hips_ps_model_destroy(model_);
  }

  /// After a rank has died: a model on `comm`, of ranks that are left of this one's (Communicator::shrink()), with the values.
  /// Collective over them. This model has failed then, if it had not before.
  ///
  /// Of a shard whose node is gone, groups of updates that nodes which are gone have sent to it may be missing, of a norm of
  /// divergence_max at most. Versions begin at 0.
  ///
  /// Errors   kPeerLost, on all ranks: another one has died, so shrink again; or a shard is lost, without a replica or with it.
  [[nodiscard]] Model recover(const Communicator& comm) {
    hips_ps_model_t made = nullptr;
    throw_if_failed(hips_ps_model_recover(comm.handle(), model_, &made));
    return Model(made, count_);
  }

  /// values = the model.
  void fetch(std::span<T> values) {
    check("values", count_, values.size());
    throw_if_failed(hips_ps_model_fetch(model_, values.data()));
  }
  /// model += update, which was computed from the values that this rank fetched last.
  void push(std::span<const T> update, std::span<unsigned char> applied = {}) {
    check_update(update, applied);
    throw_if_failed(hips_ps_model_push(model_, update.data(), flags(applied)));
  }
  /// push(), then fetch(). Both spans may be the same.
  void push_fetch(std::span<const T> update, std::span<T> values, std::span<unsigned char> applied = {}) {
    check_update(update, applied);
    check("values", count_, values.size());
    throw_if_failed(hips_ps_model_push_fetch(model_, update.data(), flags(applied), values.data()));
  }

  // Non-blocking: all spans belong to the request until it has ended.
  [[nodiscard]] Request ifetch(std::span<T> values) {
    check("values", count_, values.size());
    return started([&](hips_request_t* r) { return hips_ps_model_ifetch(model_, values.data(), r); });
  }
  [[nodiscard]] Request ipush(std::span<const T> update, std::span<unsigned char> applied = {}) {
    check_update(update, applied);
    return started(
        [&](hips_request_t* r) { return hips_ps_model_ipush(model_, update.data(), flags(applied), r); });
  }
  /// The update belongs to the request, so it is no temporary.
  template <Temporary Update>
  Request ipush(Update&& update, std::span<unsigned char> applied = {}) = delete;
  template <Temporary Update>
  Request ipush_fetch(Update&& update, std::span<T> values, std::span<unsigned char> applied = {}) = delete;
  [[nodiscard]] Request ipush_fetch(std::span<const T> update, std::span<T> values,
                                    std::span<unsigned char> applied = {}) {
    check_update(update, applied);
    check("values", count_, values.size());
    return started([&](hips_request_t* r) {
      return hips_ps_model_ipush_fetch(model_, update.data(), flags(applied), values.data(), r);
    });
  }

  [[nodiscard]] std::uint64_t size() const { return count_; }
  [[nodiscard]] std::uint32_t num_shards() const {
    std::uint32_t num = 0;
    throw_if_failed(hips_ps_model_num_shards(model_, &num));
    return num;
  }
  [[nodiscard]] Shard shard(std::uint32_t number) const {
    Shard shard;
    throw_if_failed(hips_ps_model_shard(model_, number, &shard.begin, &shard.length));
    return shard;
  }
  /// For calls of the C API; still owned by this object.
  [[nodiscard]] hips_ps_model_t handle() const { return model_; }

 private:
  Model(hips_ps_model_t model, std::uint64_t count) : model_(model), count_(count) {}
  template <typename Call>
  static Request started(Call call) {
    hips_request_t request = HIPS_REQUEST_NULL;
    throw_if_failed(call(&request));
    return Request::adopt(request);
  }
  static unsigned char* flags(std::span<unsigned char> applied) {
    return applied.empty() ? nullptr : applied.data();
  }
  void check_update(std::span<const T> update, std::span<unsigned char> applied) const {
    check("update", count_, update.size());
    if (!applied.empty()) check("applied", num_shards(), applied.size());
  }
  static void check(const char* what, std::size_t expected, std::size_t given) {
    if (given == expected) return;
    throw Error(Status::error(Code::kInvalidArgument, std::string("model: ") + what + " has " +
                                                          std::to_string(given) + " elements; expected " +
                                                          std::to_string(expected)));
  }

  hips_ps_model_t model_ = nullptr;
  std::uint64_t count_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace hips::ps

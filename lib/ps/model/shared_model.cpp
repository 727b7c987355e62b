#include "lib/ps/model/shared_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "lib/base/wait/clock.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/agreement.hpp"
#include "lib/comm/setup/bootstrap.hpp"
#include "lib/ps/mail_setup.hpp"

namespace hips::ps {
namespace {

/// Shorter shards are sent at once: it takes less time than to ask.
constexpr std::uint64_t kLeastScheduledBytes = 64U << 10U;
/// Where fewer nodes share the NIC of a shard, it receives hardly more than each of them sends: to combine updates gains nothing.
constexpr std::uint64_t kLeastNodesPerShard = 2;

Status check(const SharedModelOptions& options) {
  const auto invalid = [](std::string text) {
    return Status::error(Code::kInvalidArgument, "model: " + std::move(text));
  };
  if (options.count == 0) return invalid("count is 0; expected the number of elements");
  const int type = static_cast<int>(options.type);
  if (type < 0 || type >= kNumDataTypes)
    return invalid(fmt::format("invalid datatype {} (valid: 0 to {})", type, kNumDataTypes - 1));
  if (!applies_to(ReduceOp::kSum, options.type))
    return invalid(fmt::format("elements of {} cannot be added", to_string(options.type)));
  if (options.count > PTRDIFF_MAX / size_of(options.type))
    return invalid(
        fmt::format("count is {}; no memory holds as many {}", options.count, to_string(options.type)));
  if (options.num_shards > UINT16_MAX)
    return invalid(fmt::format("num_shards is {}; at most {} are possible", options.num_shards, UINT16_MAX));
  if (std::isnan(options.divergence_max))
    return invalid("divergence_max is not a number; expected a norm, or a negative number for no replicas");
  return Status::success();
}

comm::Terms terms_of(const SharedModelOptions& options) {
  return {
      {"count", fmt::format("{}", options.count)},
      {"type of the elements", std::string(to_string(options.type))},
      {"num_shards", fmt::format("{}", options.num_shards)},
      {"delay_max", fmt::format("{}", options.delay_max)},
      {"policy", options.schedules ? "scheduled" : "all sent at once"},
      {"divergence_max", options.divergence_max < 0 ? "none" : fmt::format("{}", options.divergence_max)}};
}

}  // namespace

SharedModel::SharedModel(comm::Communicator& members, SharedModelOptions options)
    : members_(members), options_(options), driver_(members, "model") {}

Result<std::unique_ptr<SharedModel>> SharedModel::create(comm::Communicator& members,
                                                         SharedModelOptions options) {
  std::unique_ptr<SharedModel> model(new SharedModel(members, options));
  if (Status status = model->set_up(); !status.ok()) return fail(std::move(status));
  return model;
}

Status SharedModel::set_up() {
  Status status =
      set_up_together(members_, [this](comm::SetUpExchanges& exchanges) { return set_up(exchanges); });
  return status.ok() ? driver_.greet() : status;
}

Status SharedModel::set_up(comm::SetUpExchanges& exchanges) {
  MailSetup setup(members_, exchanges, "model");
  const Status valid = check(options_);
  if (Status status = setup.announce(valid, valid.ok() ? terms_of(options_) : comm::Terms{}); !status.ok())
    return status;
  const auto num_nodes = static_cast<std::uint64_t>(setup.places().num_nodes());
  std::uint64_t num_shards = options_.num_shards != 0 ? options_.num_shards : num_nodes;
  num_shards = std::min({num_shards, num_nodes, options_.count, std::uint64_t{UINT16_MAX}});
  shards_ = {.count = options_.count, .type = options_.type, .num = static_cast<std::uint16_t>(num_shards)};
  places_ = setup.places();
  constexpr std::size_t kLongest = 0;  // any slot has room for a part
  comm::ByteWriter mine;
  mine.put(options_.first != nullptr ? std::uint8_t{1} : std::uint8_t{0});
  mine.put(comm::ProcessUid::random().low);
  const auto opened =
      setup.open(Status::success(), mine.blob(), kLongest,
                 [this](Rank /*from*/, std::span<const std::byte> messages) { return receive(messages); });
  if (!opened) return opened.error();
  auto mail = setup.connect(compare_first(*opened));
  if (!mail) return mail.error();
  return exchanges.agree(begin_to_serve(std::move(*mail), setup.spin()));
}

/// Shards and their replicas begin with given values, or all with zeros. `told`: by rank, whether it has those, and a random number.
Status SharedModel::compare_first(std::span<const comm::Blob> told) {
  const auto has_first = [&](Rank rank, std::uint64_t& number) {
    comm::ByteReader reader(told[static_cast<std::size_t>(rank)]);
    const bool has_one = reader.get<std::uint8_t>() != 0;
    number = reader.get<std::uint64_t>();
    return has_one;
  };
  const Rank first = places_.service_of[0];
  const bool expected = has_first(first, id_);
  for (std::int32_t shard = 0; shard < shards_.num; ++shard) {
    const std::int32_t replica = options_.divergence_max >= 0 ? replica_node(places_, shards_, shard) : -1;
    for (const std::int32_t node : {shard, replica < 0 ? shard : replica}) {
      const Rank rank = places_.service_of[static_cast<std::size_t>(node)];
      std::uint64_t ignored = 0;
      if (has_first(rank, ignored) != expected)
        return Status::error(
            Code::kMismatch,
            fmt::format("model: of ranks {} and {}, which have shards{}, only one passes first values", first,
                        rank, options_.divergence_max >= 0 ? " or replicas" : ""),
            Scope::kCommunicator);
    }
  }
  return Status::success();
}

/// Local; afterwards this rank can call and be called.
Status SharedModel::begin_to_serve(std::unique_ptr<TransportMail> mail, SpinLimits spin) {
  const Rank rank = members_.rank();
  const Rank service = places_.service_at(rank);
  const bool schedules = options_.schedules &&
                         static_cast<std::uint64_t>(places_.num_nodes()) >= kLeastNodesPerShard * shards_.num;
  versions_.assign(shards_.num, 0);
  client_ = std::make_unique<ModelClient>(rank, service, shards_, *mail);
  if (service == rank)
    agent_ = std::make_unique<ModelAgent>(
        ModelAgent::Options{
            .rank = rank,
            .places = places_,
            .shards = shards_,
            .delay_max = options_.delay_max,
            .least_scheduled_bytes = schedules ? kLeastScheduledBytes : UINT64_MAX,
            .first = {options_.first,
                      options_.first != nullptr ? options_.count * size_of(options_.type) : 0},
            .divergence_max = options_.divergence_max,
            .trace = comm::process_trace(),
            .id = id_},
        *mail, SystemClock::instance());
  options_.first = nullptr;
  return driver_.start(std::move(mail), spin, service == rank, [this]() -> Result<bool> {
    bool moved = client_->advance();
    if (agent_) moved |= agent_->advance();
    return moved;
  });
}

/// A frame's messages, to the agent of the node or to this rank's calls.
Status SharedModel::receive(std::span<const std::byte> messages) {
  while (!messages.empty()) {
    const auto message = ModelMessage::take(messages);
    if (!message) return message.error();
    const bool answers = is_answer(message->head.kind);
    if (!answers && !agent_)
      return Status::error(Code::kInternal, "model: a request reached a rank that does not serve",
                           Scope::kCommunicator);
    if (Status status = answers ? client_->on_mail(*message) : agent_->on_mail(*message); !status.ok())
      return status;
  }
  return Status::success();
}

Status SharedModel::start(std::unique_ptr<ModelCall>& call, const std::byte* given, unsigned char* applied,
                          std::byte* out) {
  if (driver_.failed()) return driver_.failure();
  auto made = std::make_unique<ModelCall>();
  made->given = given;
  made->applied_out = applied;
  made->out = out;
  const Status status = driver_.send([&] {
    if (given == nullptr) return client_->fetch(*made);
    made->versions = versions_;
    client_->push(*made);
  });
  if (status.ok()) call = std::move(made);
  return status;
}

bool SharedModel::test(const ModelCall& call) {
  if (call.done.load(std::memory_order_acquire)) return true;
  driver_.step_with_others();
  return call.done.load(std::memory_order_acquire) || driver_.failed();
}

Status SharedModel::wait(std::unique_ptr<ModelCall> call) {
  const auto is_done = [&] { return call->done.load(std::memory_order_acquire); };
  driver_.wait_until(is_done, "the end of a call");
  if (is_done()) {
    if (call->out != nullptr) driver_.locked([&] { versions_ = std::move(call->versions); });
    return Status::success();
  }
  // The client still knows of it; nothing is written to the caller's memory any more.
  Status status = driver_.failure();
  call->out = nullptr;
  call->applied_out = nullptr;
  const std::lock_guard lock(mutex_);
  unanswered_.push_back(std::move(call));
  return status;
}

}  // namespace hips::ps

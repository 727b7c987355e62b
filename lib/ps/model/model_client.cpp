#include "lib/ps/model/model_client.hpp"

#include <algorithm>
#include <cstring>

namespace hips::ps {

std::uint32_t ModelClient::begin(ModelCall& call) {
  call.num_missing = shards_.num;
  call.received.assign(shards_.num, 0);
  call.done.store(false, std::memory_order_relaxed);
  calls_[++last_number_] = &call;
  return last_number_;
}

void ModelClient::fetch(ModelCall& call) {
  const std::uint32_t number = begin(call);
  call.versions.assign(shards_.num, 0);
  for (std::uint16_t shard = 0; shard < shards_.num; ++shard) ask(shard, number);
}

void ModelClient::ask(std::uint16_t shard, std::uint32_t number) {
  write(mail_, agent_, {.kind = ModelMail::kFetch, .shard = shard, .rank = rank_, .update = number});
}

void ModelClient::push(ModelCall& call) {
  const std::uint32_t number = begin(call);
  call.applied.assign(shards_.num, 0);
  call.found.assign(shards_.num, 0);
  for (std::uint16_t i = 0; i < shards_.num; ++i) {
    // Each rank begins elsewhere, so that not all of them send to one node first.
    const auto shard = static_cast<std::uint16_t>((i + static_cast<std::uint32_t>(rank_)) % shards_.num);
    sending_.push_back({.number = number, .call = &call, .shard = shard, .offset = 0});
  }
}

bool ModelClient::advance() {
  // Two fill a frame.
  const std::uint64_t most = (mail_.most_bytes() / 2 - sizeof(ModelHead)) / 64 * 64;
  bool moved = false;
  while (!sending_.empty() && mail_.has_room(agent_)) {
    Sending& next = sending_.front();
    const std::uint64_t size = shards_.bytes(next.shard);
    const std::uint64_t bytes = std::min(size - next.offset, most);
    ModelHead head{.kind = ModelMail::kUpdate, .shard = next.shard, .rank = rank_, .update = next.number};
    head.bytes = static_cast<std::uint32_t>(bytes);
    head.offset = next.offset;
    head.version = next.call->versions[next.shard];
    write(mail_, agent_, head, next.call->given + shards_.begin_byte(next.shard) + next.offset);
    next.offset += bytes;
    moved = true;
    if (next.offset == size) sending_.erase(sending_.begin());
  }
  return moved;
}

Status ModelClient::on_mail(const ModelMessage& message) {
  const ModelHead& head = message.head;
  const auto at = calls_.find(head.update);
  if (at == calls_.end() || head.shard >= shards_.num)
    return Status::error(Code::kMismatch, "model: an answer reached a rank that did not ask",
                         Scope::kCommunicator);
  ModelCall& call = *at->second;
  if (head.kind == ModelMail::kFetched) {
    if (Status status = on_values(call, message); !status.ok()) return status;
    if (call.received[head.shard] < shards_.bytes(head.shard)) return Status::success();
  } else {
    if (call.given == nullptr)
      return Status::error(Code::kMismatch, "model: a fetch ended as a push", Scope::kCommunicator);
    call.applied[head.shard] = head.flag;
    call.found[head.shard] = head.version;
    if (call.out != nullptr) {
      ask(head.shard, head.update);
      return Status::success();
    }
  }
  if (--call.num_missing > 0) return Status::success();
  if (call.applied_out != nullptr) std::ranges::copy(call.applied, call.applied_out);
  calls_.erase(at);
  call.done.store(true, std::memory_order_release);
  return Status::success();
}

Status ModelClient::on_values(ModelCall& call, const ModelMessage& message) {
  const ModelHead& head = message.head;
  const std::uint64_t size = shards_.bytes(head.shard);
  if (call.out == nullptr || head.offset != call.received[head.shard] || head.bytes > size - head.offset)
    return Status::error(Code::kMismatch, "model: a part of values is missing", Scope::kCommunicator);
  std::memcpy(call.out + shards_.begin_byte(head.shard) + head.offset, message.part, head.bytes);
  call.received[head.shard] += head.bytes;
  call.versions[head.shard] = head.version;
  return Status::success();
}

}  // namespace hips::ps

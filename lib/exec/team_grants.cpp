#include <algorithm>
#include <cstring>

#include "lib/exec/team_impl.hpp"

namespace hips::exec {

// A rank whose output is registered, by the user or for the call (TemporaryRegistration), tells its senders
// of final values where the output lies. Later segments are written there directly and bypass staging;
// earlier ones have gone through staging. A sender never waits for a grant.
//
//   receiver   begin #7 ---- grant(#7, rkey, offset) --> cell of the sender
//   sender     ... segment 3: put payload -> output, put header (direct) -> staging slot
//   receiver   segment 3 has arrived: nothing to copy, the credit returns
//
// Why the write cannot come too early: a gather message holds the final value of an element. That value
// exists only after some rank has reduced this rank's contribution. The contribution covers everything that
// this rank read or wrote of the element before (its input, also in place, and partial sums), and it has left
// this rank's memory. If a packet is retransmitted, the peer already has its data and drops it. Steps that
// read the element afterwards wait for the copy step, as without grants.

bool TeamImpl::takes_grants(Rank rank, Rail rail) const {
  if (config_.phantom) return false;
  // With shared memory, the copy out of staging is the transfer itself.
  return !routes_.at(rank).transport(rail)->query().attaches_memory;
}

void TeamImpl::give_grants(OperationImpl& operation) {
  operation.granted_ = false;
  if (grant_sources_.chunk == nullptr) return;
  const std::uint64_t bytes = operation.layout_->count * operation.layout_->element_bytes;
  if (bytes < kMinDirectBytes) return;
  const auto turn = static_cast<std::uint32_t>(operation.sequence_ % kGrantTurns);
  for (std::size_t c = 0; c < in_.size(); ++c) {
    InChannel& channel = in_[c];
    if (channel.grant_cells == nullptr || channel.granting[turn] || operation.program_->grants[c] == 0 ||
        operation.layout_->in_totals[c] == 0 || !channel.connection->is_usable())
      continue;
    EnginePort& port = *channel.port;
    // A grant is optional, so it does not wait for a full queue.
    if (port.num_batched >= EnginePort::kBatch && engine_.flush(port) == 0) continue;
    Grant grant;
    if (!name_output(operation, port, bytes, grant)) continue;
    grant.sequence = operation.sequence_;
    grant.check = grant.checksum(config_.id);
    std::byte* source = channel.grant_sources + turn * sizeof(Grant);
    std::memcpy(source, &grant, sizeof(grant));

    // The grant is posted together with the operation's first segments.
    transport::WorkRequest& request = port.batch[port.num_batched];
    request = {};
    request.verb = transport::Verb::kPutNotify;
    request.peer = channel.peer;
    request.pieces[0] = {source, sizeof(Grant), channel.grant_memory};
    request.num_pieces = 1;
    request.remote = channel.grant_cells;
    request.remote_offset = channel.grant_offset + turn * sizeof(Grant);
    request.token = channel.grant_token;
    request.signalled = !port.transport->query().completes_on_post;
    const Posted record{.team = this,
                        .port = &port,
                        .peer = channel.peer,
                        .channel = static_cast<std::int32_t>(c),
                        .slot = turn,
                        .kind = Posted::Kind::kGrant};
    if (request.signalled) request.context = engine_.add_posted(record);
    port.batched[port.num_batched++] = record;
    channel.granting[turn] = true;
    operation.granted_ = true;
  }
}

// Fills in where the output lies for peers that use this port; false if no peer may write into it.
bool TeamImpl::name_output(OperationImpl& operation, EnginePort& port, std::uint64_t bytes, Grant& grant) {
  std::byte* const out = operation.args_.out;
  if (port.transport->query().registers_freely) {
    const transport::RemoteRegion* region = operation.temporary_registration_.on(*port.transport, out, bytes);
    if (region != nullptr) grant.region = *region;
    return region != nullptr;
  }
  if (operation.out_range_ == nullptr) return false;
  const UserRange& range = *operation.out_range_;
  if (operation.out_memory_ == nullptr) operation.out_memory_ = &engine_.user_regions.of(range);
  const transport::RemoteRegion* region =
      engine_.user_regions.grant_on(*operation.out_memory_, range, port.index, *port.transport);
  if (region == nullptr) return false;
  grant.region = *region;
  grant.offset = static_cast<std::uint64_t>(out - range.address);
  // The region ends with the output, so a peer with another call finds that the sizes differ.
  grant.region.bytes = grant.offset + bytes;
  return true;
}

// The call has failed here, but peers that do not know it may still write. These writes must not reach the
// memory after the user has it back, so the registration is revoked. The device then rejects late writes,
// which breaks the connection to that peer; a corrupted word in reused memory would be worse. A temporary
// registration (TemporaryRegistration) ends with every operation anyway, and its end breaks no connection.
void TeamImpl::revoke_grants(OperationImpl& operation) {
  if (!operation.granted_ || operation.out_memory_ == nullptr) return;
  UserRegions::revoke(*operation.out_memory_);
}

void TeamImpl::on_grant(std::int32_t c) {
  OutChannel& channel = out_[static_cast<std::size_t>(c)];
  for (std::uint32_t turn = 0; turn < kGrantTurns; ++turn) {
    Grant grant;
    std::memcpy(&grant, channel.grant_cells + turn * sizeof(Grant), sizeof(grant));
    Grant& known = channel.grants[turn];
    if (grant.check != grant.checksum(config_.id) || grant.sequence % kGrantTurns != turn ||
        grant.sequence <= known.sequence)
      continue;
    // Requests in a batch may refer to the region of the old grant.
    const bool used = std::any_of(in_flight_.begin(), in_flight_.end(), [&](const OperationImpl* operation) {
      return !operation->done() && operation->sequence_ == known.sequence;
    });
    if (!used) known = grant;
  }
}

const Grant* TeamImpl::grant_for(const OperationImpl& operation, StepId id) const {
  const Layout& layout = *operation.layout_;
  const std::int64_t first = layout.target_first[static_cast<std::size_t>(id)];
  if (first < 0) return nullptr;
  const OutChannel& channel = out_[static_cast<std::size_t>(operation.program_->out_channel[id])];
  const Grant& grant = channel.grants[operation.sequence_ % kGrantTurns];
  if (grant.sequence != operation.sequence_) return nullptr;
  // If ranks disagree about the call, the header in staging reveals it.
  return grant.region.bytes - grant.offset == layout.count * layout.element_bytes ? &grant : nullptr;
}

bool TeamImpl::is_direct(const OperationImpl& operation, const InChannel& channel,
                         std::uint64_t number) const {
  if (!operation.granted_) return false;
  WireHeader header;
  std::memcpy(&header, payload(channel, number) - sizeof(WireHeader), sizeof(header));
  return (header.flags & kDirect) != 0;
}

}  // namespace hips::exec

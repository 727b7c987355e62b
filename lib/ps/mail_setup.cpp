#include "lib/ps/mail_setup.hpp"

#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "lib/comm/setup/agreement.hpp"
#include "lib/comm/setup/transport_registry.hpp"

namespace hips::ps {
namespace {

using comm::Blob;
using comm::ByteReader;
using comm::ByteWriter;
using comm::ProcessInfo;

RankPlaces group(const comm::Communicator& members, const std::vector<ProcessInfo>& processes) {
  const auto& origin = members.origin();
  const bool by_server = origin.named || origin.topology.ranks_per_server > 1;
  std::map<std::pair<Rank, std::string>, std::int32_t> known;
  RankPlaces places;
  for (std::size_t r = 0; r < processes.size(); ++r) {
    const auto server =
        by_server ? static_cast<Rank>(r) / static_cast<Rank>(origin.topology.ranks_per_server) : Rank{0};
    const auto [at, is_new] = known.emplace(std::pair(server, processes[r].node_key), places.num_nodes());
    if (is_new) places.service_of.push_back(static_cast<Rank>(r));
    places.node_of.push_back(at->second);
  }
  return places;
}

/// The ranks that this one has a connection with: the services, and for a service all ranks.
std::vector<Rank> peers_of(Rank rank, const RankPlaces& places) {
  std::vector<Rank> peers;
  for (Rank r = 0; r < static_cast<Rank>(places.node_of.size()); ++r)
    if (r != rank && (places.serves(rank) || places.serves(r))) peers.push_back(r);
  return peers;
}

}  // namespace

MailSetup::MailSetup(comm::Communicator& members, std::string name)
    : members_(members), name_(std::move(name)), exchange_(members), loaded_(load_process_config()) {}

SpinLimits MailSetup::spin() const {
  return comm::spin_limits(processes_, processes_[static_cast<std::size_t>(members_.rank())]);
}

/// Tells all ranks how this one stands and what it adds, in a part for the set-up and one for the caller. Gives the latter of each
/// rank, and the former in `parts`.
Result<std::vector<Blob>> MailSetup::tell(const Status& status, const Blob& part, const Blob& mine,
                                          std::vector<Blob>& parts) {
  ByteWriter writer;
  writer.put_status(status);
  writer.put_bytes(part);
  writer.put_bytes(mine);
  const auto blobs = exchange_.allgather(writer.take());
  if (!blobs) return fail(blobs.error());
  std::vector<Status> statuses;
  std::vector<Blob> told;
  for (std::size_t r = 0; r < blobs->size(); ++r) {
    ByteReader reader((*blobs)[r]);
    statuses.push_back(reader.get_status());
    const auto of_setup = reader.get_bytes(), of_caller = reader.get_bytes();
    if (!reader.ok()) return fail(comm::malformed(static_cast<Rank>(r)));
    parts.emplace_back(of_setup.begin(), of_setup.end());
    told.emplace_back(of_caller.begin(), of_caller.end());
  }
  if (Status failure = comm::first_failure(statuses); !failure.ok()) return fail(std::move(failure));
  return told;
}

Result<std::vector<Blob>> MailSetup::announce(Status status, const Blob& mine) {
  ProcessInfo process = comm::this_process();
  if (!loaded_.status.ok()) status = loaded_.status;
  if (status.ok()) status = comm::describe_networks(loaded_.config, process);
  ByteWriter writer;
  comm::put_process(writer, process);
  std::vector<Blob> processes;
  auto told = tell(status, writer.blob(), mine, processes);
  if (!told) return told;
  for (std::size_t r = 0; r < processes.size(); ++r) {
    ByteReader reader(processes[r]);
    processes_.push_back(comm::get_process(reader));
    if (!reader.ok()) return fail(comm::malformed(static_cast<Rank>(r)));
  }
  places_ = group(members_, processes_);
  return told;
}

Result<std::vector<Blob>> MailSetup::open(Status status, const Blob& mine, std::size_t longest,
                                          TransportMail::Receive receive) {
  ByteWriter opened;
  if (status.ok()) status = open_all(longest, std::move(receive), opened);
  return tell(status, opened.blob(), mine, introductions_);
}

Status MailSetup::open_all(std::size_t longest, TransportMail::Receive receive, ByteWriter& introductions) {
  const Rank rank = members_.rank();
  const std::vector<Rank> peers = peers_of(rank, places_);
  TransportMail::Options options{.name = name_, .rank = rank, .peers = peers, .service = service()};
  while (options.slot_bytes < longest) options.slot_bytes *= 2;
  auto mail = TransportMail::create(std::move(options), std::move(receive));
  if (!mail) return mail.error();
  mail_ = std::move(*mail);
  std::map<std::string_view, std::size_t> transports;
  for (const Rank peer : peers) {
    const ProcessInfo& self = processes_[static_cast<std::size_t>(rank)];
    const ProcessInfo& other = processes_[static_cast<std::size_t>(peer)];
    const comm::TransportEntry* entry = comm::transport_between(loaded_.config.transport, self, other);
    if (entry == nullptr)
      return Status::error(Code::kUnsupported,
                           fmt::format("{}: no transport between ranks {} and {}: {}", name_, rank, peer,
                                       comm::obstacles_between(loaded_.config.transport, self, other)));
    const auto [at, is_new] = transports.emplace(entry->name, 0);
    if (is_new) {
      auto made = entry->make(loaded_.config);
      if (!made) return made.error();
      auto added = mail_->add(std::move(made->transports[made->by_rail.at(0)]));
      if (!added) return added.error();
      at->second = *added;
    }
    auto introduction = mail_->open(peer, at->second);
    if (!introduction) return introduction.error();
    introductions.put(peer);
    introductions.put_bytes(*introduction);
  }
  return Status::success();
}

Status MailSetup::connect_all() {
  for (std::size_t r = 0; r < introductions_.size(); ++r) {
    ByteReader reader(introductions_[r]);
    while (!reader.rest().empty()) {
      const Rank peer = reader.get<Rank>();
      const auto introduction = reader.get_bytes();
      if (!reader.ok()) return comm::malformed(static_cast<Rank>(r));
      if (peer != members_.rank()) continue;
      if (Status status = mail_->connect(static_cast<Rank>(r), introduction); !status.ok()) return status;
    }
  }
  return Status::success();
}

Result<std::unique_ptr<TransportMail>> MailSetup::connect(Status status) {
  if (status.ok()) status = connect_all();
  if (Status agreed = comm::agree(exchange_, status); !agreed.ok()) return fail(std::move(agreed));
  return std::move(mail_);
}

}  // namespace hips::ps

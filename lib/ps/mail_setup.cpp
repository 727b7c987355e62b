#include "lib/ps/mail_setup.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "lib/ps/nic_pairs.hpp"

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

/// The transports of one kind, one for each NIC, and the numbers of those that the mail has.
struct Made {
  comm::TransportSet set;
  std::map<std::size_t, std::optional<std::size_t>> numbers;
};

/// The ranks that this one has a connection with: the services, and for a service all ranks.
std::vector<Rank> peers_of(Rank rank, const RankPlaces& places) {
  std::vector<Rank> peers;
  for (Rank r = 0; r < static_cast<Rank>(places.node_of.size()); ++r)
    if (r != rank && (places.serves(rank) || places.serves(r))) peers.push_back(r);
  return peers;
}

}  // namespace

MailSetup::MailSetup(comm::Communicator& members, comm::SetUpExchanges& exchanges, std::string name)
    : members_(members), name_(std::move(name)), exchanges_(exchanges), loaded_(load_process_config()) {}

SpinLimits MailSetup::spin() const {
  return comm::spin_limits(processes_, processes_[static_cast<std::size_t>(members_.rank())]);
}

/// Tells all ranks how this one stands and what it adds, in a part for the set-up and one for the caller. Gives the latter of each
/// rank, and the former in `parts`.
Result<std::vector<Blob>> MailSetup::tell(const Status& status, const Blob& part, const Blob& mine,
                                          std::vector<Blob>& parts) {
  ByteWriter writer;
  writer.put_bytes(part);
  writer.put_bytes(mine);
  const auto blobs = exchanges_.allgather_outcomes(status.ok() ? Result<Blob>(writer.take()) : fail(status));
  if (!blobs) return fail(blobs.error());
  std::vector<Blob> told;
  for (std::size_t r = 0; r < blobs->size(); ++r) {
    ByteReader reader((*blobs)[r]);
    const auto of_setup = reader.get_bytes(), of_caller = reader.get_bytes();
    if (!reader.ok()) return fail(comm::malformed(static_cast<Rank>(r)));
    parts.emplace_back(of_setup.begin(), of_setup.end());
    told.emplace_back(of_caller.begin(), of_caller.end());
  }
  return told;
}

Status MailSetup::announce(Status status, const comm::Terms& terms) {
  ProcessInfo process = comm::this_process();
  if (!loaded_.status.ok()) status = loaded_.status;
  if (status.ok()) status = comm::describe_networks(loaded_.config, process);
  ByteWriter writer;
  comm::put_process(writer, process);
  ByteWriter mine;
  comm::put_terms(mine, terms);
  std::vector<Blob> processes;
  const auto told = tell(status, writer.blob(), mine.blob(), processes);
  if (!told) return told.error();
  std::vector<comm::Terms> all_terms;
  for (std::size_t r = 0; r < processes.size(); ++r) {
    ByteReader reader(processes[r]);
    processes_.push_back(comm::get_process(reader));
    ByteReader term_reader((*told)[r]);
    all_terms.push_back(comm::get_terms(term_reader));
    if (!reader.ok() || !term_reader.ok()) return comm::malformed(static_cast<Rank>(r));
  }
  if (Status differ = comm::compare_terms(all_terms); !differ.ok()) {
    differ.scope = Scope::kOperation;
    differ.message = fmt::format("{}: {}", name_, differ.message);
    return differ;
  }
  places_ = group(members_, processes_);
  wiring_ = comm::wiring_of(loaded_.config.transport, processes_);
  return Status::success();
}

Result<std::vector<Blob>> MailSetup::open(Status status, const Blob& mine, std::size_t longest,
                                          TransportMail::Receive receive) {
  ByteWriter opened;
  if (status.ok()) status = open_all(longest, std::move(receive), opened);
  return tell(status, opened.blob(), mine, introductions_);
}

/// Our NICs, as ProcessInfo numbers them, that lead to NICs of a peer; the peer finds those in the same order.
std::vector<std::size_t> MailSetup::nics_to(Rank peer, const comm::TransportEntry& entry) const {
  const auto self = static_cast<std::size_t>(members_.rank()), other = static_cast<std::size_t>(peer);
  if (!wiring_ || wiring_->transport != entry.name || processes_[self].node_key == processes_[other].node_key)
    return {0};
  const std::size_t low = std::min(self, other), high = std::max(self, other);
  std::vector<std::size_t> ours;
  for (const auto& [of_low, of_high] : nic_pairs(entry.nics(processes_[low]), wiring_->nics[low],
                                                 entry.nics(processes_[high]), wiring_->nics[high]))
    ours.push_back(low == self ? of_low : of_high);
  return ours.empty() ? std::vector<std::size_t>{0} : ours;
}

Status MailSetup::open_all(std::size_t longest, TransportMail::Receive receive, ByteWriter& introductions) {
  const Rank rank = members_.rank();
  const std::vector<Rank> peers = peers_of(rank, places_);
  TransportMail::Options options{.name = name_, .rank = rank, .peers = peers, .service = service()};
  while (options.slot_bytes < longest) options.slot_bytes *= 2;
  auto mail = TransportMail::create(std::move(options), std::move(receive));
  if (!mail) return mail.error();
  mail_ = std::move(*mail);
  std::map<std::string_view, Made> made;
  for (const Rank peer : peers) {
    const ProcessInfo& self = processes_[static_cast<std::size_t>(rank)];
    const ProcessInfo& other = processes_[static_cast<std::size_t>(peer)];
    const comm::TransportEntry* entry = comm::transport_between(loaded_.config.transport, self, other);
    if (entry == nullptr)
      return Status::error(Code::kUnsupported,
                           fmt::format("{}: no transport between ranks {} and {}: {}", name_, rank, peer,
                                       comm::obstacles_between(loaded_.config.transport, self, other)));
    const auto [at, is_new] = made.try_emplace(entry->name);
    if (is_new) {
      auto set = entry->make(loaded_.config);
      if (!set) return set.error();
      at->second.set = *std::move(set);
    }
    std::vector<std::size_t> transports;
    for (const std::size_t nic : nics_to(peer, *entry)) {
      if (nic >= at->second.set.by_rail.size())
        return Status::error(Code::kSystem,
                             fmt::format("{}: NIC {} of {}, which {} saw a moment ago, is gone", name_, nic,
                                         self.host, entry->name));
      const std::size_t transport = at->second.set.by_rail[nic];
      auto& number = at->second.numbers[transport];
      if (!number) {
        auto added = mail_->add(std::move(at->second.set.transports[transport]));
        if (!added) return added.error();
        number = *added;
      }
      transports.push_back(*number);
    }
    auto introduction = mail_->open(peer, transports);
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
  if (Status agreed = exchanges_.agree(status); !agreed.ok()) return fail(std::move(agreed));
  return std::move(mail_);
}

}  // namespace hips::ps

#pragma once

#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "lib/ps/client.hpp"
#include "lib/ps/mail.hpp"
#include "lib/ps/service.hpp"
#include "tests/ps/faulty_mails.hpp"

namespace hips::ps::test {

/// The network of a simulated table: keeps what each rank sent to each other one, until the simulation delivers it.
class SimulatedNetwork {
 public:
  using Link = std::pair<Rank, Rank>;
  void send(Rank from, Rank to, std::vector<std::byte> batch) {
    if (dead_.contains(to)) return;
    links_[{from, to}].push_back(std::move(batch));
    ++num_waiting_;
  }
  [[nodiscard]] bool empty() const { return num_waiting_ == 0; }
  /// The rank has died: what is on its way to it is lost, and the last of what it has sent, on each link.
  void kill(Rank rank, std::mt19937_64& random) {
    dead_.insert(rank);
    for (auto& [link, batches] : links_) {
      if (link.first != rank && link.second != rank) continue;
      const std::size_t left = link.second == rank ? 0 : random() % (batches.size() + 1);
      num_waiting_ -= batches.size() - left;
      batches.resize(left);
    }
  }
  /// The oldest batch of a link that is chosen at random.
  std::pair<Link, std::vector<std::byte>> take(std::mt19937_64& random) {
    std::vector<Link> loaded;
    for (const auto& [link, batches] : links_)
      if (!batches.empty()) loaded.push_back(link);
    const Link link = loaded[random() % loaded.size()];
    return {link, take(link)};
  }
  std::vector<std::byte> take(Link link) {
    std::vector<std::byte> batch = std::move(links_.at(link).front());
    links_[link].pop_front();
    --num_waiting_;
    return batch;
  }
  [[nodiscard]] bool has_mail(Link link) const {
    const auto known = links_.find(link);
    return known != links_.end() && !known->second.empty();
  }

 private:
  std::map<Link, std::deque<std::vector<std::byte>>> links_;
  std::set<Rank> dead_;
  std::size_t num_waiting_ = 0;
};

/// One rank's mail in that network. Batches are small, so that requests need several.
class SimulatedMail final : public Mail {
 public:
  SimulatedMail(SimulatedNetwork& network, Rank rank, std::size_t most_bytes)
      : network_(network), rank_(rank), most_bytes_(most_bytes) {}
  std::byte* begin(Rank to, std::size_t bytes) override {
    if (bytes > most_bytes_ || open_.contains(to)) throw std::logic_error("begin() is used wrongly");
    return open_[to].assign(bytes, std::byte{0xee}), open_[to].data();
  }
  void end(Rank to, std::size_t bytes) override {
    std::vector<std::byte> batch = std::move(open_.at(to));
    open_.erase(to);
    if (bytes % 8 != 0 || bytes > batch.size()) throw std::logic_error("end() is used wrongly");
    batch.resize(bytes);
    if (bytes > 0) network_.send(rank_, to, std::move(batch));
  }
  [[nodiscard]] std::size_t most_bytes() const override { return most_bytes_; }
  [[nodiscard]] bool has_room(Rank /*to*/) const override { return true; }

 private:
  SimulatedNetwork& network_;
  Rank rank_;
  std::size_t most_bytes_;
  std::map<Rank, std::vector<std::byte>> open_;
};

/// A table of several nodes and ranks in one process.
class SimulatedTable {
 public:
  /// `faulty_seed`: by the mail of real tables, over NICs with faults.
  SimulatedTable(std::int32_t num_nodes, std::int32_t ranks_per_node, RowType type, std::uint64_t max_rows,
                 std::size_t batch_bytes, bool replicates = false,
                 std::optional<std::uint64_t> faulty_seed = std::nullopt)
      : type_(type) {
    if (faulty_seed)
      faulty_.emplace(num_nodes * ranks_per_node, batch_bytes, type.bytes(), *faulty_seed,
                      [this](Rank from, Rank to, const std::vector<std::byte>& batch) {
                        receive({from, to}, batch);
                        return Status::success();
                      });
    for (std::int32_t node = 0; node < num_nodes; ++node) {
      places_.service_of.push_back(node * ranks_per_node);
      for (std::int32_t local = 0; local < ranks_per_node; ++local) places_.node_of.push_back(node);
    }
    for (std::int32_t node = 0; node < num_nodes; ++node)
      stores_.push_back(std::make_unique<RowStore>(value_or_throw(RowStore::create(type.bytes(), max_rows))));
    for (std::int32_t node = 0; node < num_nodes && replicates; ++node)
      replicas_.push_back(
          std::make_unique<ReplicaStore>(value_or_throw(ReplicaStore::create(type, max_rows))));
    for (Rank rank = 0; rank < num_nodes * ranks_per_node; ++rank) {
      const auto node = places_.node_of[static_cast<std::size_t>(rank)];
      RowStore& store = *stores_[static_cast<std::size_t>(node)];
      mails_.push_back(std::make_unique<SimulatedMail>(network_, rank, batch_bytes));
      ReplicaStore* const replicas = replicates ? replicas_[static_cast<std::size_t>(node)].get() : nullptr;
      Mail& mail = faulty_ ? faulty_->mail(rank) : *mails_.back();
      clients_.push_back(std::make_unique<Client>(rank, places_, type, store, mail, replicas));
      if (places_.service_of[static_cast<std::size_t>(node)] == rank)
        services_.push_back(std::make_unique<Service>(
            Service::Options{.node = node, .places = places_, .type = type, .first_row = {}}, store, mail,
            replicas));
    }
  }

  [[nodiscard]] Rank num_ranks() const { return static_cast<Rank>(clients_.size()); }
  Client& client(Rank rank) { return *clients_[static_cast<std::size_t>(rank)]; }
  /// As a rank's calls do.
  Found use(Rank rank, MailKind kind, Key key, std::byte* row) {
    const RowStore::Place place = store(places_.node_of[static_cast<std::size_t>(rank)]).place_of(key);
    return kind == MailKind::kPull   ? client(rank).pull(key, place, row)
           : kind == MailKind::kPush ? client(rank).push(key, place, row)
           : kind == MailKind::kSet  ? client(rank).set(key, place, row)
                                     : client(rank).look(key, place);
  }
  Service& service(std::int32_t node) { return *services_[static_cast<std::size_t>(node)]; }
  RowStore& store(std::int32_t node) { return *stores_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] const RankPlaces& places() const { return places_; }
  [[nodiscard]] bool idle() const { return faulty_ ? faulty_->empty() : network_.empty(); }
  /// The ranks of a node die. The others have not heard of it yet, and go on.
  void kill(std::int32_t node, std::mt19937_64& random) {
    for (Rank rank = 0; rank < num_ranks(); ++rank)
      if (places_.node_of[static_cast<std::size_t>(rank)] == node) network_.kill(rank, random);
  }

  /// Delivers one batch, or lets a rank with faulty NICs make progress.
  void deliver(std::mt19937_64& random) {
    if (faulty_) return faulty_->step(random);
    const auto [link, bytes] = network_.take(random);
    receive(link, bytes);
  }
  /// Delivers the oldest one from a rank to another.
  void deliver(Rank from, Rank to) {
    const SimulatedNetwork::Link link{from, to};
    receive(link, network_.take(link));
  }
  [[nodiscard]] bool has_mail(Rank from, Rank to) const { return network_.has_mail({from, to}); }

 private:
  void receive(SimulatedNetwork::Link link, const std::vector<std::byte>& bytes) {
    std::span<const std::byte> left(bytes);
    const Batch batch = value_or_throw(Batch::take(left, type_.bytes()));
    const auto node = places_.node_of[static_cast<std::size_t>(link.second)];
    const Status status = is_answer(batch.head().kind) ? client(link.second).on_mail(link.first, batch)
                                                       : service(node).on_mail(batch);
    if (!status.ok()) throw Error(status);
  }

  RowType type_;
  RankPlaces places_;
  SimulatedNetwork network_;
  std::optional<FaultyMails> faulty_;
  std::vector<std::unique_ptr<RowStore>> stores_;
  std::vector<std::unique_ptr<ReplicaStore>> replicas_;
  std::vector<std::unique_ptr<SimulatedMail>> mails_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Service>> services_;
};

}  // namespace hips::ps::test

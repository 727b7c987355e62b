#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "lib/ps/transport_mail.hpp"
#include "transports/inproc/network.hpp"

namespace hips::ps::test {

/// The mail of real tables, of ranks in one process: over one to three NICs that delay, reorder and refuse, with few slots, down to one
/// more than NICs.
class FaultyMails {
 public:
  using Receive = std::function<Status(Rank from, Rank to, const std::vector<std::byte>& batch)>;

  /// `batch_bytes`: of the longest batch. `row_bytes`: of the batches' rows.
  FaultyMails(Rank num_ranks, std::size_t batch_bytes, std::size_t row_bytes, std::uint64_t seed,
              Receive receive)
      : random_(seed), row_bytes_(row_bytes), receive_(std::move(receive)) {
    const std::size_t num_nics = 1 + random_() % 3;
    network_ = value_or_throw(inproc::Network::create({.random = &random_,
                                                       .faults = {.delay = chance(),
                                                                  .reorder = chance(),
                                                                  .late_completion = chance(),
                                                                  .queue_full = chance() / 2}}));
    std::vector<std::size_t> nics(num_nics);
    std::iota(nics.begin(), nics.end(), std::size_t{0});
    for (Rank rank = 0; rank < num_ranks; ++rank) {
      auto made = std::make_unique<Counted>(*this);
      made->options = {.name = "test",
                       .rank = rank,
                       .slot_bytes = (kFrameHead + batch_bytes + 63) / 64 * 64,
                       .num_slots = static_cast<std::uint32_t>(num_nics + 1 + random_() % 3),
                       .peers = {},
                       .service = rank};
      for (Rank peer = 0; peer < num_ranks; ++peer)
        if (peer != rank) made->options.peers.push_back(peer);
      mails_.push_back(std::move(made));
    }
    // All rings between two ranks have as many slots.
    for (auto& mail : mails_) mail->options.num_slots = mails_[0]->options.num_slots;
    std::vector<std::vector<std::vector<std::byte>>> introductions(mails_.size());
    for (Rank rank = 0; rank < num_ranks; ++rank) {
      Counted& mail = *mails_[static_cast<std::size_t>(rank)];
      mail.mail = value_or_throw(TransportMail::create(
          mail.options,
          [this, rank](Rank from, std::span<const std::byte> batches) { return take(from, rank, batches); }));
      for (std::size_t nic = 0; nic < num_nics; ++nic)
        (void)value_or_throw(mail.mail->add(network_->make_transport(rank, static_cast<Rail>(nic))));
      for (Rank peer = 0; peer < num_ranks; ++peer)
        introductions[static_cast<std::size_t>(rank)].push_back(
            peer == rank ? std::vector<std::byte>{} : value_or_throw(mail.mail->open(peer, nics)));
    }
    for (Rank rank = 0; rank < num_ranks; ++rank)
      for (Rank peer = 0; peer < num_ranks; ++peer)
        if (peer != rank)
          throw_if_failed(mails_[static_cast<std::size_t>(rank)]->mail->connect(
              peer, introductions[static_cast<std::size_t>(peer)][static_cast<std::size_t>(rank)]));
    for (auto& mail : mails_) mail->mail->greet_all();
  }

  Mail& mail(Rank rank) { return *mails_[static_cast<std::size_t>(rank)]; }
  /// Whether all that was written has arrived.
  [[nodiscard]] bool empty() const { return num_waiting_ == 0; }
  /// One rank receives what is there, and sends.
  void step(std::mt19937_64& random) {
    (void)value_or_throw(mails_[random() % mails_.size()]->mail->progress());
  }

 private:
  /// Of a frame in a slot.
  static constexpr std::size_t kFrameHead = 16;

  struct Counted final : Mail {
    explicit Counted(FaultyMails& all) : of(all) {}
    std::byte* begin(Rank to, std::size_t bytes) override { return mail->begin(to, bytes); }
    void end(Rank to, std::size_t bytes) override {
      if (bytes > 0) ++of.num_waiting_;
      mail->end(to, bytes);
    }
    [[nodiscard]] std::size_t most_bytes() const override { return mail->most_bytes(); }
    [[nodiscard]] bool has_room(Rank to) const override { return mail->has_room(to); }

    FaultyMails& of;
    TransportMail::Options options;
    std::unique_ptr<TransportMail> mail;
  };

  static void throw_if_failed(const Status& status) {
    if (!status.ok()) throw Error(status);
  }
  double chance() { return static_cast<double>(random_() % 10) / 10; }

  Status take(Rank from, Rank to, std::span<const std::byte> batches) {
    while (!batches.empty()) {
      const std::span<const std::byte> before = batches;
      const auto batch = Batch::take(batches, row_bytes_);
      if (!batch) return batch.error();
      --num_waiting_;
      const auto one = before.first(before.size() - batches.size());
      if (Status status = receive_(from, to, {one.begin(), one.end()}); !status.ok()) return status;
    }
    return Status::success();
  }

  std::mt19937_64 random_;
  std::size_t row_bytes_;
  Receive receive_;
  std::unique_ptr<inproc::Network> network_;
  std::vector<std::unique_ptr<Counted>> mails_;
  std::size_t num_waiting_ = 0;
};

}  // namespace hips::ps::test

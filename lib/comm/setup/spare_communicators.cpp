#include "lib/comm/setup/spare_communicators.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <string_view>
#include <utility>

#include "lib/comm/fork_guard.hpp"

namespace hips::comm {
namespace {

/// FNV-1a over bytes.
class Digest {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes)
      value_ = (value_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
  }
  void add(std::uint64_t number) { add(std::as_bytes(std::span(&number, 1))); }
  void add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    add(std::as_bytes(std::span(text.data(), text.size())));
  }
  [[nodiscard]] std::uint64_t value() const { return value_ | 1; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace

SpareCommunicators& SpareCommunicators::process() {
  // Never destroyed: a program may end without destroying its communicators.
  static auto* const all = new SpareCommunicators;
  return *all;
}

SpareCommunicators::Taken SpareCommunicators::take() {
  std::vector<std::unique_ptr<Communicator>> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(all_);
  }
  return Taken(std::move(all));
}

void SpareCommunicators::retire(std::unique_ptr<Communicator> communicator) {
  // In a child of fork() the lock may be another thread's of the parent.
  if (communicator == nullptr || in_forked_child()) return;
  std::vector<std::unique_ptr<Communicator>> kept;
  if (communicator->retire()) kept.push_back(std::move(communicator));
  communicator.reset();
  put_back(std::move(kept));
}

void SpareCommunicators::stay() {
  const std::lock_guard lock(mutex_);
  stay_ = true;
}

void SpareCommunicators::end() {
  std::vector<std::unique_ptr<Communicator>> all;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  stay_ = false;
  all.swap(all_);
}

void SpareCommunicators::put_back(std::vector<std::unique_ptr<Communicator>> communicators) noexcept {
  std::vector<std::unique_ptr<Communicator>> surplus;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  try {
    std::move(communicators.begin(), communicators.end(), std::back_inserter(all_));
    const bool some_stay = stay_ || Communicator::num_alive() > all_.size();
    const std::size_t num_surplus = some_stay ? all_.size() - std::min(all_.size(), kMost) : all_.size();
    const auto end = all_.begin() + static_cast<std::ptrdiff_t>(num_surplus);
    std::move(all_.begin(), end, std::back_inserter(surplus));
    all_.erase(all_.begin(), end);
  } catch (const std::bad_alloc&) {
    // A place whose communicator has moved on holds none.
    std::erase(all_, nullptr);
  }
}

SpareCommunicators::Taken::~Taken() {
  if (!all_.empty()) process().put_back(std::move(all_));
}

SpareCommunicators::Taken::Taken(std::vector<std::unique_ptr<Communicator>> all) {
  for (auto& communicator : all) {
    const auto note = communicator->spare_note();
    if (!note) continue;
    notes_.push_back(*note);
    all_.push_back(std::move(communicator));
  }
}

std::optional<SpareNote> SpareCommunicators::Taken::note_of(std::uint64_t digest, Rank rank,
                                                            Rank size) const {
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (notes_[i].digest == digest && all_[i]->rank() == rank && all_[i]->size() == size) return notes_[i];
  return std::nullopt;
}

std::unique_ptr<Communicator> SpareCommunicators::Taken::use(std::uint64_t id) {
  const auto found = std::ranges::find(notes_, id, &SpareNote::id);
  if (found == notes_.end()) return nullptr;
  const auto place = all_.begin() + (found - notes_.begin());
  std::unique_ptr<Communicator> communicator = std::move(*place);
  all_.erase(place);
  notes_.erase(found);
  return communicator;
}

std::uint64_t digest_of(std::span<const ProcessInfo> processes, const Terms& terms) {
  Digest digest;
  for (const ProcessInfo& process : processes) {
    digest.add(process.uid.high);
    digest.add(process.uid.low);
  }
  for (const auto& [name, value] : terms) {
    digest.add(name);
    digest.add(value);
  }
  return digest.value();
}

std::optional<std::uint64_t> common_spare(std::span<const std::vector<SpareNote>> by_rank,
                                          std::uint64_t digest) {
  for (const SpareNote& note : by_rank.front()) {
    if (note.digest != digest) continue;
    if (std::ranges::all_of(by_rank, [&](const auto& notes) { return std::ranges::count(notes, note) == 1; }))
      return note.id;
  }
  return std::nullopt;
}

void put_spares(ByteWriter& writer, std::span<const SpareNote> spares) {
  writer.put(static_cast<std::uint32_t>(spares.size()));
  for (const SpareNote& spare : spares) {
    writer.put(spare.digest);
    writer.put(spare.id);
    writer.put(spare.calls);
  }
}

std::vector<SpareNote> get_spares(ByteReader& reader) {
  std::vector<SpareNote> spares;
  const auto count = reader.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    SpareNote spare;
    spare.digest = reader.get<std::uint64_t>();
    spare.id = reader.get<std::uint64_t>();
    spare.calls = reader.get<std::uint64_t>();
    spares.push_back(spare);
  }
  return spares;
}

}  // namespace hips::comm

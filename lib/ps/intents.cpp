#include "lib/ps/intents.hpp"

namespace hips::ps {

void Intents::begin(OfRank& of, Key key, std::uint64_t end) {
  // An intent that an earlier one covers adds nothing, however often a rank repeats it.
  const auto [known, is_new] = of.last_end.try_emplace(key, end);
  if (!is_new && known->second >= end) return;
  known->second = end;
  of.active[end].push_back(key);
  if (is_new && ++wanted_[key] == 1) changes_.begun.push_back(key);
}

void Intents::add(std::size_t rank, Key key, std::uint64_t start, std::uint64_t end) {
  OfRank& of = ranks_[rank];
  if (end <= of.clock || end <= start) return;
  if (start <= of.clock || start - of.clock <= kNearClocks) {
    begin(of, key, end);
  } else {
    of.later[start].emplace_back(key, end);
  }
}

void Intents::advance(std::size_t rank, std::uint64_t clock) {
  OfRank& of = ranks_[rank];
  of.clock = clock;
  // First what begins: a key whose next intent follows at once stays wanted.
  while (!of.later.empty() && of.later.begin()->first <= clock + kNearClocks) {
    const auto first = of.later.extract(of.later.begin());
    for (const auto& [key, end] : first.mapped())
      if (end > clock) begin(of, key, end);
  }
  while (!of.active.empty() && of.active.begin()->first <= clock) {
    const auto first = of.active.extract(of.active.begin());
    for (const Key key : first.mapped()) {
      const auto last = of.last_end.find(key);
      if (last->second != first.key()) continue;  // a longer one has followed
      of.last_end.erase(last);
      const auto known = wanted_.find(key);
      if (--known->second > 0) continue;
      wanted_.erase(known);
      changes_.ended.push_back(key);
    }
  }
}

}  // namespace hips::ps

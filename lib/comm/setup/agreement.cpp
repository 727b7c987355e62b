#include "lib/comm/setup/agreement.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace hips::comm {
namespace {

/// Groups the ranks by value. The most common value comes last, so the mismatching ranks come first.
std::vector<std::pair<std::string, std::vector<Rank>>> by_value(std::span<const Terms> terms,
                                                                std::size_t index) {
  std::map<std::string, std::vector<Rank>> ranks;
  for (std::size_t r = 0; r < terms.size(); ++r)
    ranks[index < terms[r].size() ? terms[r][index].second : std::string()].push_back(static_cast<Rank>(r));
  std::vector<std::pair<std::string, std::vector<Rank>>> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    if (a.second.size() != b.second.size()) return a.second.size() < b.second.size();
    // If two values are equally common, the value of rank 0 is the reference.
    return a.second.front() > b.second.front();
  });
  return sorted;
}

}  // namespace

std::string ranks_text(std::span<const Rank> ranks) {
  constexpr std::size_t kMost = 8;
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  std::string text = "ranks ";
  const std::size_t shown = std::min(ranks.size(), kMost);
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == ranks.size();
    text += fmt::format("{}{}", i == 0 ? "" : last ? " and " : ", ", ranks[i]);
  }
  if (ranks.size() > shown) text += fmt::format(" and {} more", ranks.size() - shown);
  return text;
}

Status compare_terms(std::span<const Terms> by_rank) {
  if (by_rank.empty()) return Status::success();
  std::size_t most_terms = 0;
  for (const Terms& terms : by_rank) most_terms = std::max(most_terms, terms.size());
  for (std::size_t i = 0; i < most_terms; ++i) {
    const auto values = by_value(by_rank, i);
    if (values.size() == 1) continue;
    std::string name;
    for (const Terms& terms : by_rank)
      if (i < terms.size()) name = terms[i].first;
    std::string text;
    for (std::size_t v = 0; v < values.size(); ++v) {
      const auto& [value, ranks] = values[v];
      const bool last = v + 1 == values.size();
      const std::string who =
          last && ranks.size() > 1 ? fmt::format("the {} others", ranks.size()) : ranks_text(ranks);
      text +=
          fmt::format("{}{} {} \"{}\"", v == 0 ? "" : ", ", who, ranks.size() == 1 ? "has" : "have", value);
    }
    Status status = Status::error(
        Code::kMismatch, fmt::format("the ranks disagree on the {}: {}", name, text), Scope::kCommunicator);
    status.rank = values.front().second.front();
    return status;
  }
  return Status::success();
}

Status malformed(Rank rank) {
  Status status = Status::error(
      Code::kMismatch,
      fmt::format("rank {} sent malformed data in the setup; do all ranks run the same library?", rank),
      Scope::kCommunicator);
  status.rank = rank;
  return status;
}

Status first_failure(std::span<const Status> by_rank) {
  const auto failed = std::find_if(by_rank.begin(), by_rank.end(), [](const Status& s) { return !s.ok(); });
  if (failed == by_rank.end()) return Status::success();
  const bool same_everywhere = std::all_of(by_rank.begin(), by_rank.end(), [&](const Status& s) {
    return s.code == failed->code && s.message == failed->message;
  });
  Status status = *failed;
  if (same_everywhere) return status;
  const auto rank = static_cast<Rank>(failed - by_rank.begin());
  if (status.rank < 0) status.rank = rank;
  status.message = fmt::format("rank {}: {}", rank, status.message);
  return status;
}

void put_terms(ByteWriter& writer, const Terms& terms) {
  writer.put(static_cast<std::uint32_t>(terms.size()));
  for (const auto& [name, value] : terms) {
    writer.put_text(name);
    writer.put_text(value);
  }
}

Terms get_terms(ByteReader& reader) {
  Terms terms;
  const auto count = reader.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    std::string name = reader.get_text();
    std::string value = reader.get_text();
    terms.emplace_back(std::move(name), std::move(value));
  }
  return terms;
}

}  // namespace hips::comm

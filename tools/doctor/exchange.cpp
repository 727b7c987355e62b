#include "tools/doctor/exchange.hpp"

#include <span>
#include <string>

#include <fmt/format.h>

#include "lib/comm/control/wire.hpp"

namespace hips::doctor {

Result<std::vector<RankReport>> exchange_reports(comm::Bootstrap& bootstrap, const RankReport& mine) {
  const std::string text = encode(mine);
  const auto all = bootstrap.allgather(std::as_bytes(std::span(text.data(), text.size())));
  if (!all) return fail(all.error());
  std::vector<RankReport> reports;
  for (std::size_t rank = 0; rank < all->size(); ++rank) {
    const comm::Blob& blob = (*all)[rank];
    auto report = decode_report(std::string(reinterpret_cast<const char*>(blob.data()), blob.size()));
    if (!report) {
      Status status = report.error();
      status.message = fmt::format("rank {}: {}", rank, status.message);
      return fail(std::move(status));
    }
    reports.push_back(*std::move(report));
  }
  return reports;
}

Result<std::vector<Trial>> exchange_trials(comm::Bootstrap& bootstrap, const std::vector<Trial>& mine) {
  comm::ByteWriter writer;
  writer.put(static_cast<std::uint32_t>(mine.size()));
  for (const Trial& trial : mine) {
    writer.put(trial.path.a);
    writer.put(trial.path.b);
    writer.put(trial.path.a_rail);
    writer.put(trial.path.b_rail);
    writer.put(trial.from);
    writer.put(trial.rtt_us);
    writer.put(static_cast<std::uint8_t>(trial.small_ok));
    writer.put(static_cast<std::uint8_t>(trial.large_ok));
    writer.put_text(trial.error);
  }
  const auto all = bootstrap.allgather(writer.blob());
  if (!all) return fail(all.error());
  std::vector<Trial> trials;
  for (const comm::Blob& blob : *all) {
    comm::ByteReader reader(blob);
    const auto count = reader.get<std::uint32_t>();
    for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
      Trial trial;
      trial.path.a = reader.get<Rank>();
      trial.path.b = reader.get<Rank>();
      trial.path.a_rail = reader.get<Rail>();
      trial.path.b_rail = reader.get<Rail>();
      trial.from = reader.get<Rank>();
      trial.rtt_us = reader.get<double>();
      trial.small_ok = reader.get<std::uint8_t>() != 0;
      trial.large_ok = reader.get<std::uint8_t>() != 0;
      trial.error = reader.get_text();
      trials.push_back(std::move(trial));
    }
  }
  return trials;
}

}  // namespace hips::doctor

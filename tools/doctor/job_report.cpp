#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "tools/doctor/job.hpp"

namespace hips::doctor {
namespace {

constexpr std::size_t kMostColumns = 32;

/// At least three digits: "12.3", "123", "1234".
std::string time_text(double us) {
  return us < 100 ? fmt::format("{:.1f}", us) : fmt::format("{:.0f}", us);
}

std::string cell_text(const Trial& trial) {
  if (trial.ok()) return time_text(trial.rtt_us);
  return trial.small_ok ? "small" : "none";
}

using Rails = std::pair<Rail, Rail>;
/// By row and column.
using Matrix = std::map<std::pair<Rank, Rank>, std::string>;

std::map<Rails, Matrix> matrices_of(std::span<const Trial> trials) {
  std::map<Rails, Matrix> matrices;
  for (const Trial& trial : trials) {
    const ProbePath& path = trial.path;
    const bool from_a = trial.from == path.a;
    const Rails rails = from_a ? Rails{path.a_rail, path.b_rail} : Rails{path.b_rail, path.a_rail};
    matrices[rails][{trial.from, from_a ? path.b : path.a}] = cell_text(trial);
  }
  return matrices;
}

std::string matrix_text(const Matrix& matrix) {
  std::set<Rank> ranks;
  std::size_t width = 5;
  for (const auto& [key, text] : matrix) {
    ranks.insert({key.first, key.second});
    width = std::max(width, text.size());
  }
  if (ranks.size() > kMostColumns) {
    const auto works = std::count_if(matrix.begin(), matrix.end(), [](const auto& one) {
      return one.second != "none" && one.second != "small";
    });
    return fmt::format("    {} of {} work; --json lists them\n", works, matrix.size());
  }
  std::string text = "    from \\ to ";
  for (const Rank to : ranks) text += fmt::format(" {:>{}}", to, width);
  text += '\n';
  for (const Rank from : ranks) {
    text += fmt::format("    {:>9} ", from);
    for (const Rank to : ranks) {
      const auto at = matrix.find({from, to});
      text += fmt::format(" {:>{}}", at != matrix.end() ? at->second : from == to ? "-" : ".", width);
    }
    text += '\n';
  }
  return text;
}

}  // namespace

std::string job_text(std::span<const RankReport> reports, std::span<const Trial> trials) {
  std::string text = "Ranks\n";
  for (const RankReport& report : reports) {
    std::string rails;
    for (const RailReport& rail : report.rails)
      rails += fmt::format("{}{} {}", rails.empty() ? "" : ", ", rail.name, rail.address);
    text += fmt::format("  {:>4}  {}  {}\n", report.rank, report.host, rails.empty() ? "no NIC" : rails);
  }
  text +=
      "\nReach: shortest round trip of an empty message in us (none: no answer; small: large messages are "
      "lost; "
      ".: not tried)\n";
  const auto matrices = matrices_of(trials);
  if (matrices.empty()) text += "  no path was tried\n";
  for (const auto& [rails, matrix] : matrices) {
    text += rails.first == kNoRail        ? "  shared memory\n"
            : rails.first == rails.second ? fmt::format("  NIC {}\n", rails.first)
                                          : fmt::format("  NIC {} to NIC {}\n", rails.first, rails.second);
    text += matrix_text(matrix);
  }
  return text;
}

nlohmann::ordered_json trials_json(std::span<const RankReport> reports, std::span<const Trial> trials) {
  using Json = nlohmann::ordered_json;
  const auto name = [&](Rank rank, Rail rail) {
    const auto& rails = reports[static_cast<std::size_t>(rank)].rails;
    if (rail == kNoRail || static_cast<std::size_t>(rail) >= rails.size()) return Json(nullptr);
    return Json(rails[static_cast<std::size_t>(rail)].name);
  };
  Json json = Json::array();
  for (const Trial& trial : trials) {
    const ProbePath& path = trial.path;
    const bool from_a = trial.from == path.a;
    json.push_back({{"from", trial.from},
                    {"to", from_a ? path.b : path.a},
                    {"over", path.shm() ? "shm" : "verbs"},
                    {"from_nic", name(trial.from, from_a ? path.a_rail : path.b_rail)},
                    {"to_nic", from_a ? name(path.b, path.b_rail) : name(path.a, path.a_rail)},
                    {"ok", trial.ok()},
                    {"small_ok", trial.small_ok},
                    {"round_trip_us", trial.rtt_us},
                    {"error", trial.error.empty() ? Json(nullptr) : Json(trial.error)}});
  }
  return json;
}

}  // namespace hips::doctor

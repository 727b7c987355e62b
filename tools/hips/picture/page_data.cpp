#include "tools/hips/picture/page_data.hpp"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace hips::picture {
namespace {

using Json = nlohmann::ordered_json;

/// "0-2,5"
std::string ranks_text(const std::vector<Rank>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

Json message_json(const Plan& plan, const cost::TimedStep& timed) {
  const Step& step =
      plan.programs[static_cast<std::size_t>(timed.rank)].steps[static_cast<std::size_t>(timed.step)];
  Json passages = Json::array();
  for (const cost::Passage& passage : timed.passages) {
    passages.push_back({passage.server, passage.rail, passage.out ? 1 : 0, passage.begin_ns, passage.end_ns});
  }
  return Json::array({timed.rank, step.peer, step.lane, step.stage, step.phase == Phase::kScatter ? 0 : 1,
                      timed.bytes, timed.begin_ns, timed.end_ns, step.dst.blocks.first, step.dst.blocks.count,
                      std::move(passages)});
}

}  // namespace

std::string page_data(const topology::TopologyFile& file, const Plan& plan, const cost::Timeline& timeline,
                      const Holdings& holdings) {
  const Topology& topology = file.topology;
  Json json{{"end", timeline.end_ns},
            {"ranks", plan.shape.num_ranks},
            {"perServer", topology.ranks_per_server},
            {"rails", topology.num_rails},
            {"blocks", plan.shape.blocks.num_blocks}};
  json["servers"] = Json::array();
  for (std::int64_t server = 0; server < topology.num_servers(); ++server)
    json["servers"].push_back(file.server_name(server));
  json["lanes"] = Json::array();
  for (const LaneInfo& lane : plan.shape.lanes)
    json["lanes"].push_back({lane.blocks.first, lane.blocks.count});
  json["messages"] = Json::array();
  for (const cost::TimedStep& timed : timeline.steps) {
    const Program& program = plan.programs[static_cast<std::size_t>(timed.rank)];
    if (program.steps[static_cast<std::size_t>(timed.step)].op == StepOp::kSend)
      json["messages"].push_back(message_json(plan, timed));
  }
  json["sums"] = Json::array();
  for (const auto& ranks : holdings.sums) json["sums"].push_back({ranks.size(), ranks_text(ranks)});
  json["holdings"] = Json::array();
  for (const Holding& holding : holdings.list) {
    json["holdings"].push_back(
        {holding.from_ns, holding.rank, holding.blocks.first, holding.blocks.count, holding.sum});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hips::picture

#include "topology/formats/told_wiring_file.hpp"

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "topology/spec.hpp"

namespace hips::topology {
namespace {

/// Reads [100Gb, 40Gb, down].
Result<LinkState> read_each_cable(const FileValues& values, const YamlNode& link, const YamlNode& cables,
                                  double usual) {
  for (const char* key : {"rate", "state"}) {
    if (const YamlNode* extra = FileValues::find(link, key))
      return values.bad(*extra, fmt::format("{} follows from the list of cables; leave it out", key));
  }
  if (cables.items.empty())
    return values.bad(cables,
                      "the list of cables is empty; write state: missing for a cable that is not there");
  LinkState state{.up = false, .cables = std::vector<double>()};
  for (const YamlNode& item : cables.items) {
    const auto text = values.text(item);
    if (!text) return fail(text.error());
    const auto rate = *text == "down" ? Result<double>(0.0) : values.rate(item);
    if (!rate) return fail(rate.error());
    state.cables->push_back(*rate);
    state.bandwidth_bytes_per_s += *rate;
    state.up = state.up || *rate > 0;
  }
  if (!state.up) state.bandwidth_bytes_per_s = usual;
  return state;
}

}  // namespace

Result<std::vector<std::string>> read_switch_names(const FileValues& values, const YamlNode& switches) {
  std::vector<std::string> result;
  const YamlNode* names = FileValues::find(switches, "names");
  if (names == nullptr) return result;
  if (auto list = values.sequence(*names); !list) return fail(list.error());
  std::unordered_set<std::string> seen;
  for (const YamlNode& name : names->items) {
    auto text = values.text(name);
    if (!text) return fail(text.error());
    if (!text->empty() && !seen.insert(*text).second)
      return values.bad(name,
                        fmt::format("the switch {} occurs twice; names must be unique", in_quotes(*text)));
    result.push_back(*std::move(text));
  }
  return result;
}

Result<void> read_assumed_switches(const FileValues& values, const YamlNode& switches,
                                   const std::vector<std::string>& names, ToldWiring& told) {
  const YamlNode* assumed = FileValues::find(switches, "assumed");
  if (assumed == nullptr) return {};
  if (auto list = values.sequence(*assumed); !list) return list;
  std::unordered_map<std::string, std::int64_t> numbers;
  for (std::size_t i = 0; i < names.size(); ++i) numbers.emplace(names[i], static_cast<std::int64_t>(i));
  for (const YamlNode& name : assumed->items) {
    const auto text = values.text(name);
    if (!text) return fail(text.error());
    const auto found = numbers.find(*text);
    if (found == numbers.end() || text->empty())
      return values.bad(name,
                        fmt::format("unknown switch {}; list it under switches: names", in_quotes(*text)));
    told.assumed_switches.insert(found->second);
  }
  return {};
}

Result<LinkState> read_link_state(const FileValues& values, const YamlNode& link, double usual) {
  const YamlNode* cables = FileValues::find(link, "cables");
  if (cables != nullptr && cables->kind == YamlNode::Kind::kSequence)
    return read_each_cable(values, link, *cables, usual);
  LinkState state{.bandwidth_bytes_per_s = usual};
  if (const YamlNode* rate = FileValues::find(link, "rate")) {
    const auto value = values.rate(*rate);
    if (!value) return fail(value.error());
    state.bandwidth_bytes_per_s = *value;
  }
  if (const YamlNode* node = FileValues::find(link, "state")) {
    const auto text = values.text(*node);
    if (!text) return fail(text.error());
    if (*text != "up" && *text != "down" && *text != "missing")
      return values.bad(*node, fmt::format("state is {}; it must be up, down or missing", in_quotes(*text)));
    state.up = *text == "up";
    if (*text == "missing") state.cables.emplace();
  }
  if (cables == nullptr) return state;
  if (state.cables) return values.bad(*cables, "cables of a link that is missing; leave it out");
  const auto count = values.number(*cables, 1, kMostParallelCables);
  if (!count) return fail(count.error());
  const double rate = state.up ? state.bandwidth_bytes_per_s / static_cast<double>(*count) : 0;
  state.cables.emplace(static_cast<std::size_t>(*count), rate);
  return state;
}

}  // namespace hips::topology

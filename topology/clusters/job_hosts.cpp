#include "topology/clusters/job_hosts.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "topology/clusters/hostlist.hpp"
#include "topology/formats/server_names.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

constexpr std::int64_t kMostSlots = 1 << 16;

std::string_view next_word(std::string_view& line) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!line.empty() && space(line.front())) line.remove_prefix(1);
  const auto end = std::ranges::find_if(line, space);
  const std::string_view word = line.substr(0, static_cast<std::size_t>(end - line.begin()));
  line.remove_prefix(word.size());
  return word;
}

/// The slots of one line in the notation of Open MPI ("slots=2") or MPICH (":2" after the name); 1 if it has
/// none.
Result<std::int64_t> slots_of(std::string_view& host, std::string_view rest, const std::string& where) {
  std::optional<std::string_view> text;
  if (const std::size_t colon = host.rfind(':'); colon != std::string_view::npos) {
    text = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
      return fail(Code::kInvalidArgument,
                  fmt::format("{}{} is not KEY=VALUE; write such as node0 slots=2", where, in_quotes(word)));
    }
    // Other keys (max-slots, binding) do not determine the number of ranks.
    if (word.substr(0, equals) == "slots") text = word.substr(equals + 1);
  }
  if (!text) return 1;
  std::int64_t slots = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), slots);
  if (error != std::errc() || end != text->data() + text->size() || slots < 1 || slots > kMostSlots) {
    return fail(Code::kInvalidArgument,
                fmt::format("{}invalid slots {} (valid: 1 to {})", where, in_quotes(*text), kMostSlots));
  }
  return slots;
}

}  // namespace

Result<JobHosts> read_hostfile(std::string_view name, std::string_view text) {
  JobHosts hosts;
  std::map<std::string, std::int64_t, std::less<>> slots;
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    ++number;
    line = line.substr(0, line.find('#'));
    std::string_view host = next_word(line);
    if (host.empty()) continue;
    const std::string where = fmt::format("{}: line {}: ", name, number);
    const auto given = slots_of(host, line, where);
    if (!given) return fail(given.error());
    if (host.empty() || host.find_first_of("[]=,") != std::string_view::npos) {
      return fail(Code::kInvalidArgument,
                  fmt::format("{}{} is not a host name; write one per line", where, in_quotes(host)));
    }
    if (hosts.names.size() >= kMaxServerNames) {
      return fail(Code::kInvalidArgument,
                  fmt::format("{}more than {} hosts, the limit; list the hosts of the job only", where,
                              kMaxServerNames));
    }
    auto [known, is_new] = slots.emplace(std::string(host), 0);
    if (is_new) hosts.names.emplace_back(host);
    known->second = std::min(known->second + *given, kMostSlots);
  }
  if (hosts.names.empty()) {
    return fail(Code::kInvalidArgument,
                fmt::format("{}: line 1: the file has no host; write one per line", name));
  }
  const std::int64_t first = slots.find(hosts.names.front())->second;
  for (const auto& [host, count] : slots) {
    if (count == first) continue;
    return fail(Code::kUnsupported,
                fmt::format("{}: {} has {} slots, but {} has {}; plans need equally many ranks on each host",
                            name, in_quotes(hosts.names.front()), first, in_quotes(host), count));
  }
  hosts.ranks_per_host = static_cast<std::int32_t>(first);
  return hosts;
}

Result<JobHosts> read_nodelist(std::string_view text) {
  const auto list = Hostlist::parse(text);
  if (!list) return fail(list.error());
  auto names = HostlistExpander().expand(*list);
  if (!names)
    return fail(Code::kInvalidArgument,
                fmt::format("hostlist {} {}", in_quotes(text), names.error().message));
  JobHosts hosts;
  std::unordered_set<std::string_view> seen;
  seen.reserve(names->size());
  for (const std::string& each : *names) {
    if (!seen.insert(each).second)
      return fail(Code::kInvalidArgument, fmt::format("hostlist {}: {} occurs twice; list each host once",
                                                      in_quotes(text), in_quotes(each)));
  }
  hosts.names = std::move(*names);
  return hosts;
}

}  // namespace hips::topology

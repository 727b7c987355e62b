#include "topology/clusters/job_hosts.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "topology/cabling/node_role.hpp"
#include "topology/cabling/text_lines.hpp"
#include "topology/clusters/hostlist.hpp"
#include "topology/formats/server_names.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

constexpr std::int64_t kMostSlots = 1 << 16;

/// Without the blanks around "=": Open MPI allows them.
std::string with_tight_signs(std::string_view line) {
  std::string out;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const std::size_t next = line.find_first_not_of(kBlanks, at);
    if (next == std::string_view::npos) break;
    const bool is_blank = next > at;
    if (is_blank && line[next] != '=' && !out.ends_with('=')) out += ' ';
    out += line[next];
    at = next;
  }
  return out;
}

/// The slots of one line in the notation of Open MPI ("slots=2") or MPICH (":2" after the name); 1 if it has
/// none.
Result<std::int64_t> slots_of(std::string_view& host, std::string_view rest, const std::string& where) {
  std::optional<std::string_view> text;
  // An IPv6 address has several colons.
  if (const std::size_t colon = host.find(':'); colon != std::string_view::npos && colon == host.rfind(':')) {
    text = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  for (std::string_view word = take_word(rest); !word.empty(); word = take_word(rest)) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
      return fail(Code::kInvalidArgument,
                  fmt::format("{}{} is not KEY=VALUE; write such as node0 slots=2", where, in_quotes(word)));
    }
    // Other keys (max-slots, binding) do not determine the number of ranks.
    if (is_one_of(word.substr(0, equals), {"slots", "cpu", "count"})) text = word.substr(equals + 1);
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
  struct Slots {
    std::int64_t count = 0;
    std::int64_t first_line = 0, num_lines = 0;
  };
  std::unordered_map<std::string, Slots> slots;
  TextLines lines(text);
  while (const auto whole = lines.next()) {
    const std::string line = with_tight_signs(whole->substr(0, whole->find('#')));
    std::string_view rest = line;
    std::string_view host = take_word(rest);
    if (host.empty()) continue;
    const std::string where = fmt::format("{}: line {}: ", name, lines.number());
    const auto given = slots_of(host, rest, where);
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
    auto [known, is_new] = slots.emplace(std::string(host), Slots{.first_line = lines.number()});
    if (is_new) hosts.names.emplace_back(host);
    known->second.count = std::min(known->second.count + *given, kMostSlots);
    ++known->second.num_lines;
  }
  if (hosts.names.empty()) {
    return fail(Code::kInvalidArgument,
                fmt::format("{}: line 1: the file has no host; write one per line", name));
  }
  const auto shown = [](const Slots& of) {
    return of.num_lines == 1 ? fmt::format("line {}", of.first_line)
                             : fmt::format("in {} lines, from line {} on", of.num_lines, of.first_line);
  };
  const Slots& first = slots.at(hosts.names.front());
  for (const std::string& host : hosts.names) {
    const Slots& other = slots.at(host);
    if (other.count == first.count) continue;
    return fail(
        Code::kUnsupported,
        fmt::format(
            "{}: {} has {} slots ({}), but {} has {} ({}); plans need equally many ranks on each host", name,
            in_quotes(hosts.names.front()), first.count, shown(first), in_quotes(host), other.count,
            shown(other)));
  }
  hosts.ranks_per_host = static_cast<std::int32_t>(first.count);
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

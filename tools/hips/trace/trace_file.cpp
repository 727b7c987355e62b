#include "tools/hips/trace/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <system_error>
#include <utility>

namespace hips::trace {
namespace {

using Json = nlohmann::json;

/// Thrown only inside this file; read_trace_file() adds the file name.
struct Malformed {
  std::string message;
};

std::string shortened(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 120) text = text.substr(0, 117) + "...";
  return text;
}

std::optional<TraceEvent::Kind> kind_of(const std::string& category) {
  if (category == "operation") return TraceEvent::Kind::kOperation;
  if (category == "wait") return TraceEvent::Kind::kWait;
  if (category == "wire") return TraceEvent::Kind::kWire;
  if (category == "reduce") return TraceEvent::Kind::kReduce;
  if (category == "update") return TraceEvent::Kind::kUpdate;
  if (category == "values") return TraceEvent::Kind::kValues;
  return std::nullopt;
}

const Json& field(const Json& object, const char* name, const Json& event) {
  const auto found = object.find(name);
  if (found == object.end()) {
    throw Malformed{fmt::format("an event has no \"{}\": {}", name, shortened(event))};
  }
  return *found;
}

std::int64_t time_ns(const Json& event, const char* name) {
  const Json& value = field(event, name, event);
  // At most 126 years, so that begin plus duration fit into 64 bits of nanoseconds.
  if (!value.is_number() || !(std::abs(value.get<double>()) < 4.0e15) || value.get<double>() < 0) {
    throw Malformed{fmt::format("\"{}\" is {}; expected microseconds, 0 or more: {}", name, shortened(value),
                                shortened(event))};
  }
  return static_cast<std::int64_t>(std::llround(value.get<double>() * 1000));
}

template <typename Integer>
Integer integer(const Json& args, const char* name, const Json& event) {
  const Json& value = field(args, name, event);
  const bool fits = value.is_number_integer() &&
                    (value.is_number_unsigned() ? std::in_range<Integer>(value.get<std::uint64_t>())
                                                : std::in_range<Integer>(value.get<std::int64_t>()));
  if (!fits) {
    throw Malformed{
        fmt::format("\"{}\" is {}; expected an integer: {}", name, shortened(value), shortened(event))};
  }
  return value.get<Integer>();
}

/// Communicators have 64-bit ids, written as hexadecimal text because viewers read numbers as doubles.
std::uint64_t communicator(const Json& args, const Json& event) {
  const Json& value = field(args, "communicator", event);
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  std::uint64_t name = 0;
  const char* end = text.data() + text.size();
  if (!text.starts_with("0x") || text.size() < 3 ||
      std::from_chars(text.data() + 2, end, name, 16).ptr != end || text.size() > 18) {
    throw Malformed{fmt::format("\"communicator\" is {}; expected text such as \"0x1f\": {}",
                                shortened(value), shortened(event))};
  }
  return name;
}

template <typename Integer>
void optional_integer(const Json& args, const char* name, const Json& event, Integer& into) {
  if (args.contains(name)) into = integer<Integer>(args, name, event);
}

const Json& args_of(const Json& event) {
  const Json& args = field(event, "args", event);
  if (!args.is_object()) throw Malformed{fmt::format("\"args\" is not an object: {}", shortened(event))};
  return args;
}

class Reader {
 public:
  explicit Reader(RankTrace& trace) : trace_(trace) {}

  void take(const Json& event) {
    const auto phase = event.find("ph");
    if (phase == event.end() || !phase->is_string()) {
      throw Malformed{fmt::format("an event has no \"ph\": {}", shortened(event))};
    }
    if (*phase == "M" && event.value("name", "") == "process_name") take_process(event);
    if (*phase == "X") take_span(event);
  }

  void finish() const {
    if (trace_.rank < 0) throw Malformed{"has no rank: not a trace of HiPS"};
  }

 private:
  void take_process(const Json& event) {
    const Json& args = args_of(event);
    trace_.rank = integer<Rank>(event, "pid", event);
    optional_integer(args, "num_ranks", event, trace_.num_ranks);
    optional_integer(args, "wall_offset_ns", event, trace_.wall_offset_ns);
    if (const auto host = args.find("host"); host != args.end() && host->is_string()) {
      trace_.host = host->get<std::string>();
    }
  }

  void take_span(const Json& event) {
    const auto category = event.find("cat");
    if (category == event.end() || !category->is_string()) return;
    const auto kind = kind_of(category->get<std::string>());
    if (!kind) return;
    const Json& args = args_of(event);
    TraceEvent span;
    span.kind = *kind;
    span.begin_ns = time_ns(event, "ts");
    span.end_ns = span.begin_ns + time_ns(event, "dur");
    span.communicator = communicator(args, event);
    span.sequence = integer<std::uint64_t>(args, "sequence", event);
    span.bytes = integer<std::int64_t>(args, "bytes", event);
    if (*kind == TraceEvent::Kind::kWire) span.peer = integer<std::int32_t>(args, "peer", event);
    optional_integer(args, "peer", event, span.peer);
    optional_integer(args, "lane", event, span.lane);
    optional_integer(args, "stage", event, span.stage);
    optional_integer(args, "round", event, span.round);
    optional_integer(args, "level", event, span.level);
    optional_integer(args, "rail", event, span.rail);
    optional_integer(args, "segment", event, span.segment);
    if (*kind == TraceEvent::Kind::kUpdate || *kind == TraceEvent::Kind::kValues) {
      span.shard = integer<std::int32_t>(args, "shard", event);
      span.members = integer<std::int32_t>(args, "members", event);
    }
    optional_integer(args, "version", event, span.version);
    optional_integer(args, "delay", event, span.delay);
    trace_.events.push_back(span);
  }

  RankTrace& trace_;
};

void parse(const std::string& text, RankTrace& trace) {
  Reader reader(trace);
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  const bool array = start != std::string::npos && text[start] == '[';
  // Events are one level below the root in the Array Format and two levels in the Object Format. Each is
  // processed when it is complete and then dropped, so that the tree never grows.
  const int event_depth = array ? 1 : 2;
  // Traces of HiPS nest four levels; shortened() recurses into the nodes that it prints.
  constexpr int kMostDepth = 64;
  const Json::parser_callback_t on_node = [&](int depth, Json::parse_event_t what, Json& node) {
    if (depth > kMostDepth)
      throw Malformed{fmt::format("is nested more than {} levels deep: not a trace", kMostDepth)};
    if (what != Json::parse_event_t::object_end || depth != event_depth) return true;
    if (!array && !node.contains("ph")) return true;
    reader.take(node);
    return false;
  };
  try {
    const Json root = Json::parse(text, on_node);
    if (!array && !(root.is_object() && root.contains("traceEvents"))) {
      throw Malformed{
          "is JSON, but not a trace: expected an array of events or an object with \"traceEvents\""};
    }
  } catch (const Json::parse_error& error) {
    // A killed process leaves the array open or an event incomplete: then the parser fails at the end of the
    // text (byte size + 1).
    if (!array || error.byte <= text.size()) {
      throw Malformed{fmt::format("malformed JSON at byte {} of {}", error.byte, text.size())};
    }
    trace.truncated = true;
  }
  reader.finish();
}

}  // namespace

Result<RankTrace> read_trace_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Code::kSystem, fmt::format("trace: cannot open {}: {}", path, std::strerror(errno)));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return fail(Code::kSystem, fmt::format("trace: cannot read {}", path));
  RankTrace trace;
  trace.path = path;
  // A process may be killed, or its disk be full, before it has written who it is.
  std::smatch match;
  const std::string name = std::filesystem::path(path).filename().string();
  if ((text.empty() || text == "[" || text == "[\n") &&
      std::regex_match(name, match, std::regex("trace-([0-9]{1,9})\\.json"))) {
    trace.rank = std::stoi(match[1].str());
    trace.truncated = true;
    return trace;
  }
  try {
    parse(text, trace);
  } catch (const Malformed& error) {
    return fail(Code::kInvalidArgument, fmt::format("trace: {}: {}", path, error.message));
  } catch (const Json::exception& error) {
    return fail(Code::kInvalidArgument, fmt::format("trace: {}: {}", path, error.what()));
  }
  return trace;
}

namespace {

/// The trace files of a folder; the path itself if it is a file.
Result<std::vector<std::string>> files_of(const std::string& path) {
  if (std::filesystem::is_regular_file(path)) return std::vector{path};
  std::error_code error;
  std::vector<std::string> files;
  static const std::regex kName("trace-[0-9]+\\.json");
  std::filesystem::directory_iterator entry(path, error);
  if (error)
    return fail(Code::kInvalidArgument, fmt::format("trace: cannot open {}: {}", path, error.message()));
  for (; entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (error) return fail(Code::kSystem, fmt::format("trace: cannot list {}: {}", path, error.message()));
    if (std::regex_match(entry->path().filename().string(), kName)) files.push_back(entry->path().string());
  }
  if (files.empty()) {
    return fail(
        Code::kInvalidArgument,
        fmt::format("trace: {} has no trace-<rank>.json; run the program with HIPS_TRACE={}", path, path));
  }
  return files;
}

}  // namespace

Result<std::vector<RankTrace>> read_traces(const std::vector<std::string>& paths) {
  std::vector<RankTrace> traces;
  for (const std::string& path : paths) {
    const auto files = files_of(path);
    if (!files) return fail(files.error());
    for (const std::string& file : *files) {
      Result<RankTrace> trace = read_trace_file(file);
      if (!trace) return fail(std::move(trace).error());
      traces.push_back(*std::move(trace));
    }
  }
  std::sort(traces.begin(), traces.end(), [](const RankTrace& a, const RankTrace& b) {
    return std::tie(a.rank, a.path) < std::tie(b.rank, b.path);
  });
  const auto twin = std::adjacent_find(
      traces.begin(), traces.end(), [](const RankTrace& a, const RankTrace& b) { return a.rank == b.rank; });
  if (twin != traces.end()) {
    return fail(Code::kInvalidArgument, fmt::format("trace: {} and {} are both of rank {}", twin->path,
                                                    std::next(twin)->path, twin->rank));
  }
  const RankTrace* first = nullptr;
  for (const RankTrace& trace : traces) {
    if (trace.num_ranks == 0) continue;
    if (first == nullptr) first = &trace;
    if (trace.num_ranks != first->num_ranks)
      return fail(
          Code::kInvalidArgument,
          fmt::format("trace: {} is of a job of {} ranks, and {} of one of {}; give the files of one job",
                      first->path, first->num_ranks, trace.path, trace.num_ranks));
  }
  return traces;
}

}  // namespace hips::trace

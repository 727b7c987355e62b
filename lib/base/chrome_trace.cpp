#include "lib/base/chrome_trace.hpp"

#include <fcntl.h>
#include <mutex>

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "lib/base/log.hpp"

namespace hips {
namespace {

constexpr std::int64_t kFlushIntervalNs = 1'000'000'000;
// Overlapping spans of a track are spread over at most this many rows; more would be unreadable.
constexpr std::size_t kMaxRowsPerTrack = 32;

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  std::string host = name.data();
  // RFC 1123 allows no such characters, but a kernel may, and they must not break the JSON.
  for (char& c : host) {
    if (c < ' ' || c == '"' || c == '\\' || c == '\x7f') c = '_';
  }
  return host;
}

std::int64_t wall_minus_monotonic_ns() {
  timespec wall{}, monotonic{};
  clock_gettime(CLOCK_REALTIME, &wall);
  clock_gettime(CLOCK_MONOTONIC, &monotonic);
  return (static_cast<std::int64_t>(wall.tv_sec) - monotonic.tv_sec) * 1'000'000'000 +
         (wall.tv_nsec - monotonic.tv_nsec);
}

const char* category(TraceEvent::Kind kind) {
  switch (kind) {
    case TraceEvent::Kind::kOperation:
      return "operation";
    case TraceEvent::Kind::kWait:
      return "wait";
    case TraceEvent::Kind::kWire:
      return "wire";
    case TraceEvent::Kind::kReduce:
      return "reduce";
    case TraceEvent::Kind::kUpdate:
      return "update";
    case TraceEvent::Kind::kValues:
      return "values";
  }
  return "unknown";
}

/// A track of the trace: one kind of span of one lane, NIC or shard.
using TrackKey = std::pair<TraceEvent::Kind, std::int32_t>;

TrackKey track_of(const TraceEvent& event) {
  switch (event.kind) {
    case TraceEvent::Kind::kOperation:
      return {event.kind, 0};
    case TraceEvent::Kind::kWire:
      return {event.kind, event.rail};
    case TraceEvent::Kind::kUpdate:
    case TraceEvent::Kind::kValues:
      return {event.kind, event.shard};
    case TraceEvent::Kind::kWait:
    case TraceEvent::Kind::kReduce:
      break;
  }
  return {event.kind, event.lane};
}

std::string track_name(const TrackKey& key) {
  const auto [kind, index] = key;
  switch (kind) {
    case TraceEvent::Kind::kOperation:
      return "operations";
    case TraceEvent::Kind::kWire:
      return index == kNoRail ? "inside the server" : fmt::format("NIC {} out", index);
    case TraceEvent::Kind::kUpdate:
      return fmt::format("shard {} updates", index);
    case TraceEvent::Kind::kValues:
      return fmt::format("shard {} values", index);
    case TraceEvent::Kind::kWait:
    case TraceEvent::Kind::kReduce:
      break;
  }
  return fmt::format("lane {} {}", index, category(kind));
}

/// Microseconds with three decimals, so that no digit of the nanoseconds is lost. Times are not negative.
void append_us(fmt::memory_buffer& out, std::int64_t ns) {
  fmt::format_to(std::back_inserter(out), "{}.{:03}", ns / 1000, ns % 1000);
}

class ChromeTrace final : public TraceSink {
 public:
  ChromeTrace(int fd, std::string path, const ChromeTraceOptions& options)
      : fd_(fd), path_(std::move(path)), options_(options), pid_(getpid()) {
    buffer_.reserve(options_.max_buffered_events);
    write_header();
  }

  ChromeTrace(const ChromeTrace&) = delete;
  ChromeTrace& operator=(const ChromeTrace&) = delete;

  ~ChromeTrace() override {
    write_buffer();
    if (fd_ >= 0 && pid_ == getpid()) write_all("\n]\n");
    if (fd_ >= 0) close(fd_);
  }

  void record(const TraceEvent& event) override {
    const std::lock_guard lock(mutex_);
    if (fd_ < 0) return;
    if (buffer_.empty()) oldest_buffered_ns_ = event.end_ns;
    buffer_.push_back(event);
    const bool full = buffer_.size() >= options_.max_buffered_events;
    if (full || event.end_ns - oldest_buffered_ns_ >= kFlushIntervalNs) write_buffer();
  }

  void flush() override {
    const std::lock_guard lock(mutex_);
    write_buffer();
  }

 private:
  struct Track {
    std::vector<int> tids;                    ///< tids of its rows
    std::vector<std::int64_t> busy_until_ns;  ///< end of the last span of each row
  };

  void write_header() {
    const std::int64_t offset_ns = options_.wall_offset_ns.value_or(wall_minus_monotonic_ns());
    const std::string host = host_name();
    write_all(
        fmt::format("[\n{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{0},\"tid\":0,\"args\":{{\"name\":"
                    "\"rank {0} on {1}\","
                    "\"rank\":{0},\"num_ranks\":{2},\"host\":\"{1}\",\"wall_offset_ns\":{3}}}}},\n"
                    "{{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":{0},\"tid\":0,\"args\":{{\"sort_"
                    "index\":{0}}}}}",
                    options_.rank, host, options_.num_ranks, offset_ns));
  }

  /// The first row that is free when the event begins; if there is none, a new row with its name.
  int tid_for(const TraceEvent& event) {
    const TrackKey key = track_of(event);
    Track& track = tracks_[key];
    for (std::size_t i = 0; i < track.tids.size(); ++i) {
      if (track.busy_until_ns[i] <= event.begin_ns || i + 1 == kMaxRowsPerTrack) {
        track.busy_until_ns[i] = event.end_ns;
        return track.tids[i];
      }
    }
    const int tid = num_rows_++;
    track.tids.push_back(tid);
    track.busy_until_ns.push_back(event.end_ns);
    // Operations come first, then the rows of each lane and NIC together, in whatever order they first
    // appear.
    const int sort_index =
        (static_cast<int>(key.first) * 4096 + key.second + 1) * 64 + static_cast<int>(track.tids.size());
    const std::string name =
        track.tids.size() == 1 ? track_name(key) : fmt::format("{} ({})", track_name(key), track.tids.size());
    fmt::format_to(
        std::back_inserter(text_),
        ",\n{{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":{0},\"tid\":{1},\"args\":{{\"name\":\"{2}\"}}}}"
        ",\n{{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":{0},\"tid\":{1},\"args\":"
        "{{\"sort_index\":{3}}}}}",
        options_.rank, tid, name, sort_index);
    return tid;
  }

  void append_name(const TraceEvent& event) {
    auto out = std::back_inserter(text_);
    switch (event.kind) {
      case TraceEvent::Kind::kOperation:
        fmt::format_to(out, "operation {}", event.sequence);
        return;
      case TraceEvent::Kind::kWait:
        fmt::format_to(out, "wait for rank {}", event.peer);
        return;
      case TraceEvent::Kind::kWire:
        fmt::format_to(out, "to rank {}", event.peer);
        return;
      case TraceEvent::Kind::kReduce:
        fmt::format_to(out, "reduce");
        return;
      case TraceEvent::Kind::kUpdate:
        if (event.members == 0)
          fmt::format_to(out, "update of rank {}: handed back", event.peer);
        else
          fmt::format_to(out, "update of rank {}, group {}", event.peer, event.sequence);
        return;
      case TraceEvent::Kind::kValues:
        fmt::format_to(out, "values to {} nodes", event.members);
        return;
    }
  }

  void append_event(const TraceEvent& event) {
    const int tid = tid_for(event);
    auto out = std::back_inserter(text_);
    fmt::format_to(out, ",\n{{\"name\":\"");
    append_name(event);
    fmt::format_to(out, "\",\"cat\":\"{}\",\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":", category(event.kind),
                   options_.rank, tid);
    append_us(text_, event.begin_ns);
    fmt::format_to(out, ",\"dur\":");
    append_us(text_, event.end_ns - event.begin_ns);
    fmt::format_to(out, ",\"args\":{{\"communicator\":\"{:#x}\",\"sequence\":{}", event.communicator,
                   event.sequence);
    const std::pair<const char*, std::int64_t> fields[] = {
        {"lane", event.lane},       {"stage", event.stage}, {"round", event.round},
        {"level", event.level},     {"rail", event.rail},   {"peer", event.peer},
        {"segment", event.segment}, {"shard", event.shard}, {"members", event.members},
        {"version", event.version}, {"delay", event.delay}};
    for (const auto& [name, value] : fields) {
      if (value >= 0) fmt::format_to(out, ",\"{}\":{}", name, value);
    }
    fmt::format_to(out, ",\"bytes\":{}}}}}", event.bytes);
  }

  void write_buffer() {
    if (pid_ != getpid()) {
      // A forked child has a copy of the buffer; the parent writes it.
      buffer_.clear();
      return;
    }
    text_.clear();
    for (const TraceEvent& event : buffer_) append_event(event);
    buffer_.clear();
    write_all({text_.data(), text_.size()});
  }

  void write_all(std::string_view text) {
    while (fd_ >= 0 && !text.empty()) {
      const ssize_t written = write(fd_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        log::error(log::Subsystem::kExec, "trace: cannot write {}: {}; the trace ends here", path_,
                   std::strerror(errno));
        close(std::exchange(fd_, -1));
        return;
      }
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  int fd_;
  std::string path_;
  ChromeTraceOptions options_;
  pid_t pid_;
  std::mutex mutex_;
  std::vector<TraceEvent> buffer_;
  fmt::memory_buffer text_;
  std::map<TrackKey, Track> tracks_;
  int num_rows_ = 1;  // tid 0 belongs to the process' own metadata
  std::int64_t oldest_buffered_ns_ = 0;
};

}  // namespace

Result<std::unique_ptr<TraceSink>> make_chrome_trace(const ChromeTraceOptions& options) {
  if (options.directory.empty())
    return fail(Code::kInvalidArgument, "trace: the directory is empty; set HIPS_TRACE to a directory");
  if (options.max_buffered_events == 0) {
    return fail(Code::kInvalidArgument, "trace: max_buffered_events is 0; at least 1 is needed");
  }
  std::error_code error;
  std::filesystem::create_directories(options.directory, error);
  const std::string path =
      (std::filesystem::path(options.directory) / fmt::format("trace-{}.json", options.rank)).string();
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) {
    Status status =
        Status::error(Code::kSystem, fmt::format("trace: cannot create {}: {}", path, std::strerror(errno)),
                      Scope::kProcess);
    status.sys_errno = errno;
    return fail(std::move(status));
  }
  return std::make_unique<ChromeTrace>(fd, path, options);
}

}  // namespace hips

#include "tools/hips-write/session.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/os/replace_file.hpp"
#include "tools/hips-write/agreement.hpp"
#include "tools/hips-write/control.hpp"
#include "tools/hips-write/link.hpp"
#include "tools/hips-write/pattern.hpp"
#include "tools/hips-write/report.hpp"
#include "tools/hips-write/slots.hpp"
#include "tools/hips-write/ticks.hpp"

namespace hips::write {
namespace {

constexpr int kConnectTimeoutMs = 10'000;
/// For an exchange that the other end answers at once.
constexpr int kExchangeTimeoutMs = 30'000;
constexpr int kOverheadRounds = 3;
constexpr useconds_t kMinClockUs = 20'000;

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class WriteSession {
 public:
  explicit WriteSession(const WriteOptions& options) : options_(options) {}

  Status run() {
    if (Status status = connect(); !status.ok()) return status;
    if (full()) {
      print(banner_text(options_, front().port()));
      print(address_text(options_, "local", front().local()));
      print(address_text(options_, "remote", front().remote()));
      print(rule_text());
      print(options_.overhead ? overhead_header_text(options_) : header_text(options_));
    }
    for (const std::uint64_t bytes : options_.sizes()) {
      Status status = options_.overhead                              ? overhead_row(bytes)
                      : options_.program == WriteProgram::kBandwidth ? bandwidth_row(bytes)
                                                                     : latency_row(bytes);
      if (!status.ok()) return status;
    }
    if (full()) print(rule_text());
    if (options_.report_both) print(directions_text(options_, mine_, theirs_));
    if (options_.validate && full())
      print(fmt::format(" Data validation : {} bytes compared, {} wrong\n", compared_, wrong_));
    if (wrong_ > 0) {
      return Status::error(Code::kInternal,
                           fmt::format("data validation: {} of {} bytes received at the two ends are wrong",
                                       wrong_, compared_));
    }
    return Status::success();
  }

 private:
  [[nodiscard]] bool full() const { return options_.output == Output::kFull; }
  [[nodiscard]] bool sends() const { return !options_.is_server() || options_.bidirectional; }
  [[nodiscard]] bool receives() const { return options_.is_server() || options_.bidirectional; }
  [[nodiscard]] WriteLink& front() { return raw_ != nullptr ? *raw_ : *put_; }

  Status connect() {
    auto port = choose_port(options_);
    if (!port) return std::move(port).error();
    if (options_.raw || options_.overhead) {
      auto link = make_raw_link(options_, *port);
      if (!link) return std::move(link).error();
      raw_ = *std::move(link);
    }
    if (!options_.raw) {
      auto link = make_put_link(options_, *port);
      if (!link) return std::move(link).error();
      put_ = *std::move(link);
    }
    auto control = options_.is_server()
                       ? ControlConnection::serve(options_.port,
                                                  [this](std::int32_t /*port*/) {
                                                    if (full()) print(waiting_text());
                                                  })
                       : ControlConnection::connect(options_.host, options_.port, kConnectTimeoutMs);
    if (!control) return std::move(control).error();
    control_ = std::make_unique<ControlConnection>(*std::move(control));
    monitor_ = std::make_unique<PeerMonitor>(*control_);
    auto theirs = control_->exchange(agreement_text(options_), kExchangeTimeoutMs);
    if (!theirs) return std::move(theirs).error();
    if (Status status = check_agreement(options_, *theirs); !status.ok()) return status;
    for (WriteLink* link : {raw_.get(), put_.get()}) {
      if (link == nullptr) continue;
      auto address = control_->exchange(link->address(), kExchangeTimeoutMs);
      if (!address) return std::move(address).error();
      if (Status status = link->connect(*address, *monitor_); !status.ok()) return status;
    }
    return barrier();
  }

  /// Waits for the other end. No time limit: its run may take long, and TCP detects when its node is lost.
  Status barrier() {
    auto met = control_->exchange("", -1);
    return met ? Status::success() : std::move(met).error();
  }

  /// Exchanges results after a run.
  Result<std::vector<double>> exchange(std::initializer_list<double> mine) {
    std::string text;
    for (const double value : mine) text += fmt::format("{} ", value);
    auto theirs = control_->exchange(text, -1);
    if (!theirs) return fail(std::move(theirs).error());
    std::istringstream words(*theirs);
    std::vector<double> values;
    for (double value = 0; words >> value;) values.push_back(value);
    if (values.size() != mine.size()) return fail(Code::kMismatch, "the other end runs another version");
    return values;
  }

  [[nodiscard]] Phases phases() {
    if (options_.duration_s == 0) return Phases(options_.iterations);
    // run_session() made rate_ long enough ago for an exact rate.
    const double per_s = rate_.ticks_per_us() * 1e6;
    return {static_cast<std::uint64_t>(options_.duration_s * per_s),
            static_cast<std::uint64_t>(options_.margin_s * per_s)};
  }

  /// Differs for each direction, size and run, so that old data is never mistaken for new.
  [[nodiscard]] std::uint64_t seed(std::uint64_t bytes, bool of_server) const {
    return 2 * (bytes + run_ * 0x10001U) + (of_server ? 1 : 0);
  }

  void prepare(WriteLink& link, std::uint64_t bytes) {
    ++run_;
    for (std::uint32_t i = 0; options_.validate && i < link.num_buffers(); ++i) {
      fill_pattern(link.source(i), seed(bytes, options_.is_server()));
      invert_pattern(link.target(i), seed(bytes, !options_.is_server()));
    }
    if (options_.program == WriteProgram::kLatency) link.target(0)[bytes - 1] = kNotArrived;
  }

  /// Compares the `per_buffer` messages of `bytes` that arrived in each buffer of this end, if any did.
  Status validate(WriteLink& link, std::uint64_t bytes, std::uint64_t per_buffer, bool came) {
    if (!options_.validate) return Status::success();
    const Slots slots(bytes);
    const bool latency = options_.program == WriteProgram::kLatency;
    // The last byte of a ping-pong with bare requests counts the messages.
    const std::size_t size = bytes - (latency && &link == raw_.get() ? 1 : 0);
    // A list of bare requests is posted again and again as it is.
    const bool is_list = &link == raw_.get() && options_.post_list > 1;
    const std::uint64_t used = latency ? 1
                                       : std::min({per_buffer, std::uint64_t{slots.count()},
                                                   is_list ? std::uint64_t{options_.post_list} : UINT64_MAX});
    double compared = 0, wrong = 0;
    for (std::uint32_t i = 0; came && i < link.num_buffers(); ++i) {
      for (std::uint64_t slot = 0; slot < used; ++slot) {
        compared += static_cast<double>(size);
        wrong += static_cast<double>(
            count_wrong_bytes(link.target(i), slots.offset(slot), size, seed(bytes, !options_.is_server())));
      }
    }
    auto theirs = exchange({compared, wrong});
    if (!theirs) return std::move(theirs).error();
    compared_ += static_cast<std::uint64_t>(compared + (*theirs)[0]);
    wrong_ += static_cast<std::uint64_t>(wrong + (*theirs)[1]);
    return Status::success();
  }

  /// Runs a stream. Returns the result of this end and that of the other end.
  Result<std::pair<Bandwidth, Bandwidth>> bandwidth(WriteLink& link, std::uint64_t bytes) {
    Stream run{.bytes = bytes, .phases = Phases(options_.tx_depth), .sends = sends(), .receives = receives()};
    if (options_.warm_up) {
      if (Status status = barrier(); !status.ok()) return fail(std::move(status));
      auto samples = link.stream(run, *monitor_);
      if (!samples) return fail(std::move(samples).error());
    }
    prepare(link, bytes);
    run.phases = phases();
    run.stamps = options_.wants_peak();
    if (Status status = barrier(); !status.ok()) return fail(std::move(status));
    auto samples = link.stream(run, *monitor_);
    if (!samples) return fail(std::move(samples).error());
    if (!sends()) *samples = {};
    Bandwidth mine = bandwidth_of(*samples, bytes, rate_.ticks_per_us(), options_.report_gbits);
    auto theirs = exchange({static_cast<double>(mine.count), mine.peak, mine.average, mine.million_per_s});
    if (!theirs) return fail(std::move(theirs).error());
    Bandwidth other{.bytes = bytes,
                    .count = static_cast<std::uint64_t>((*theirs)[0]),
                    .peak = (*theirs)[1],
                    .average = (*theirs)[2],
                    .million_per_s = (*theirs)[3]};
    const std::uint64_t came = other.count / link.num_buffers();
    if (Status status = validate(link, bytes, came, receives()); !status.ok()) return fail(std::move(status));
    return std::pair(mine, other);
  }

  Status bandwidth_row(std::uint64_t bytes) {
    auto both = bandwidth(front(), bytes);
    if (!both) return std::move(both).error();
    std::tie(mine_, theirs_) = *both;
    Bandwidth row = options_.is_server() && !options_.bidirectional ? theirs_ : mine_;
    if (options_.bidirectional) {
      row.peak += theirs_.peak;
      row.average += theirs_.average;
      row.million_per_s += theirs_.million_per_s;
    }
    print(row_text(options_, row));
    return write_json(json_text(options_, front().port(), row));
  }

  Result<Samples> ping_pong(WriteLink& link, std::uint64_t bytes) {
    prepare(link, bytes);
    const PingPong run{.bytes = bytes, .phases = phases(), .first = !options_.is_server()};
    if (Status status = barrier(); !status.ok()) return fail(std::move(status));
    auto samples = link.ping_pong(run, *monitor_);
    if (!samples) return fail(std::move(samples).error());
    if (Status status = barrier(); !status.ok()) return fail(std::move(status));
    if (Status status = validate(link, bytes, 1, true); !status.ok()) return fail(std::move(status));
    return samples;
  }

  Status latency_row(std::uint64_t bytes) {
    auto samples = ping_pong(front(), bytes);
    if (!samples) return std::move(samples).error();
    if (options_.duration_s > 0) {
      const LatencyOverTime row = latency_over_time(*samples, bytes, rate_.ticks_per_us());
      print(row_text(options_, row));
      return write_json(json_text(options_, front().port(), row));
    }
    std::vector<double> trips = half_round_trips(*samples, options_.cycles ? 1 : rate_.ticks_per_us());
    if (options_.unsorted) print(round_trips_text(options_, trips));
    if (options_.histogram) {
      std::sort(trips.begin(), trips.end());
      // As in perftest, without the slowest, which no statistic includes.
      print(round_trips_text(options_, {trips.begin(), trips.end() - kIgnoredSlowest}));
    }
    if ((options_.unsorted || options_.histogram) && full()) print(rule_text() + header_text(options_));
    const Latency row = latency_of(std::move(trips), bytes, samples->count);
    print(row_text(options_, row));
    return write_json(json_text(options_, front().port(), row));
  }

  Status overhead_row(std::uint64_t bytes) {
    std::array<std::vector<double>, 2> figures;  // of bare requests, of puts
    std::uint64_t count = 0;
    for (int round = 0; round < (options_.duration_s > 0 ? 1 : kOverheadRounds); ++round) {
      for (std::size_t which = 0; which < figures.size(); ++which) {
        auto figure =
            which == 0 ? overhead_figure(*raw_, bytes, count) : overhead_figure(*put_, bytes, count);
        if (!figure) return std::move(figure).error();
        figures[which].push_back(*figure);
      }
    }
    print(overhead_row_text(options_, bytes, count, median(figures[0]), median(figures[1])));
    return Status::success();
  }

  Result<double> overhead_figure(WriteLink& link, std::uint64_t bytes, std::uint64_t& count) {
    if (options_.program == WriteProgram::kBandwidth) {
      auto both = bandwidth(link, bytes);
      if (!both) return fail(std::move(both).error());
      const Bandwidth& row = options_.is_server() ? both->second : both->first;
      count = row.count;
      return row.average;
    }
    auto samples = ping_pong(link, bytes);
    if (!samples) return fail(std::move(samples).error());
    count = samples->count;
    const double unit = options_.cycles ? 1 : rate_.ticks_per_us();
    if (options_.duration_s > 0) return latency_over_time(*samples, bytes, unit).average_us;
    return latency_of(half_round_trips(*samples, unit), bytes, count).typical;
  }

  Status write_json(const std::string& text) {
    if (!options_.json) return Status::success();
    // Atomically: both ends may write the same file at the same time.
    Status status = replace_file(options_.json_file, text);
    if (!status.ok()) status.message = fmt::format("{} {}", options_.json_file, status.message);
    return status;
  }

  WriteOptions options_;
  TickRate rate_;
  std::unique_ptr<ControlConnection> control_;
  std::unique_ptr<PeerMonitor> monitor_;
  std::unique_ptr<WriteLink> raw_, put_;
  Bandwidth mine_, theirs_;
  std::uint64_t run_ = 0, compared_ = 0, wrong_ = 0;
};

}  // namespace

int run_session(const WriteOptions& options) {
  const std::int64_t start_ns = monotonic_ns();
  Status status;
  {
    WriteSession session(options);
    while (monotonic_ns() - start_ns < std::int64_t{kMinClockUs} * 1000) (void)usleep(kMinClockUs);
    status = session.run();
  }
  if (status.ok()) return 0;
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", options.name(), status.message.c_str());
  return status.code == Code::kInvalidArgument || status.code == Code::kUnsupported ||
                 status.code == Code::kMismatch
             ? 2
             : 1;
}

}  // namespace hips::write

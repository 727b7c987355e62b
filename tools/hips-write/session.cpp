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

#include "lib/base/replace_file.hpp"
#include "tools/hips-write/agreement.hpp"
#include "tools/hips-write/control.hpp"
#include "tools/hips-write/link.hpp"
#include "tools/hips-write/pattern.hpp"
#include "tools/hips-write/report.hpp"
#include "tools/hips-write/slots.hpp"
#include "tools/hips-write/ticks.hpp"

namespace hips::write {
namespace {

constexpr int kConnectMs = 10'000;
/// For what the other end does at once.
constexpr int kMeetMs = 30'000;
constexpr int kPriceTurns = 3;
constexpr useconds_t kLeastClockUs = 20'000;

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Session {
 public:
  explicit Session(const Options& options) : options_(options) {}

  Status run() {
    if (Status status = meet(); !status.ok()) return status;
    if (full()) {
      print(banner_text(options_, front().port()));
      print(address_text(options_, "local", front().local()));
      print(address_text(options_, "remote", front().remote()));
      print(rule_text());
      print(options_.price ? price_header_text(options_) : header_text(options_));
    }
    for (const std::uint64_t bytes : options_.sizes()) {
      Status status = options_.price                            ? price_row(bytes)
                      : options_.program == Program::kBandwidth ? bandwidth_row(bytes)
                                                                : latency_row(bytes);
      if (!status.ok()) return status;
    }
    if (full()) print(rule_text());
    if (options_.report_both) print(directions_text(options_, mine_, theirs_));
    if (options_.validate && full())
      print(fmt::format(" Data validation : {} bytes compared, {} wrong\n", compared_, wrong_));
    if (wrong_ > 0) {
      return Status::error(Code::kInternal,
                           fmt::format("data validation: {} of {} bytes that arrived here or at the "
                                       "other end are wrong",
                                       wrong_, compared_));
    }
    return Status::success();
  }

 private:
  [[nodiscard]] bool full() const { return options_.output == Output::kFull; }
  [[nodiscard]] bool sends() const { return !options_.is_server() || options_.bidirectional; }
  [[nodiscard]] bool receives() const { return options_.is_server() || options_.bidirectional; }
  [[nodiscard]] Link& front() { return raw_ != nullptr ? *raw_ : *put_; }

  Status meet() {
    auto port = choose_port(options_);
    if (!port) return std::move(port).error();
    if (options_.raw || options_.price) {
      auto link = make_raw_link(options_, *port);
      if (!link) return std::move(link).error();
      raw_ = *std::move(link);
    }
    if (!options_.raw) {
      auto link = make_put_link(options_, *port);
      if (!link) return std::move(link).error();
      put_ = *std::move(link);
    }
    auto control = options_.is_server() ? Control::serve(options_.port,
                                                         [this] {
                                                           if (full()) print(waiting_text());
                                                         })
                                        : Control::connect(options_.host, options_.port, kConnectMs);
    if (!control) return std::move(control).error();
    control_ = std::make_unique<Control>(*std::move(control));
    watch_ = std::make_unique<Watch>(*control_);
    auto theirs = control_->exchange(agreement_text(options_), kMeetMs);
    if (!theirs) return std::move(theirs).error();
    if (Status status = check_agreement(options_, *theirs); !status.ok()) return status;
    for (Link* link : {raw_.get(), put_.get()}) {
      if (link == nullptr) continue;
      auto address = control_->exchange(link->address(), kMeetMs);
      if (!address) return std::move(address).error();
      if (Status status = link->connect(*address, *watch_); !status.ok()) return status;
    }
    return barrier();
  }

  /// Both ends are here. No limit in time: the other end may be at something long, and is watched by TCP.
  Status barrier() {
    auto met = control_->exchange("", -1);
    return met ? Status::success() : std::move(met).error();
  }

  /// What both ends say after a run.
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
    // The first look at the clock was long enough ago to be divided by.
    const double per_s = rate_.ticks_per_us() * 1e6;
    return {static_cast<std::uint64_t>(options_.duration_s * per_s),
            static_cast<std::uint64_t>(options_.margin_s * per_s)};
  }

  /// The two directions differ, and each size, so that old data is never taken for new.
  [[nodiscard]] std::uint64_t seed(std::uint64_t bytes, bool of_server) const {
    return 2 * (bytes + run_ * 0x10001U) + (of_server ? 1 : 0);
  }

  void prepare(Link& link, std::uint64_t bytes) {
    ++run_;
    for (std::uint32_t i = 0; options_.validate && i < link.num_buffers(); ++i) {
      fill_pattern(link.source(i), seed(bytes, options_.is_server()));
      spoil_pattern(link.target(i), seed(bytes, !options_.is_server()));
    }
    if (options_.program == Program::kLatency) link.target(0)[bytes - 1] = kNothingYet;
  }

  /// `per_buffer` messages of `bytes` came into each buffer of this end.
  Status validate(Link& link, std::uint64_t bytes, std::uint64_t per_buffer, bool came) {
    if (!options_.validate) return Status::success();
    const Slots slots(bytes);
    const bool latency = options_.program == Program::kLatency;
    // The last byte of a bare ping-pong counts the messages.
    const std::size_t size = bytes - (latency && &link == raw_.get() ? 1 : 0);
    const std::uint64_t used = latency ? 1 : std::min<std::uint64_t>(per_buffer, slots.count());
    double compared = 0, wrong = 0;
    for (std::uint32_t i = 0; came && i < link.num_buffers(); ++i) {
      for (std::uint64_t slot = 0; slot < used; ++slot) {
        compared += static_cast<double>(size);
        wrong += static_cast<double>(
            count_wrong(link.target(i), slots.offset(slot), size, seed(bytes, !options_.is_server())));
      }
    }
    auto theirs = exchange({compared, wrong});
    if (!theirs) return std::move(theirs).error();
    compared_ += static_cast<std::uint64_t>(compared + (*theirs)[0]);
    wrong_ += static_cast<std::uint64_t>(wrong + (*theirs)[1]);
    return Status::success();
  }

  /// Mine and the other end's, where it sends.
  Result<std::pair<Bandwidth, Bandwidth>> bandwidth(Link& link, std::uint64_t bytes) {
    Stream run{.bytes = bytes, .phases = Phases(options_.tx_depth), .sends = sends(), .receives = receives()};
    if (options_.warm_up) {
      if (Status status = barrier(); !status.ok()) return fail(std::move(status));
      auto samples = link.stream(run, *watch_);
      if (!samples) return fail(std::move(samples).error());
    }
    prepare(link, bytes);
    run.phases = phases();
    run.stamps = options_.wants_peak();
    if (Status status = barrier(); !status.ok()) return fail(std::move(status));
    auto samples = link.stream(run, *watch_);
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

  Result<Samples> ping_pong(Link& link, std::uint64_t bytes) {
    prepare(link, bytes);
    const PingPong run{.bytes = bytes, .phases = phases(), .first = !options_.is_server()};
    if (Status status = barrier(); !status.ok()) return fail(std::move(status));
    auto samples = link.ping_pong(run, *watch_);
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
    std::vector<double> trips = half_trips(*samples, options_.cycles ? 1 : rate_.ticks_per_us());
    if (options_.unsorted) print(trips_text(options_, trips));
    if (options_.histogram) {
      std::sort(trips.begin(), trips.end());
      // As perftest: the slowest, which count for nothing, are left out here.
      print(trips_text(options_, {trips.begin(), trips.end() - kTail}));
    }
    if ((options_.unsorted || options_.histogram) && full()) print(rule_text() + header_text(options_));
    const Latency row = latency_of(std::move(trips), bytes, samples->count);
    print(row_text(options_, row));
    return write_json(json_text(options_, front().port(), row));
  }

  Status price_row(std::uint64_t bytes) {
    std::array<std::vector<double>, 2> figures;  // of bare requests, of puts
    std::uint64_t count = 0;
    for (int turn = 0; turn < (options_.duration_s > 0 ? 1 : kPriceTurns); ++turn) {
      for (std::size_t which = 0; which < figures.size(); ++which) {
        auto figure = which == 0 ? price_figure(*raw_, bytes, count) : price_figure(*put_, bytes, count);
        if (!figure) return std::move(figure).error();
        figures[which].push_back(*figure);
      }
    }
    print(price_row_text(options_, bytes, count, median(figures[0]), median(figures[1])));
    return Status::success();
  }

  Result<double> price_figure(Link& link, std::uint64_t bytes, std::uint64_t& count) {
    if (options_.program == Program::kBandwidth) {
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
    return latency_of(half_trips(*samples, unit), bytes, count).typical;
  }

  Status write_json(const std::string& text) {
    if (!options_.json) return Status::success();
    // Both ends may write the same file at the same time.
    Status status = replace_file(options_.json_file, text);
    if (!status.ok()) status.message = fmt::format("{} {}", options_.json_file, status.message);
    return status;
  }

  Options options_;
  TickRate rate_;
  std::unique_ptr<Control> control_;
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<Link> raw_, put_;
  Bandwidth mine_, theirs_;
  std::uint64_t run_ = 0, compared_ = 0, wrong_ = 0;
};

}  // namespace

int run_session(const Options& options) {
  const std::int64_t start_ns = monotonic_ns();
  Status status;
  {
    Session session(options);
    while (monotonic_ns() - start_ns < std::int64_t{kLeastClockUs} * 1000) (void)usleep(kLeastClockUs);
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

#include "tools/hips-allreduce-perf/report.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <hips/hips.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <string_view>

#include "lib/base/result.hpp"

namespace hips::perf {
namespace {

constexpr int kJsonVersion = 2;
constexpr std::string_view kProgram = "hips-allreduce-perf";

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

/// The variables of HiPS. The rest of the environment may be private.
nlohmann::ordered_json hips_environment() {
  auto list = nlohmann::ordered_json::array();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("HIPS_") && !text.starts_with("HIPS_JOB_TOKEN")) list.push_back(text);
  }
  return list;
}

std::string half_row(const Measured& measured) {
  const std::string wrong =
      measured.num_wrong ? fmt::format("{:>6g}", static_cast<double>(*measured.num_wrong)) : "   N/A";
  std::string row = fmt::format("  {}  {}  {}  {}", figure(measured.time_us, 7), figure(measured.alg_bw, 6),
                                figure(measured.bus_bw, 6), wrong);
  if (measured.each)
    row += fmt::format("  {}  {}  {}  {}", figure(measured.each->min_us, 7), figure(measured.each->max_us, 7),
                       figure(measured.each->p99_us, 7), figure(measured.each->deviation_percent, 6));
  return row;
}

nlohmann::ordered_json half_json(const Measured& measured) {
  nlohmann::ordered_json json = {{"time", measured.time_us},
                                 {"alg_bw", measured.alg_bw},
                                 {"bus_bw", measured.bus_bw},
                                 {"nwrong", nullptr}};
  if (measured.num_wrong) json["nwrong"] = static_cast<double>(*measured.num_wrong);
  if (measured.each)
    json["each_call"] = {{"min", measured.each->min_us}, {"p50", measured.each->median_us},
                         {"p90", measured.each->p90_us}, {"p99", measured.each->p99_us},
                         {"max", measured.each->max_us}, {"cv_percent", measured.each->deviation_percent}};
  return json;
}

/// Opens the first of FILE, FILE.0, FILE.1, ... that does not exist, so that earlier results are kept.
int open_new(const std::string& wanted, std::string& path) {
  path = wanted;
  struct stat there {};
  if (stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
    return open(path.c_str(), O_WRONLY | O_CLOEXEC);
  for (int i = 0;; ++i) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd >= 0 || errno != EEXIST) return fd;
    path = fmt::format("{}.{}", wanted, i);
  }
}

}  // namespace

std::string figure(double value, int width) {
  int digits = 0;
  for (double limit = 1; value >= limit && digits < 20; limit *= 10) ++digits;
  if (digits < width - 2) return fmt::format("{:{}.2f}", value, width);
  if (digits < width - 1) return fmt::format("{:{}.1f}", value, width);
  if (digits < width + 1) return fmt::format("{:{}.0f}", value, width);
  return fmt::format("{:{}.{}e}", value, width, width >= 7 ? 1 : 0);
}

PerfReport::PerfReport(const PerfOptions& options, std::span<const char* const> args) : options_(options) {
  json_["version"] = kJsonVersion;
  json_["start_time"] = now();
  json_["args"] = std::vector<std::string>(args.begin(), args.end());
  json_["env"] = hips_environment();
  json_["hips_version"] = hips_version();
}

void PerfReport::begin(const std::string& plan, const OtherAllreduce* other,
                       const std::vector<RankProcess>& processes) {
  const std::string name = other != nullptr ? other->name() : "";
  if (other != nullptr) other_ = other->label();
  if (!name.empty()) json_[other_ == "MPI" ? "host_mpi" : "compared_with"] = name;
  print_settings(plan, name, processes);
  add_config(plan, processes);
  json_["results"] = nlohmann::ordered_json::array();
  print_columns();
  std::fflush(stdout);
}

void PerfReport::print_settings(const std::string& plan, const std::string& other,
                                const std::vector<RankProcess>& processes) const {
  const bool factor = options_.step_factor > 1;
  fmt::print("# hips-allreduce-perf version {} hips-library={}\n", hips_version(), hips_version());
  fmt::print("# Collective test starting: {}\n", kProgram);
  fmt::print(
      "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg iters: 1 "
      "validation: {} graph: 0 unalign: 0\n",
      options_.min_bytes, options_.max_bytes, factor ? options_.step_factor : options_.step_bytes,
      factor ? "factor" : "bytes", options_.warmup_iters, options_.iters, options_.check);
  fmt::print("#\n# Plan: {}\n", plan);
  if (compares() || options_.bound)
    fmt::print("# Alternating, {} rounds of {} calls: HiPS{}{}\n", options_.rounds, options_.iters,
               other.empty() ? "" : ", " + other, options_.bound ? ", copying by all ranks" : "");
  fmt::print("#\n# Using devices\n");
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    fmt::print("#  Rank {:2} Group  0 Pid {:6} on {:>10} device  0 [cpu] host memory\n", rank,
               processes[rank].pid, processes[rank].host);
  }
}

void PerfReport::add_config(const std::string& plan, const std::vector<RankProcess>& processes) {
  const bool factor = options_.step_factor > 1;
  auto& config = json_["config"];
  config = {{"nthreads", 1},
            {"ngpus", 1},
            {"minimum_bytes", options_.min_bytes},
            {"maximum_bytes", options_.max_bytes},
            {factor ? "step_factor" : "step_bytes", factor ? options_.step_factor : options_.step_bytes},
            {"warmup_iters", options_.warmup_iters},
            {"iterations", options_.iters},
            {"aggregated_iterations", 1},
            {"validation", options_.check},
            {"graph", 0},
            {"plan", plan}};
  config["devices"] = nlohmann::ordered_json::array();
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    config["devices"].push_back({{"rank", rank},
                                 {"group", 0},
                                 {"pid", processes[rank].pid},
                                 {"hostname", processes[rank].host},
                                 {"device", 0},
                                 {"device_hex", "cpu"},
                                 {"device_info", "host memory"}});
  }
}

void PerfReport::print_columns() const {
  // The columns of nccl-tests, then those of comparisons and overlap.
  const auto half = [&](std::string_view time, std::string_view alg, std::string_view bus,
                        std::string_view wrong, std::array<std::string_view, 4> each) {
    std::string text = fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", time, alg, bus, wrong);
    if (options_.each_call)
      text += fmt::format("  {:>7}  {:>7}  {:>7}  {:>6}", each[0], each[1], each[2], each[3]);
    return text;
  };
  const std::string_view wider = options_.each_call ? "                                 " : "";
  fmt::print(
      "#\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}           out-of-place          {}             in-place      "
      "  "
      "  {}{}\n",
      "", "", "", "", "", wider, wider,
      compares() || options_.bound ? "       out-of-place, alternating" : "");
  std::string names = half("time", "algbw", "busbw", "#wrong", {"i_min", "i_max", "i_p99", "i_cv%"});
  std::string units = half("(us)", "(GB/s)", "(GB/s)", "", {"(us)", "(us)", "(us)", ""});
  names += names;
  units += units;
  if (compares()) {
    names += fmt::format("  {:>7}  {:>6}  {:>13}", other_, "ratio", "of rounds");
    units += fmt::format("  {:>7}  {:>6}  {:>13}", "(us)", "", "low - high");
  }
  if (options_.bound) {
    names += fmt::format("  {:>7}  {:>6}", "copy", "share");
    units += fmt::format("  {:>7}  {:>6}", "(us)", "(%)");
  }
  if (options_.overlap) {
    names += fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "overall", "compute", "pure", "overlap");
    units += fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "(us)", "(us)", "(us)", "(%)");
  }
  fmt::print("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}\n", "size", "count", "type", "redop", "root", names);
  fmt::print("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}\n", "(B)", "(elements)", "", "", "", units);
}

void PerfReport::row(const Case& test, const Measured& out_of_place, const Measured& in_place,
                     const std::optional<Compared>& compared, const std::optional<Overlap>& overlap) {
  std::string more;
  if (compared && compares())
    more += fmt::format("  {}  {:>6.2f}  {:>5.2f} - {:>5.2f}", figure(compared->other_us, 7), compared->ratio,
                        compared->ratio_low, compared->ratio_high);
  if (compared && options_.bound)
    more += fmt::format("  {}  {:>6.1f}", figure(compared->bound_us, 7), compared->bound_percent);
  if (overlap)
    more += fmt::format("  {}  {}  {}  {:>7.2f}", figure(overlap->overall_us, 7),
                        figure(overlap->compute_us, 7), figure(overlap->pure_us, 7), overlap->percent);
  fmt::print("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}{}\n", test.bytes, test.count(), type_name(test.type),
             to_string(test.op), -1, half_row(out_of_place), half_row(in_place), more);
  std::fflush(stdout);
  json_["results"].push_back({{"size", test.bytes},
                              {"count", test.count()},
                              {"type", type_name(test.type)},
                              {"redop", to_string(test.op)},
                              {"root", fmt::format("{:6}", -1)},
                              {"out_of_place", half_json(out_of_place)},
                              {"in_place", half_json(in_place)}});
  if (compared && compares()) {
    json_["results"].back()["host_time"] = compared->other_us;
    json_["results"].back()["ratio"] = compared->ratio;
    json_["results"].back()["ratio_low"] = compared->ratio_low;
    json_["results"].back()["ratio_high"] = compared->ratio_high;
    sum_log_ratio_ += std::log(compared->ratio);
    ++num_rows_;
    constexpr double kNoise = 0.05;
    if (compared->ratio < 1 - kNoise) ++num_slower_;
  }
  if (compared && options_.bound) {
    json_["results"].back()["bound_time"] = compared->bound_us;
    json_["results"].back()["bound_percent"] = compared->bound_percent;
  }
  if (overlap)
    json_["results"].back()["overlap"] = {{"overall", overlap->overall_us},
                                          {"compute", overlap->compute_us},
                                          {"pure", overlap->pure_us},
                                          {"percent", overlap->percent}};
  for (const Measured& half : {out_of_place, in_place}) {
    num_wrong_ += half.num_wrong.value_or(0);
    sum_bus_bw_ += half.bus_bw;
    ++num_measured_;
  }
}

void PerfReport::end() {
  const double average = num_measured_ > 0 ? sum_bus_bw_ / static_cast<double>(num_measured_) : 0;
  fmt::print("# {:<20} : {} {}\n", "Out of bounds values", num_wrong_, num_wrong_ == 0 ? "OK" : "FAILED");
  fmt::print("# {:<20} : {:g} \n#\n", "Avg bus bandwidth", average);
  summarize_comparison();
  fmt::print("# Collective test concluded: {}\n", kProgram);
  json_["out_of_bounds"] = {{"count", num_wrong_}, {"okay", num_wrong_ == 0 ? "true" : "false"}};
  json_["average_bus_bandwidth"] = {{"bandwidth", average}, {"okay", "unchecked"}};
  json_["end_time"] = now();
  if (!options_.json_file.empty()) write_json();
}

void PerfReport::summarize_comparison() {
  if (num_rows_ == 0) return;
  const double mean = std::exp(sum_log_ratio_ / static_cast<double>(num_rows_));
  fmt::print(
      "# {:<20} : {:.2f} times as fast as {}, geometric mean of {} rows; slower by more than 5 % in {}\n#\n",
      "Compared", mean, other_, num_rows_, num_slower_);
  json_["compared"] = {{"geometric_mean_ratio", mean}, {"rows", num_rows_}, {"slower", num_slower_}};
}

void PerfReport::write_json() {
  std::string path;
  const int fd = open_new(options_.json_file, path);
  const std::string text = json_.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  int cause = fd >= 0 ? 0 : errno;
  for (std::size_t at = 0; cause == 0 && at < text.size();) {
    const ssize_t written = write(fd, text.data() + at, text.size() - at);
    if (written > 0)
      at += static_cast<std::size_t>(written);
    else if (written == 0 || errno != EINTR)
      cause = written == 0 ? ENOSPC : errno;
  }
  if (fd >= 0 && close(fd) != 0 && cause == 0) cause = errno;
  if (cause != 0) {
    // A part of it would be no JSON.
    struct stat made {};
    if (fd >= 0 && stat(path.c_str(), &made) == 0 && S_ISREG(made.st_mode)) unlink(path.c_str());
    throw Error(Status::error(Code::kSystem, fmt::format("cannot write {}: {}", path, std::strerror(cause))));
  }
  fmt::print("# Writing JSON output to {}\n", path);
}

}  // namespace hips::perf

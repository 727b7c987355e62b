#include "tools/hips-write/report.hpp"

#include <utility>

#include <fmt/format.h>

namespace hips::write {
namespace {

/// Smaller values of Gb/sec are printed with more digits.
constexpr double kSmallGbits = 0.1;

const char* on_off(bool value) {
  return value ? "ON" : "OFF";
}

bool newer(const WriteOptions& options) {
  return options.format == Format::kNewer;
}

/// perftest prints the settings of a sender only at the ends that send.
bool sends(const WriteOptions& options) {
  return !options.is_server() || options.bidirectional;
}

std::string_view unit(const WriteOptions& options) {
  return options.report_gbits ? "Gb/sec" : newer(options) ? "MiB/sec" : "MB/sec";
}

std::string_view time_unit(const WriteOptions& options) {
  return options.cycles ? "cycles" : "usec";
}

std::string_view requests_text(const WriteOptions& options) {
  return options.overhead ? "bare and HiPS notified put" : options.raw ? "bare" : "HiPS notified put";
}

/// How the queue pairs are connected. The settings are exchanged over TCP in both cases.
const char* exchange_text(const WriteOptions& options) {
  return options.rdma_cm ? "rdma_cm" : "Ethernet";
}

}  // namespace

std::string waiting_text() {
  return "\n************************************\n* Waiting for client to connect... *\n"
         "************************************\n";
}

std::string rule_text() {
  return std::string(87, '-') + "\n";
}

std::string banner_text(const WriteOptions& options, const PortDescription& port) {
  const bool bandwidth = options.program == WriteProgram::kBandwidth;
  std::string text = rule_text();
  text += fmt::format("                    RDMA_Write {}{}{} Test\n",
                      options.bidirectional ? "Bidirectional " : "",
                      options.post_list > 1 ? "Post List " : "", bandwidth ? "BW" : "Latency");
  text += fmt::format(" Dual-port       : OFF\t\tDevice         : {}\n", port.device);
  text +=
      fmt::format(" Number of qps   : {}\t\tTransport type : {}\n", options.queue_pairs, port.transport_type);
  text += " Connection type : RC\t\tUsing SRQ      : OFF\n";
  text += fmt::format(" PCIe relax order: OFF{}\n", newer(options) ? "\t\tLock-free      : OFF" : "");
  text += fmt::format(" ibv_wr* API     : OFF{}\n", newer(options) ? "\t\tUsing DDP      : OFF" : "");
  if (sends(options)) text += fmt::format(" TX depth        : {}\n", options.tx_depth);
  if (options.post_list > 1) text += fmt::format(" Post List       : {}\n", options.post_list);
  if (bandwidth) text += fmt::format(" CQ Moderation   : {}\n", options.cq_moderation);
  text += fmt::format(" Mtu             : {}[B]\n", port.mtu);
  text += fmt::format(" Link type       : {}\n", port.link_type);
  text += fmt::format(" GID index       : {}\n", port.gid_index);
  text += fmt::format(" Max inline data : {}[B]\n", port.inline_bytes);
  text += fmt::format(" rdma_cm QPs\t : {}\n", on_off(options.rdma_cm));
  // The one line that perftest does not have.
  text += fmt::format(" Requests        : {}\n", requests_text(options));
  text += fmt::format(" Data ex. method : {}", exchange_text(options));
  if (options.rdma_cm && options.traffic_class != 0)
    text += fmt::format(" \tTOS    : {}", options.traffic_class);
  return text + "\n" + rule_text();
}

std::string address_text(const WriteOptions& options, std::string_view whose, const EndDescription& end) {
  std::string gid;
  for (std::size_t i = 0; i < end.gid.size(); ++i)
    gid += fmt::format("{}{:02}", i == 0 ? "" : ":", end.gid[i]);
  std::string text;
  // Like "%#04x" in C: no 0x before a zero.
  const auto hex = [](std::uint64_t value, int width) {
    return value == 0 ? fmt::format("{:0{}}", 0, width) : fmt::format("{:#0{}x}", value, width);
  };
  for (std::size_t i = 0; i < end.pairs.size(); ++i) {
    text += fmt::format(" {} address: LID {} QPN {} PSN {}", whose, hex(end.lid, 4),
                        hex(end.pairs[i].number, 6), hex(end.pairs[i].packet_number, 6));
    if (!options.rdma_cm)
      text += fmt::format(" RKey {} VAddr {}", hex(end.key, 8), hex(end.addresses[i], 16));
    text += fmt::format("\n GID: {}\n", gid);
  }
  return text;
}

std::string header_text(const WriteOptions& options) {
  if (options.program == WriteProgram::kBandwidth) {
    return fmt::format(" #bytes     #iterations    BW peak[{0}]    BW average[{0}]   MsgRate[Mpps]\n",
                       unit(options));
  }
  if (options.duration_s > 0) return " #bytes        #iterations       t_avg[usec]    tps average\n";
  return fmt::format(
      " #bytes #iterations    t_min[{0}]    t_max[{0}]  t_typical[{0}]    t_avg[{0}]    t_stdev[{0}]   "
      "99% percentile[{0}]   99.9% percentile[{0}] \n",
      time_unit(options));
}

std::string row_text(const WriteOptions& options, const Bandwidth& row) {
  if (options.output == Output::kBandwidth) return fmt::format("{:f}\n", row.average);
  if (options.output == Output::kMessageRate) return fmt::format("{:f}\n", row.million_per_s);
  if (options.report_gbits && row.average < kSmallGbits) {
    return fmt::format(" {:<7}    {}           {:<7.6f}            {:<7.6f}            {:<7.6f}\n", row.bytes,
                       row.count, row.peak, row.average, row.million_per_s);
  }
  return fmt::format(" {:<7}    {:<10}       {:<7.2f}            {:<7.2f}\t\t   {}{:<7.6f}\n", row.bytes,
                     row.count, row.peak, row.average, newer(options) ? "  " : "", row.million_per_s);
}

std::string row_text(const WriteOptions& options, const Latency& row) {
  if (options.output == Output::kLatency) return fmt::format("{:f}\n", row.average);
  return fmt::format(
      " {:<7} {}          {:<7.2f}        {:<7.2f}      {:<7.2f}  \t       {:<7.2f}     "
      "\t{:<7.2f}\t\t{:<7.2f} \t\t{:<7.2f}\n",
      row.bytes, row.count, row.min, row.max, row.typical, row.average, row.deviation, row.percentile_99,
      row.percentile_99_9);
}

std::string row_text(const WriteOptions& options, const LatencyOverTime& row) {
  if (options.output == Output::kLatency) return fmt::format("{:f}\n", row.average_us);
  return fmt::format(" {:<7}       {}            {:<7.2f}        {:<7.2f}\n", row.bytes, row.count,
                     row.average_us, row.per_second);
}

std::string directions_text(const WriteOptions& options, const Bandwidth& mine, const Bandwidth& theirs) {
  std::string text;
  for (const auto& [whose, row] : {std::pair("Local", &mine), std::pair("Remote", &theirs)}) {
    text += fmt::format("\n {} results: \n{}{}{}{}", whose, rule_text(), header_text(options),
                        row_text(options, *row), rule_text());
  }
  return text;
}

std::string round_trips_text(const WriteOptions& options, const std::vector<double>& trips) {
  std::string text = fmt::format("#, {}\n", time_unit(options));
  for (std::size_t i = 0; i < trips.size(); ++i) text += fmt::format("{}, {:g}\n", i + 1, trips[i]);
  return text;
}

std::string overhead_header_text(const WriteOptions& options) {
  const bool latency = options.program == WriteProgram::kLatency;
  const std::string_view figure = latency ? options.duration_s > 0 ? "t_avg" : "t_typical" : "BW average";
  const std::string_view of = latency ? time_unit(options) : unit(options);
  return fmt::format(
      " #bytes     #iterations    raw {0}[{1}]    put {0}[{1}]    overhead[{2}]    overhead[%]\n", figure, of,
      latency ? of : "usec per message");
}

std::string overhead_row_text(const WriteOptions& options, std::uint64_t bytes, std::uint64_t count,
                              double raw, double put) {
  double overhead = 0, percent = 0;
  if (options.program == WriteProgram::kLatency) {
    overhead = put - raw;
    percent = raw > 0 ? 100 * overhead / raw : 0;
  } else if (raw > 0 && put > 0) {
    const double us_by_rate = static_cast<double>(bytes) / (options.report_gbits ? 125.0 : 1.048576);
    overhead = us_by_rate / put - us_by_rate / raw;
    percent = 100 * (raw / put - 1);
  }
  return fmt::format(
      " {:<7}    {:<10}     {:<7.2f}                {:<7.2f}                {:<7.2f}    {:<+7.1f}\n", bytes,
      count, raw, put, overhead, percent);
}

// --- JSON ------------------------------------------------------------------------------------------------

namespace {

/// Writes both JSON dialects of perftest from one list of keys.
class Dialect {
 public:
  explicit Dialect(bool valid) : valid_(valid) {}

  void open(std::string_view key) {
    text_ += valid_ ? fmt::format("{}\"{}\": {{\n", first_ ? "" : ",\n", key) : fmt::format("{}: {{\n", key);
    first_ = true;
  }
  void close() {
    text_ += valid_ ? "\n}" : "},\n";
    first_ = false;
  }
  void number(std::string_view key, const std::string& value) { add(key, value); }
  void word(std::string_view key, const std::string& value, bool always_quoted = false) {
    add(key, valid_ || always_quoted ? "\"" + value + "\"" : value);
  }
  [[nodiscard]] std::string whole() const { return "{\n" + text_ + (valid_ ? "\n" : "") + "}\n"; }

 private:
  void add(std::string_view key, const std::string& value) {
    if (valid_) {
      text_ += fmt::format("{}\"{}\": {}", first_ ? "" : ",\n", key, value);
    } else {
      text_ += fmt::format("{}: {},\n", key, value);
    }
    first_ = false;
  }

  bool valid_, first_ = true;
  std::string text_;
};

void add_test(Dialect& json, const WriteOptions& options, const PortDescription& port) {
  const bool bandwidth = options.program == WriteProgram::kBandwidth;
  json.open("test_info");
  json.word("test", fmt::format("RDMA_Write_{}{}{}_Test", options.bidirectional ? "Bidirectional_" : "",
                                options.post_list > 1 ? "Post_List_" : "", bandwidth ? "BW" : "Latency"));
  json.word("Dual_port", "OFF");
  json.word("Device", port.device, true);
  json.number("Number_of_qps", std::to_string(options.queue_pairs));
  json.word("Transport_type", port.transport_type);
  json.word("Connection_type", "RC");
  json.word("Using_SRQ", "OFF");
  json.word("PCIe_relax_order", "OFF");
  json.word("ibv_wr_API", "OFF");
  if (sends(options))
    json.number(newer(options) ? "TX_depth" : "TX_depth ", std::to_string(options.tx_depth));
  if (options.post_list > 1) json.number("Post_List", std::to_string(options.post_list));
  if (bandwidth) json.number("CQ_Moderation", std::to_string(options.cq_moderation));
  json.number("Mtu", std::to_string(port.mtu));
  json.word("Link_type", port.link_type);
  json.number("GID_index", std::to_string(port.gid_index));
  json.number("Max_inline_data", std::to_string(port.inline_bytes));
  json.word("rdma_cm_QPs", on_off(options.rdma_cm));
  json.word("Requests", std::string(requests_text(options)), true);
  json.word("Data_ex_method", exchange_text(options));
  json.close();
}

}  // namespace

std::string json_text(const WriteOptions& options, const PortDescription& port, const Bandwidth& row) {
  Dialect json(newer(options));
  add_test(json, options, port);
  const int digits = options.report_gbits && row.average < kSmallGbits ? 6 : 2;
  json.open("results");
  json.number("MsgSize", std::to_string(row.bytes));
  json.number("n_iterations", std::to_string(row.count));
  json.number("BW_peak", fmt::format("{:.{}f}", row.peak, digits));
  json.number("BW_average", fmt::format("{:.{}f}", row.average, digits));
  json.number("MsgRate", fmt::format("{:.6f}", row.million_per_s));
  json.close();
  return json.whole();
}

std::string json_text(const WriteOptions& options, const PortDescription& port, const Latency& row) {
  Dialect json(newer(options));
  add_test(json, options, port);
  const auto figure = [&json](std::string_view key, double value) {
    json.number(key, fmt::format("{:.2f}", value));
  };
  json.open("results");
  json.number("MsgSize", std::to_string(row.bytes));
  json.number("n_iterations", std::to_string(row.count));
  figure("t_min", row.min);
  figure("t_max", row.max);
  figure("t_typical", row.typical);
  figure("t_avg", row.average);
  figure("t_stdev", row.deviation);
  figure("percentile_99", row.percentile_99);
  figure("percentile_99.9", row.percentile_99_9);
  json.close();
  return json.whole();
}

std::string json_text(const WriteOptions& options, const PortDescription& port, const LatencyOverTime& row) {
  Dialect json(newer(options));
  add_test(json, options, port);
  json.open("results");
  json.number("MsgSize", std::to_string(row.bytes));
  json.number("n_iterations", std::to_string(row.count));
  json.number("t_avg", fmt::format("{:.2f}", row.average_us));
  json.number("tps_average", fmt::format("{:.2f}", row.per_second));
  json.close();
  return json.whole();
}

}  // namespace hips::write

#include <algorithm>
#include <array>
#include <initializer_list>

#include <fmt/format.h>

#include "tools/doctor/judge.hpp"

namespace hips::doctor {
namespace {

using Names = std::initializer_list<const char*>;

std::optional<std::uint64_t> value_of(const Counters& counters, std::string_view name) {
  const auto at = counters.find(std::string(name));
  return at == counters.end() ? std::nullopt : std::optional(at->second);
}

/// Counters above zero: their sum and "out_of_sequence 17, duplicate_request 3".
struct Counted {
  std::uint64_t sum = 0;
  std::string text;
};

void add(const std::string& name, std::uint64_t value, Counted& counted) {
  if (value == 0) return;
  counted.sum += value;
  counted.text += fmt::format("{}{} {}", counted.text.empty() ? "" : ", ", name, value);
}

Counted count(const Counters& counters, Names names) {
  Counted counted;
  for (const char* name : names) add(name, value_of(counters, name).value_or(0), counted);
  return counted;
}

/// The same for all counters with this begin and end of the name: rx_prio0_pause to rx_prio7_pause.
Counted count_like(const Counters& counters, std::string_view begin, std::string_view end) {
  Counted counted;
  for (const auto& [name, value] : counters)
    if (name.starts_with(begin) && name.ends_with(end)) add(name, value, counted);
  return counted;
}

bool has_like(const Counters& counters, std::string_view begin, std::string_view end) {
  return std::any_of(counters.begin(), counters.end(), [&](const auto& one) {
    return one.first.starts_with(begin) && one.first.ends_with(end);
  });
}

/// Received packets, by whichever counter the driver has.
std::uint64_t packets(const DevicePort& port) {
  std::uint64_t most = 0;
  for (const char* name : {"rcvd_pkts", "port_rcv_packets", "unicast_rcv_packets"})
    most = std::max(most, value_of(port.counters, name).value_or(0));
  return std::max(most, value_of(port.netdev.statistics, "rx_packets").value_or(0));
}

/// The command that makes priority 3 of an Ethernet port lossless and maps DSCP 26 to it.
std::string pfc_line(const Device& device, const DevicePort& port) {
  const std::string interface = interface_of(port);
  std::string line;
  if (device.driver.starts_with("mlx")) {
    line = fmt::format("mlnx_qos -i {} --trust dscp --pfc 0,0,0,1,0,0,0,0", interface);
  } else {
    // E800 NICs refuse this while their firmware negotiates PFC with the switch.
    if (device.driver == "ice")
      line = fmt::format("ethtool --set-priv-flags {} fw-lldp-agent off; ", interface);
    line += fmt::format("dcb pfc set dev {0} prio-pfc all:off 3:on; dcb app add dev {0} dscp-prio 26:3",
                        interface);
  }
  return line + " (and PFC or ECN at the switches), with HIPS_IB_TC=106";
}

std::string loss_line(const Device& device, const DevicePort& port) {
  if (device.software)
    return fmt::format("ip link set {} txqueuelen 10000; sysctl net.core.netdev_max_backlog=10000",
                       interface_of(port));
  if (port.roce()) return pfc_line(device, port);
  // InfiniBand sends only into free buffers of the receiver: lost packets were damaged on a link.
  return "run ibqueryerrors, and reseat or replace the cables of the links that it names";
}

void judge_lost(const Device& device, const DevicePort& port, const std::string& name, Findings& findings) {
  const Counted lost = count(
      port.counters, {"out_of_sequence", "packet_seq_err", "implied_nak_seq_err", "local_ack_timeout_err",
                      "duplicate_request", "out_of_seq_request", "rcvd_seq_err", "completer_retry_err"});
  if (lost.sum > 0) {
    // With one loss in 100,000 packets go-back-N visibly reduces the bandwidth.
    constexpr std::uint64_t kTolerated = 100'000;
    const std::uint64_t received = packets(port);
    const bool many = lost.sum > 100 && lost.sum > received / kTolerated;
    findings.push_back(
        {many ? FindingLevel::kWarning : FindingLevel::kNote, name,
         fmt::format("packets were lost, late or reordered since the driver was loaded: {} of {} packets",
                     lost.text, received),
         loss_line(device, port)});
  }
  const Counted exhausted =
      count(port.counters, {"retry_exceeded_err", "retry_rnr_exceeded_err", "roce_adp_retrans_to"});
  if (exhausted.sum > 0)
    findings.push_back({FindingLevel::kNote, name,
                        fmt::format("connections ended after all retries: {}", exhausted.text), ""});
  const Counted not_ready =
      count(port.counters, {"rnr_nak_retry_err", "out_of_buffer", "rcvd_rnr_err", "send_rnr_err"});
  if (not_ready.sum > 0)
    findings.push_back(
        {FindingLevel::kNote, name,
         fmt::format("receivers were not ready: {}; a program posts too few receives (HiPS posts them in "
                     "advance)",
                     not_ready.text),
         ""});
}

void judge_damaged(const DevicePort& port, const std::string& name, Findings& findings) {
  Counted damaged = count(port.counters, {"symbol_error", "port_rcv_errors", "local_link_integrity_errors",
                                          "rx_icrc_encapsulated", "link_error_recovery"});
  const Counted frames = count(port.netdev.statistics, {"rx_crc_errors", "rx_frame_errors"});
  if (frames.sum > 0) damaged.text += (damaged.text.empty() ? "" : ", ") + frames.text;
  if (damaged.sum + frames.sum == 0) return;
  findings.push_back({FindingLevel::kWarning, name,
                      fmt::format("damaged packets were received: {}", damaged.text),
                      fmt::format("reseat or replace the cable, and check its optical power: ethtool -m {}",
                                  interface_of(port))});
}

void judge_link(const Device& device, const DevicePort& port, const std::string& name, Findings& findings) {
  const auto downs = value_of(port.counters, "link_downed");
  if (!downs || *downs <= 1) return;
  findings.push_back({FindingLevel::kNote, name, fmt::format("the link went down {} times", *downs),
                      port.roce() ? fmt::format("ethtool {0}; dmesg | grep {0}", interface_of(port))
                                  : fmt::format("ibstat {} {}; dmesg | grep {}", device.name, port.number,
                                                device.driver.empty() ? device.name : device.driver)});
}

/// Ethernet flow control: pauses of single priorities (PFC), of all traffic (802.3x), and dropped frames.
void judge_pauses(const Device& device, const DevicePort& port, const std::string& name, Findings& findings) {
  const Counters& statistics = port.netdev.statistics;
  Counted pfc = count_like(statistics, "rx_prio", "_pause");
  const Counted sent = count_like(statistics, "tx_prio", "_pause");
  if (sent.sum > 0) pfc.text += (pfc.text.empty() ? "" : ", ") + sent.text;
  if (pfc.sum + sent.sum > 0)
    findings.push_back(
        {FindingLevel::kNote, name, fmt::format("PFC works and has paused: {}", pfc.text), ""});
  const Counted global =
      count(statistics, {"rx_pause_ctrl_phy", "tx_pause_ctrl_phy", "rx_pause", "tx_pause"});
  if (global.sum > 0 && pfc.sum + sent.sum == 0)
    findings.push_back(
        {FindingLevel::kWarning, name,
         fmt::format("global pauses stop all traffic of the link, not only RDMA: {}", global.text),
         fmt::format("ethtool -A {} rx off tx off; {}", interface_of(port), pfc_line(device, port))});
  Counted dropped = count_like(statistics, "rx_prio", "_discards");
  const Counted others = count(statistics, {"rx_discards_phy", "tx_discards_phy", "rx_missed_errors"});
  if (others.sum > 0) dropped.text += (dropped.text.empty() ? "" : ", ") + others.text;
  if (dropped.sum + others.sum > 0)
    findings.push_back({FindingLevel::kWarning, name, fmt::format("the NIC dropped frames: {}", dropped.text),
                        pfc_line(device, port)});
}

void judge_marks(const Device& device, const DevicePort& port, const std::string& name, Findings& findings) {
  if (device.software) {
    findings.push_back(
        {FindingLevel::kNote, name, "a software device has no PFC or ECN, and no counters of them", ""});
    return;
  }
  const auto marked = value_of(port.counters, "np_ecn_marked_roce_packets");
  const auto sent = value_of(port.counters, "np_cnp_sent");
  const auto handled = value_of(port.counters, "rp_cnp_handled");
  if (!marked && !sent && !handled) {
    findings.push_back(
        {FindingLevel::kNote, name, "the driver does not count ECN (np_cnp_sent, rp_cnp_handled)", ""});
  } else if (marked.value_or(0) > 0 && sent.value_or(0) == 0) {
    findings.push_back(
        {FindingLevel::kWarning, name,
         fmt::format("switches marked {} packets (ECN), but no sender was notified (np_cnp_sent is 0)",
                     *marked),
         fmt::format("for p in 0 1 2 3 4 5 6 7; do echo 1 > /sys/class/net/{}/ecn/roce_np/enable/$p; "
                     "done",
                     interface_of(port))});
  } else if (marked.value_or(0) + sent.value_or(0) + handled.value_or(0) > 0) {
    findings.push_back(
        {FindingLevel::kNote, name,
         fmt::format("ECN works: {} marked packets received, {} notifications sent, {} handled",
                     marked.value_or(0), sent.value_or(0), handled.value_or(0)),
         ""});
  }
  if (!has_like(port.netdev.statistics, "rx_prio", "_pause"))
    findings.push_back(
        {FindingLevel::kNote, name, "the driver does not count PFC pauses (rx_prio3_pause)", ""});
}

}  // namespace

Findings judge_counters(const NodeFacts& node, const RailChoice& rails) {
  Findings findings;
  for (const Device& device : node.devices) {
    for (const DevicePort& port : device.ports) {
      const auto use = std::find_if(rails.ports.begin(), rails.ports.end(), [&](const PortUse& one) {
        return one.device == device.name && one.port == port.number;
      });
      if (use == rails.ports.end() || use->rails.empty()) continue;
      judge_lost(device, port, use->name, findings);
      judge_damaged(port, use->name, findings);
      judge_link(device, port, use->name, findings);
      if (!port.roce()) continue;
      judge_pauses(device, port, use->name, findings);
      judge_marks(device, port, use->name, findings);
    }
  }
  return findings;
}

}  // namespace hips::doctor

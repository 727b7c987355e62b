#include "topology/cabling/ibnetdiscover.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "topology/cabling/ib_fabric.hpp"
#include "topology/cabling/ib_rate.hpp"
#include "topology/cabling/text_lines.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

constexpr std::int64_t kMostPorts = 65'535;

/// A number at the beginning of `text`, which is taken off.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
}

/// The text between two of `quote` at the beginning of `text`, which are taken off.
std::optional<std::string_view> take_quoted(std::string_view& text, char quote) {
  skip_blanks(text);
  if (text.empty() || text.front() != quote) return std::nullopt;
  const std::size_t end = text.find(quote, 1);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view inner = text.substr(1, end - 1);
  text.remove_prefix(end + 1);
  return inner;
}

/// "Switch 36 "S-0002c90200423cd0"   # "leaf1" base port 0 lid 3 lmc 0"
struct Header {
  IbKind kind = IbKind::kSwitch;
  std::int64_t num_ports = 0;
  std::string_view id;
  std::optional<std::string_view> description;
};

std::optional<Header> read_header(std::string_view line) {
  const std::string word = in_lower_case(take_word(line));
  Header header;
  if (word == "switch") {
    header.kind = IbKind::kSwitch;
  } else if (word == "ca" || word == "hca") {
    header.kind = IbKind::kAdapter;
  } else if (word == "rt" || word == "router") {
    header.kind = IbKind::kRouter;
  } else {
    return std::nullopt;
  }
  skip_blanks(line);
  const auto ports = take_number(line);
  const auto id = take_quoted(line, '"');
  if (!ports || !id || id->empty()) return std::nullopt;
  header.num_ports = *ports;
  header.id = *id;
  skip_blanks(line);
  if (line.starts_with('#')) line.remove_prefix(1);
  header.description = take_quoted(line, '"');
  return header;
}

/// "[1](1) "H-0002c903000e0b72"[1](2c903000e0b73)   # "n7 mlx5_0" lid 9 4xEDR"
struct PortLine {
  std::int64_t port = 0;
  std::string_view peer;
  std::int64_t peer_port = 0;
  std::optional<std::string_view> description;  ///< of the peer
  double bandwidth = 0;
};

/// Takes "[1]" off, and groups in brackets behind it: GUIDs in parentheses, ports of a chassis as "[ext 3]".
std::optional<std::int64_t> take_port(std::string_view& text) {
  if (!text.starts_with('[')) return std::nullopt;
  text.remove_prefix(1);
  skip_blanks(text);
  const auto port = take_number(text);
  skip_blanks(text);
  if (!port || !text.starts_with(']')) return std::nullopt;
  text.remove_prefix(1);
  while (text.starts_with('(') || text.starts_with('[')) {
    const std::size_t end = text.find(text.front() == '(' ? ')' : ']');
    if (end == std::string_view::npos) return std::nullopt;
    text.remove_prefix(end + 1);
  }
  return port;
}

std::optional<PortLine> read_port_line(std::string_view line) {
  PortLine read;
  const auto port = take_port(line);
  if (!port) return std::nullopt;
  const auto peer = take_quoted(line, '"');
  if (!peer || peer->empty()) return std::nullopt;
  skip_blanks(line);
  const auto peer_port = take_port(line);
  if (!peer_port) return std::nullopt;
  read.port = *port;
  read.peer = *peer;
  read.peer_port = *peer_port;
  // What follows is a comment: "lid 16 lmc 1", whose numbers may be missing, a description, the rate.
  if (const std::size_t quote = line.find('"'); quote != std::string_view::npos) {
    std::string_view rest = line.substr(quote);
    read.description = take_quoted(rest, '"');
    line = rest;
  }
  while (!line.empty() && read.bandwidth == 0) read.bandwidth = ib_rate(take_word(line));
  return read;
}

/// A half of "SW 6 10 0x005442ba00003080 4x SDR - CA 4 1 0x0008f10403961354 ( 'leaf1' - 'n7 mlx5_0' )", without rate and name.
struct ReportEnd {
  IbKind kind = IbKind::kSwitch;
  std::int64_t port = 0;
  std::string_view guid;
};

std::optional<ReportEnd> take_report_end(std::string_view& text) {
  ReportEnd end;
  const std::string_view kind = take_word(text);
  if (kind == "SW") {
    end.kind = IbKind::kSwitch;
  } else if (kind == "CA") {
    end.kind = IbKind::kAdapter;
  } else if (kind == "RT") {
    end.kind = IbKind::kRouter;
  } else {
    return std::nullopt;
  }
  skip_blanks(text);
  const auto lid = take_number(text);
  skip_blanks(text);
  const auto port = take_number(text);
  end.guid = take_word(text);
  if (!lid || !port || !end.guid.starts_with("0x")) return std::nullopt;
  end.guid.remove_prefix(2);
  end.port = *port;
  return end;
}

struct ReportLine {
  ReportEnd a;
  double bandwidth = 0;
  std::optional<ReportEnd> b{};  ///< none: no cable
  std::string_view a_name{}, b_name{};
};

std::optional<ReportLine> read_report_line(std::string_view line) {
  const auto a = take_report_end(line);
  if (!a) return std::nullopt;
  ReportLine read{.a = *a};
  const std::string_view width = take_word(line);
  read.bandwidth = ib_rate(width, take_word(line));
  skip_blanks(line);
  if (!line.starts_with("- ")) return read;
  line.remove_prefix(2);
  read.b = take_report_end(line);
  if (!read.b) return std::nullopt;
  // Names may have quotes, but hardly the text between the two.
  const std::size_t first = line.find('\''), middle = line.find("' - '"), last = line.rfind('\'');
  if (first == std::string_view::npos || middle == std::string_view::npos || middle < first ||
      last < middle + 5) {
    return std::nullopt;
  }
  read.a_name = line.substr(first + 1, middle - first - 1);
  read.b_name = line.substr(middle + 5, last - middle - 5);
  return read;
}

class IbReader {
 public:
  IbReader(std::string_view name, std::string_view text) : name_(name), text_(text), fabric_(name) {}

  Result<Cabling> read() {
    TextLines lines(text_);
    while (const auto line = lines.next()) {
      if (auto taken = take(without_blanks(*line), lines.number()); !taken) return fail(taken.error());
      if (fabric_.is_full()) return bad(lines.number(), "more nodes and cables than a fabric can have");
    }
    return fabric_.finish();
  }

 private:
  [[nodiscard]] tl::unexpected<Status> bad(std::int64_t line, std::string_view problem) const {
    return bad_line(name_, line, problem);
  }

  Result<void> take(std::string_view line, std::int64_t number) {
    if (line.empty() || line.front() == '#') return {};
    if (line.front() == '[') return take_port_line(line, number);
    if (const auto header = read_header(line)) {
      if (header->num_ports > kMostPorts) {
        return bad(number, fmt::format("{} has {} ports (valid: up to {})", in_quotes(header->id),
                                       header->num_ports, kMostPorts));
      }
      node_ = fabric_.node(header->id, header->kind, number);
      return fabric_.describe(*node_, header->description.value_or(header->id), header->num_ports, number);
    }
    if (const auto report = read_report_line(line)) {
      take_report(*report, number);
      return {};
    }
    const bool is_detail = line.find('=') != std::string_view::npos || line.starts_with("Chassis") ||
                           line.starts_with("Non-Chassis");
    if (!is_detail && !fabric_.empty())
      fabric_.note("lines that are no node and no port are ignored", number);
    return {};
  }

  Result<void> take_port_line(std::string_view line, std::int64_t number) {
    const auto port = read_port_line(line);
    if (!port) {
      // Before the first node: a prompt of a shell, as "[root@n1 ~]# ibnetdiscover".
      if (!node_) return {};
      return bad(number,
                 fmt::format("{} is no port; write such as [1] \"S-0002c90200423cd0\"[7]", in_quotes(line)));
    }
    if (!node_) {
      return bad(number, fmt::format("port [{}] belongs to no node; a line such as Switch 36 \"S-...\" must "
                                     "come before",
                                     port->port));
    }
    const std::size_t peer = fabric_.node(port->peer, kind_of(port->peer), number);
    if (port->description) fabric_.mention(peer, *port->description);
    fabric_.add({.a = {*node_, port->port},
                 .b = {peer, port->peer_port},
                 .bandwidth = port->bandwidth,
                 .line = number});
    return {};
  }

  /// By the first letter of an identifier, as the node may have no block of its own.
  static std::optional<IbKind> kind_of(std::string_view id) {
    if (id.starts_with("S-")) return IbKind::kSwitch;
    if (id.starts_with("H-")) return IbKind::kAdapter;
    if (id.starts_with("R-")) return IbKind::kRouter;
    return std::nullopt;
  }

  /// Of adapters the report has GUIDs of ports; the description tells which belong together.
  void take_report(const ReportLine& report, std::int64_t number) {
    if (!report.b) return;
    const auto node = [&](const ReportEnd& end, std::string_view description) {
      const std::size_t index = fabric_.node(end.guid, end.kind, number);
      fabric_.mention(index, description);
      return index;
    };
    const std::size_t a = node(report.a, report.a_name), b = node(*report.b, report.b_name);
    fabric_.add(
        {.a = {a, report.a.port}, .b = {b, report.b->port}, .bandwidth = report.bandwidth, .line = number});
  }

  std::string_view name_, text_;
  IbFabric fabric_;
  std::optional<std::size_t> node_;  ///< whose block this is
};

}  // namespace

bool is_ibnetdiscover(std::string_view text) {
  TextLines lines(text);
  while (const auto line = lines.next()) {
    const std::string_view trimmed = without_blanks(*line);
    if (read_header(trimmed) || read_report_line(trimmed)) return true;
  }
  return false;
}

Result<Cabling> read_ibnetdiscover(std::string_view name, std::string_view text) {
  return IbReader(name, text).read();
}

}  // namespace hips::topology

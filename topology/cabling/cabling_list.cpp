#include "topology/cabling/cabling_list.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/base/counted.hpp"
#include "topology/cabling/cabling_builder.hpp"
#include "topology/cabling/csv_rows.hpp"
#include "topology/cabling/netbox_ports.hpp"
#include "topology/cabling/node_role.hpp"
#include "topology/cabling/rate_words.hpp"
#include "topology/cabling/text_lines.hpp"
#include "topology/spec.hpp"

namespace hips::topology {
namespace {

constexpr std::string_view kSeparators = ",;\t";
constexpr std::size_t kNoColumn = ~std::size_t{0};
/// The most devices in which a cable ends: each of its entries has the text of the other end again.
constexpr std::size_t kMostEnds = 16;

constexpr std::string_view kRightHeaders =
    "the header must have side_a_device, side_a_name, side_b_device, side_b_name or Device A, Termination A, Device B, "
    "Termination B (NetBox; export all data), or StartDevice, StartPort, EndDevice, EndPort (SONiC, UFM), or Node, Node "
    "Interface, Peer Node, Peer Interface (Arista AVD), or name others by --columns";

/// Where a list has what; kNoColumn: nowhere.
struct Places {
  std::size_t a_node = kNoColumn, a_port = kNoColumn, b_node = kNoColumn, b_port = kNoColumn;
  std::size_t rate = kNoColumn, a_kind = kNoColumn, b_kind = kNoColumn;
  std::size_t a_location = kNoColumn, b_location = kNoColumn, status = kNoColumn;
  std::size_t a_type = kNoColumn, b_type = kNoColumn, type = kNoColumn;  ///< of the ports, and of the cable
  bool has_breakouts = false;  ///< a cell may have several devices, "n1,n2"

  [[nodiscard]] std::size_t last_needed() const {
    std::size_t last = std::max(a_node, b_node);
    if (a_port != kNoColumn) last = std::max(last, a_port);
    if (b_port != kNoColumn) last = std::max(last, b_port);
    return last;
  }
};

/// A header without what people write differently: "#Fields: Start Device", "start_device" and "StartDevice" are the same.
std::string plain_header(std::string_view cell) {
  std::string out;
  for (const char c : in_lower_case(cell)) {
    if (c != '#' && c != '_' && c != '-' && c != ' ') out += c;
  }
  constexpr std::string_view kFields = "fields:";
  return out.starts_with(kFields) ? out.substr(kFields.size()) : out;
}

std::size_t place_of(const std::vector<std::string>& header, std::string_view column) {
  const auto found = std::ranges::find(header, column);
  return found == header.end() ? kNoColumn : static_cast<std::size_t>(found - header.begin());
}

/// The columns of a header of a known form.
std::optional<Places> known_places(const std::vector<std::string>& cells) {
  std::vector<std::string> header;
  for (const std::string& cell : cells) header.push_back(plain_header(cell));
  constexpr std::array<std::array<std::string_view, 4>, 8> kForms = {
      {{"sideadevice", "sideaname", "sidebdevice", "sidebname"},
       // The tables of NetBox's pages, of today and before 3.3.
       {"devicea", "terminationa", "deviceb", "terminationb"},
       {"devicea", "interfacea", "deviceb", "interfaceb"},
       {"sidea", "terminationa", "sideb", "terminationb"},
       {"terminationadevice", "terminationa", "terminationbdevice", "terminationb"},
       {"terminationadevice", "terminationaname", "terminationbdevice", "terminationbname"},
       {"startdevice", "startport", "enddevice", "endport"},
       {"node", "nodeinterface", "peernode", "peerinterface"}}};
  for (const auto& form : kForms) {
    Places places{.a_node = place_of(header, form[0]),
                  .a_port = place_of(header, form[1]),
                  .b_node = place_of(header, form[2]),
                  .b_port = place_of(header, form[3])};
    if (std::max({places.a_node, places.a_port, places.b_node, places.b_port}) == kNoColumn) continue;
    for (const std::string_view rate : {"bandwidth", "speed", "rate", "linkspeed"})
      places.rate = std::min(places.rate, place_of(header, rate));
    for (const std::string_view kind : {"type", "nodetype"})
      places.a_kind = std::min(places.a_kind, place_of(header, kind));
    places.b_kind = place_of(header, "peertype");
    places.has_breakouts = form[0] == "devicea";
    places.a_location = place_of(header, "startdevicelocation");
    for (const std::string_view rack : {"rack", ""}) {
      if (places.a_location == kNoColumn && header.front() == rack) places.a_location = 0;
    }
    places.b_location = place_of(header, "enddevicelocation");
    if (places.b_location == kNoColumn) places.a_location = kNoColumn;
    return places;
  }
  return std::nullopt;
}

/// Is the word a device of a host, as in "n7 mlx5_0" and "n7 HCA-1"?
bool is_device(std::string_view word) {
  const std::string known = in_lower_case(word);
  return known.starts_with("mlx") || known.starts_with("hca-");
}

/// Words, such as "Port of A (left)", as no line of the other formats has them between separators.
bool is_title(const std::string& cell) {
  return std::ranges::all_of(cell, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(" _-.#()/").find(c) != std::string_view::npos;
  });
}

/// The first row that is no comment, unless a comment is a header that is known.
Result<std::vector<std::string>> first_row(CsvRows& rows) {
  for (;;) {
    auto row = rows.next();
    if (!row || row->empty() || !row->front().starts_with('#') || known_places(*row)) return row;
  }
}

class ListReader {
 public:
  ListReader(std::string_view file, std::string_view text, const std::optional<ListColumns>& columns)
      : file_(file), text_(text), columns_(columns), builder_(file) {}

  Result<Cabling> read() {
    auto separator = find_header();
    if (!separator) return fail(separator.error());
    CsvRows rows(file_, text_, *separator);
    for (;;) {
      const auto row = rows.next();
      if (!row) return fail(row.error());
      if (row->empty()) break;
      if (has_header_ && rows.line() <= header_line_) continue;
      if (row->front().starts_with('#')) continue;
      if (auto taken = take(*row, rows.line()); !taken) return fail(taken.error());
    }
    for (const Entry& entry : entries_) add(entry);
    note_left_out("cables are left out that are planned or decommissioning", not_there_);
    note_left_out(fmt::format("cables are left out that are no network cables ({})",
                              fmt::join(counts_of_others(), ", ")),
                  others_);
    note_left_out("cables with several devices at both ends are left out", tangled_);
    return builder_.finish("write a cable in each row below the header");
  }

 private:
  struct End {
    std::string node, port, location;
    CabledNode::Kind kind = CabledNode::Kind::kUnknown;
  };
  struct Entry {
    End a, b;
    double rate = 0;
    std::int64_t line = 0;
  };
  /// Cables that do not count, and the first of them.
  struct LeftOut {
    std::size_t count = 0;
    std::int64_t line = 0;
    std::string first;
  };

  /// Finds the separator by which the first row is a header, and the columns.
  Result<char> find_header() {
    std::vector<std::string> seen;
    for (const char separator : kSeparators) {
      CsvRows rows(file_, text_, separator);
      auto row = first_row(rows);
      if (!row) return fail(row.error());
      header_line_ = rows.line();
      if (columns_) {
        auto places = chosen_places(*row);
        if (!places && columns_->are_numbers() && !row->empty()) places = numbered_places(*row, separator);
        if (places) {
          places_ = *places;
        } else if (row->size() > seen.size()) {
          seen = *row;
          missing_ = places.error().message;
        }
        if (!places) continue;
      } else {
        const auto places = row->empty() ? std::nullopt : known_places(*row);
        if (row->size() > seen.size()) seen = *row;
        if (!places) continue;
        places_ = *places;
      }
      if (has_header_) find_others(*row);
      return separator;
    }
    if (columns_) return bad_line(file_, std::max<std::int64_t>(1, header_line_), missing_);
    std::string shown = in_quotes(fmt::format("{}", fmt::join(seen, ", ")));
    return bad_line(file_, std::max<std::int64_t>(1, header_line_),
                    fmt::format("the header {} is not known; {}", shown, kRightHeaders));
  }

  Result<Places> chosen_places(const std::vector<std::string>& cells) const {
    std::vector<std::string> header;
    for (const std::string& cell : cells) header.push_back(in_lower_case(cell));
    Places places;
    for (const auto& [column, place] :
         {std::pair(&columns_->a_node, &places.a_node), std::pair(&columns_->a_port, &places.a_port),
          std::pair(&columns_->b_node, &places.b_node), std::pair(&columns_->b_port, &places.b_port),
          std::pair(&columns_->rate, &places.rate)}) {
      if (column->empty()) continue;
      *place = place_of(header, in_lower_case(*column));
      if (*place != kNoColumn) continue;
      return fail(Code::kInvalidArgument,
                  fmt::format("the list has no column {}; it has {}", in_quotes(*column),
                              in_quotes(fmt::format("{}", fmt::join(cells, ", ")))));
    }
    return places;
  }

  /// Columns by their numbers, from 1. The first row is one of cables, unless it is a header: one that is known, one with too few
  /// cells, or one whose names no other row has.
  Result<Places> numbered_places(const std::vector<std::string>& cells, char separator) {
    constexpr int kMostLooked = 50;
    std::size_t width = cells.size();
    std::vector<std::vector<std::string>> others;
    CsvRows rows(file_, text_, separator);
    for (int i = 0; i < kMostLooked; ++i) {
      auto row = i == 0 ? first_row(rows) : rows.next();
      if (!row || row->empty()) break;
      width = std::max(width, row->size());
      if (i > 0) others.push_back(*std::move(row));
    }
    Places places;
    for (const auto& [column, place] :
         {std::pair(&columns_->a_node, &places.a_node), std::pair(&columns_->a_port, &places.a_port),
          std::pair(&columns_->b_node, &places.b_node), std::pair(&columns_->b_port, &places.b_port),
          std::pair(&columns_->rate, &places.rate)}) {
      if (column->empty()) continue;
      std::size_t number = 0;
      const auto [end, error] = std::from_chars(column->data(), column->data() + column->size(), number);
      if (error != std::errc() || number == 0 || number > width)
        return fail(Code::kInvalidArgument,
                    fmt::format("the list has no column {}; it has {}", *column, counted(width, "column")));
      *place = number - 1;
    }
    const auto is_used = [&](std::size_t place) {
      return std::ranges::any_of(others, [&](const std::vector<std::string>& row) {
        return (places.a_node < row.size() && row[places.a_node] == cells[place]) ||
               (places.b_node < row.size() && row[places.b_node] == cells[place]);
      });
    };
    has_header_ = known_places(cells).has_value() || cells.size() <= places.last_needed() ||
                  (others.size() > 1 && !is_used(places.a_node) && !is_used(places.b_node));
    return places;
  }

  /// Finds the status and the types, which tables of all forms may have, and notes the columns that are ignored.
  void find_others(const std::vector<std::string>& header) {
    std::vector<std::string> others;
    for (std::size_t i = 0; i < header.size(); ++i) {
      const std::string plain = plain_header(header[i]);
      if (places_.status == kNoColumn && plain == "status") places_.status = i;
      if (places_.type == kNoColumn && plain == "type") places_.type = i;
      if (plain == "sideatype" || plain == "terminationatype") places_.a_type = i;
      if (plain == "sidebtype" || plain == "terminationbtype") places_.b_type = i;
      const auto used = {places_.a_node,     places_.a_port, places_.b_node, places_.b_port,
                         places_.rate,       places_.a_kind, places_.b_kind, places_.a_location,
                         places_.b_location, places_.status, places_.a_type, places_.b_type,
                         places_.type};
      if (std::ranges::find(used, i) == used.end() && !header[i].empty()) others.push_back(header[i]);
    }
    if (others.empty()) return;
    builder_.note(
        fmt::format("columns are ignored: {}", in_quotes(fmt::format("{}", fmt::join(others, ", ")))),
        header_line_);
  }

  Result<void> take(const std::vector<std::string>& row, std::int64_t line) {
    const std::size_t needed = places_.last_needed();
    if (row.size() <= needed) {
      return bad_line(
          file_, line,
          fmt::format("the row has {}; the header needs {}", counted(row.size(), "cell"), needed + 1));
    }
    const auto cell = [&](std::size_t place) { return place < row.size() ? row[place] : std::string(); };
    const std::string a = cell(places_.a_node), b = cell(places_.b_node);
    const auto named = [&](const std::string& node, std::size_t port) {
      return node + (cell(port).empty() || node.empty() ? "" : " ") + cell(port);
    };
    const auto leave_out_in = [&](LeftOut& those) {
      leave_out(those, line, named(a, places_.a_port) + " to " + named(b, places_.b_port));
    };
    const std::string status = in_lower_case(cell(places_.status));
    if (status == "planned" || status == "decommissioning") {
      leave_out_in(not_there_);
      return {};
    }
    const CableUse use = use_of_cable(cell(places_.a_type), cell(places_.b_type), cell(places_.type));
    if (use != CableUse::kNetwork) {
      leave_out_in(others_);
      ++(use == CableUse::kPower ? num_power_ : num_console_);
      return {};
    }
    const auto a_devices = devices_of(a), b_devices = devices_of(b);
    if (a_devices.size() > 1 && b_devices.size() > 1) {
      leave_out(tangled_, line, fmt::format("{} to {}", a, b));
      return {};
    }
    if (std::max(a_devices.size(), b_devices.size()) > kMostEnds)
      return builder_.bad(line, fmt::format("the cable ends in {} devices (valid: up to {})",
                                            std::max(a_devices.size(), b_devices.size()), kMostEnds));
    double rate = 0;
    if (const std::string words = cell(places_.rate); !words.empty()) {
      rate = rate_of_words(words);
      if (rate == 0) builder_.note("rates are not understood, such as " + in_quotes(words), line);
    }
    // Which of several devices has which port is not told.
    const std::string a_port = a_devices.size() > 1 ? "" : cell(places_.a_port);
    const std::string b_port = b_devices.size() > 1 ? "" : cell(places_.b_port);
    for (const std::string_view a_device : a_devices) {
      for (const std::string_view b_device : b_devices) {
        Entry entry{.a = end_of(std::string(a_device), a_port, cell(places_.a_location)),
                    .b = end_of(std::string(b_device), b_port, cell(places_.b_location)),
                    .rate = rate,
                    .line = line};
        entry.a.kind = merge(entry.a.kind, kind_of_role(cell(places_.a_kind)));
        entry.b.kind = merge(entry.b.kind, kind_of_role(cell(places_.b_kind)));
        if (auto kept = keep(std::move(entry)); !kept) return kept;
      }
    }
    return {};
  }

  Result<void> keep(Entry entry) {
    if (entry.a.node.empty() || entry.b.node.empty()) {
      const std::string& device = entry.a.node.empty() ? entry.b.node : entry.a.node;
      builder_.note("rows without a device at one end are ignored", entry.line, 1,
                    device.empty() ? "" : in_quotes(device));
      return {};
    }
    // A list may have each cable twice.
    if (entries_.size() == 2 * kMostCables)
      return builder_.bad(entry.line,
                          fmt::format("more than {} rows; give a file of one cluster", entries_.size()));
    entries_.push_back(std::move(entry));
    return {};
  }

  /// The devices of an end: more than one where a cable ends in several, and the table is one that has such.
  [[nodiscard]] std::vector<std::string_view> devices_of(std::string_view cell) const {
    if (!places_.has_breakouts) return {cell};
    auto devices = split(cell, ',');
    for (std::string_view& device : devices) device = without_blanks(device);
    return devices;
  }

  static void leave_out(LeftOut& left_out, std::int64_t line, std::string cable) {
    if (left_out.count++ > 0) return;
    left_out.line = line;
    left_out.first = std::move(cable);
  }

  void note_left_out(std::string_view what, const LeftOut& left_out) {
    if (left_out.count > 0) builder_.note(what, left_out.line, left_out.count, left_out.first);
  }

  [[nodiscard]] std::vector<std::string> counts_of_others() const {
    std::vector<std::string> counts;
    if (num_power_ > 0) counts.push_back(fmt::format("{} power", num_power_));
    if (num_console_ > 0) counts.push_back(fmt::format("{} console", num_console_));
    return counts;
  }

  static CabledNode::Kind merge(CabledNode::Kind a, CabledNode::Kind b) {
    return a == CabledNode::Kind::kUnknown ? b : a;
  }

  /// UFM writes an adapter as "HOST DEVICE" with the port of the adapter, "Port 1".
  End end_of(std::string node, std::string port, std::string location) {
    End end{.node = std::move(node), .port = std::move(port), .location = std::move(location)};
    std::string_view rest = end.node;
    const std::string host(take_word(rest));
    const std::string device(take_word(rest));
    if (is_device(device) && without_blanks(rest).empty()) {
      end.port =
          end.port == "Port 1" || end.port == "1" || end.port.empty() ? device : device + " " + end.port;
      end.node = host;
      end.kind = CabledNode::Kind::kServer;
    }
    const auto [known, is_new] = locations_.try_emplace(end.node, end.location);
    if (!is_new && known->second != end.location) ambiguous_.insert(end.node);
    return end;
  }

  void add(const Entry& entry) {
    const auto node = [&](const End& end) {
      const bool is_told = !end.location.empty() && ambiguous_.contains(end.node);
      return builder_.node(is_told ? end.location + "/" + end.node : end.node, end.kind, entry.line);
    };
    const std::size_t a = node(entry.a), b = node(entry.b);
    builder_.add({.a = {a, entry.a.port},
                  .b = {b, entry.b.port},
                  .bandwidth_bytes_per_s = entry.rate,
                  .line = entry.line});
  }

  std::string_view file_, text_;
  const std::optional<ListColumns>& columns_;
  CablingBuilder builder_;
  Places places_;
  std::int64_t header_line_ = 1;
  bool has_header_ = true;
  std::string missing_;
  std::vector<Entry> entries_;
  LeftOut not_there_, tangled_, others_;
  std::size_t num_power_ = 0, num_console_ = 0;             ///< of the others
  std::unordered_map<std::string, std::string> locations_;  ///< by the name of a device
  std::unordered_set<std::string> ambiguous_;               ///< names that several locations have
};

}  // namespace

bool ListColumns::are_numbers() const {
  return std::ranges::all_of(a_node + a_port + b_node + b_port + rate, is_digit);
}

Result<ListColumns> parse_list_columns(std::string_view text) {
  const auto parts = split(text, ',');
  if (parts.size() < 4 || parts.size() > 5 || without_blanks(parts[0]).empty() ||
      without_blanks(parts[2]).empty()) {
    return fail(
        Code::kInvalidArgument,
        fmt::format("--columns {}: expected A_NODE,A_PORT,B_NODE,B_PORT or with ,RATE behind it; ports may "
                    "be empty",
                    in_quotes(text)));
  }
  const auto part = [&](std::size_t i) { return std::string(without_blanks(parts[i])); };
  return ListColumns{.a_node = part(0),
                     .a_port = part(1),
                     .b_node = part(2),
                     .b_port = part(3),
                     .rate = parts.size() == 5 ? part(4) : ""};
}

bool is_cabling_list(std::string_view text) {
  for (const char separator : kSeparators) {
    CsvRows rows("", text, separator);
    const auto row = first_row(rows);
    if (!row || row->empty()) continue;
    if (known_places(*row)) return true;
    // A table whose header is not known: its reader says so. Others begin with words in a comment.
    if (text.find("hips-topology") != std::string_view::npos) continue;
    const auto second = rows.next();
    if (second && row->size() > 1 && second->size() == row->size() && std::ranges::all_of(*row, is_title))
      return true;
  }
  return false;
}

Result<Cabling> read_cabling_list(std::string_view name, std::string_view text,
                                  const std::optional<ListColumns>& columns) {
  return ListReader(name, text, columns).read();
}

}  // namespace hips::topology

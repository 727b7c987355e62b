#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"
#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// The headers of the columns of a cabling list, in any case, or where it has none of these, their numbers from 1.
struct ListColumns {
  std::string a_node{}, a_port{};  ///< of one end; without a port: empty
  std::string b_node{}, b_port{};  ///< of the other end
  std::string rate{};              ///< "100Gb", "100G", "4xEDR", or a number of Mb/s; empty: none

  /// May the list have no header?
  [[nodiscard]] bool are_numbers() const;
};

/// Reads "A_NODE,A_PORT,B_NODE,B_PORT" with ",RATE" behind it or not.
///
/// Errors   kInvalidArgument: another number of columns, or a node without a header.
Result<ListColumns> parse_list_columns(std::string_view text);

/// Does the text begin with the header of a cabling list that is known, or with words in as many cells as the row below has?
bool is_cabling_list(std::string_view text);

/// Reads a list of cables, one in each row, with separators ",", ";" or tabs. Known headers, in any order and case, are those of
/// NetBox (side_a_device, side_a_name, side_b_device, side_b_name of its import; Device A, Termination A, Device B, Termination B of
/// its pages), of SONiC and UFM (StartDevice, StartPort, EndDevice, EndPort), and of Arista AVD (Node, Node Interface, Peer Node,
/// Peer Interface). `columns` names those of other lists.
///
/// UFM's names of adapters hold the host and the device. Where locations tell devices of one name apart, the name becomes
/// "LOCATION/NAME". A cable that is listed from both ends counts once, one whose status is planned or decommissioning, and a power or
/// console cable of NetBox (netbox_ports.hpp), not at all, and one of NetBox that ends in several devices once for each of them. Other
/// columns are ignored with a note.
///
/// Units    numbers without a unit are Mb/s.
/// Cost     linear in the text, on average.
/// Errors   kInvalidArgument: `name` of the file, line, the value seen and what would be right.
/// Source   NetBox's import and export of cables; SONiC's sonic_lab_links.csv; UFM's network topology file; the P2P lists of Arista AVD.
Result<Cabling> read_cabling_list(std::string_view name, std::string_view text,
                                  const std::optional<ListColumns>& columns = {});

}  // namespace hips::topology

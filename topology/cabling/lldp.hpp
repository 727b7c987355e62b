#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "topology/cabling/cabling.hpp"
#include "topology/cabling/lldp_neighbours.hpp"

namespace hips::topology {

/// What a host has heard from its neighbours.
struct LldpText {
  std::string name{};  ///< of the file; the host is called so, without folders and ".json", ".txt", ...
  std::string text{};
};

/// Is the text what lldpctl writes, as json, json0 or keyvalue, of one host or of several (host_texts.hpp)?
bool is_lldp(std::string_view text);

/// Reads what several hosts have heard, one text for each, or several hosts in one: with "HOST: " before each line as pdsh writes
/// it, or in blocks below their hosts, as clush -b and dshbak write them. What hosts wrote in one block, each of them has heard. Hosts are
/// servers; their neighbours are switches if they bridge or route, and otherwise not known. A chassis without a name is called by
/// its identifier. Neighbours of protocols other than LLDP, on management ports, and on
/// bonds, VLANs and bridges whose NICs have heard them, too, are ignored with one note each.
///
/// Units    the rate is that of the neighbour's port: "100GBaseCR4" is 100 Gb/s.
/// Cost     linear in the texts, on average.
/// Errors   kInvalidArgument: `name` of the file, line, the value seen and what would be right.
/// Source   lldpcli(8).
Result<Cabling> read_lldp(std::span<const LldpText> texts);

/// A host and its neighbours.
struct LldpHost {
  std::string name{};
  std::vector<LldpNeighbour> neighbours{};
};

/// The same of neighbours that were read before; `name` is theirs in messages.
Result<Cabling> cables_of(std::string_view name, std::vector<LldpHost> hosts);

}  // namespace hips::topology

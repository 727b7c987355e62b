#pragma once

#include <span>
#include <string>

#include "lib/base/result.hpp"
#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// Which nodes of a cabling to keep, by POSIX extended regular expressions that match anywhere in the name. Empty: no choice.
struct NameSelection {
  std::string hosts{};     ///< servers are the nodes that match, and no others
  std::string exclude{};   ///< nodes that match are left out
  std::string switches{};  ///< switches are the nodes that match, and no others
};

/// The longest expression. Expressions may have one count such as {2,8}, of at most three digits, and no references such as \1:
/// matching would take more time or memory than there is.
inline constexpr std::size_t kMostRegexBytes = 1024;
/// Longer names match no expression.
inline constexpr std::size_t kMostMatchedName = 1024;

/// Picks one network where a file describes several. With `hosts`, nodes whose kind is not known are servers if they match, and
/// otherwise switches; with `switches` only, they are switches if they match, and otherwise servers. Then leaves out switches that
/// join nothing: those with fewer than two cables, one after the other. Tells in a note how many nodes are left out.
///
/// Cost     linear in the cabling, and O(expression * name) for each name.
/// Errors   kInvalidArgument: a bad expression, named by its flag; no server is left.
/// Example  select_nodes(cabling, {.hosts = "^gpu", .exclude = "login|mgmt"})
Result<Cabling> select_nodes(Cabling cabling, const NameSelection& selection);

/// The servers of a job, by their names with or without the domain, and all that is no server, but for switches that join nothing then.
/// Cost     linear in the cabling.
Cabling select_job(Cabling cabling, std::span<const std::string> hosts);

/// The servers of a job and all that cables join with them, but for switches that join nothing then.
/// Cost     nearly linear in the cabling.
Cabling select_network(Cabling cabling, std::span<const std::string> hosts);

}  // namespace hips::topology

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/result.hpp"
#include "topology/cabling/cabling.hpp"

namespace hips::topology {

/// Limits of a file: any text is read within seconds and 1 GiB.
inline constexpr std::size_t kMostCabledNodes = 250'000;
inline constexpr std::size_t kMostCables = 500'000;

/// Collects what a reader finds in its file. Knows nodes by their names, counts a cable once that the file lists from both
/// ends, and writes one note for each kind of thing that is ignored.
class CablingBuilder {
 public:
  explicit CablingBuilder(std::string_view file) : file_(file) {}

  /// The index of the node `name`, which is added if it is new. A known kind replaces an unknown one.
  std::size_t node(std::string_view name, CabledNode::Kind kind, std::int64_t line);

  /// Adds a cable, or completes the one between the same two ports: with a rate that was not known, or the lower of two. Cables
  /// whose ports the file does not tell are the same as those listed in the other direction, one by one. A cable from a node to
  /// itself is ignored.
  ///
  /// Cost     O(1) on average.
  void add(Cable cable);

  /// Counts something that is ignored or assumed: "routers are ignored". The note tells the first line, unless it is 0,
  /// the first example, unless it is empty, and the number.
  void note(std::string_view what, std::int64_t line, std::size_t count = 1, std::string_view example = {});

  [[nodiscard]] tl::unexpected<Status> bad(std::int64_t line, std::string_view problem) const;

  /// Has the file more nodes or cables than the limits? No more are added then, and finish() says so.
  [[nodiscard]] bool is_full() const {
    return result_.nodes.size() > kMostCabledNodes || result_.cables.size() > kMostCables;
  }

  /// Errors   kInvalidArgument: too many nodes or cables, or none; `right` says what the file should have. Where there is none, the
  ///          first of the notes that have an example may tell why.
  Result<Cabling> finish(std::string_view right);

 private:
  struct Noted {
    std::int64_t line = 0;
    std::size_t count = 0;
    std::string text;  ///< what was noted, with the example
    bool has_example = false;
  };
  /// Cables between two nodes without ports, by the end that the file names first.
  struct Unnamed {
    std::vector<std::size_t> forth, back;
  };

  void add_unnamed(Cable cable);
  [[nodiscard]] std::string end_text(const CableEnd& end) const;
  static void complete(Cable& known, const Cable& cable);

  std::string file_;
  Cabling result_;
  std::unordered_map<std::string, std::size_t> nodes_;
  std::unordered_map<std::string, std::size_t> cables_;  ///< by both ends
  std::unordered_map<std::string, std::size_t> ports_;   ///< how many cables a port has
  std::map<std::pair<std::size_t, std::size_t>, Unnamed> unnamed_;
  std::map<std::string, Noted, std::less<>> noted_;
};

}  // namespace hips::topology

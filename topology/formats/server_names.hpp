#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::topology {

/// Files that name more servers than this are rejected before anything is expanded.
inline constexpr std::uint64_t kMaxServerNames = 1U << 20U;

/// The longest name of a server, which is the limit of DNS names. The limit holds for whole names of a list:
/// many pieces of this length would let a small text expand to gigabytes.
inline constexpr std::size_t kMaxNameLength = 255;

/// Letters, digits and ".-_:/@+".
bool is_name_character(char c);

/// Is `text` one name of at most kMaxNameLength characters, rather than a list of names?
bool is_plain_name(std::string_view text);

/// The name of a host without its domain: "n1" of "n1.cluster". An address has none: all of it is its name.
std::string_view short_name(std::string_view host);

/// The hosts of a job, which launchers write with or without their domain.
class HostNames {
 public:
  explicit HostNames(std::span<const std::string> hosts);

  /// Is it one of them: by its whole name, or by the short one where only one of the two has a domain?
  [[nodiscard]] bool has(std::string_view host) const;
  [[nodiscard]] std::size_t size() const { return whole_.size(); }

 private:
  std::unordered_set<std::string> whole_;
  std::unordered_set<std::string> short_;  ///< of those with a domain
};

/// Reads lists of names, such as the hostlist "n[01-08],login", for topology files.
struct NameListReader {
  Result<std::uint64_t> (*count)(std::string_view list);
  /// Errors kInvalidArgument: more than `most` names; then nothing is expanded.
  Result<std::vector<std::string>> (*expand)(std::string_view list, std::uint64_t most);
};

/// Sets the reader that topology files use from now on. The library preloaded into MPI programs sets none:
/// `hips run` converts such files before it starts the program.
///
/// Threads  call it before topology files are read.
void set_name_list_reader(const NameListReader& reader);

/// The number of names in the list `text`. A plain name is one.
///
/// Errors   kInvalidArgument: not a list of names; or a list, and this program has no reader for lists.
Result<std::uint64_t> count_names(std::string_view text);

/// The names in the list `text`, at most `most`. Errors as above.
Result<std::vector<std::string>> expand_names(std::string_view text, std::uint64_t most);

}  // namespace hips::topology

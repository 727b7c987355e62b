#pragma once

#include <compare>
#include <map>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"
#include "lib/mpi/guard.hpp"

namespace hips::mpi {

/// Where a verdict holds: communicators that look alike from here are equally fast.
struct GuardPlace {
  std::string hosts;      ///< "2x4,1x2": two hosts of 4 ranks, then one of 2
  std::string transport;  ///< what carries HiPS' data: "memory", "shm,verbs"
  std::string host_mpi;   ///< "Open_MPI_v4.1.4"
  friend auto operator<=>(const GuardPlace&, const GuardPlace&) = default;
};

/// The verdicts of earlier runs, as a text file of one line each.
///
/// Owns     its lines.
/// Threads  as a value.
class GuardTable {
 public:
  using Key = std::pair<GuardPlace, GuardClass>;

  /// Reads what text() wrote; `name` stands in errors.
  ///
  /// Errors   kInvalidArgument: file, line, what was read and what would be right.
  static Result<GuardTable> parse(std::string_view text, std::string_view name);
  [[nodiscard]] std::string text() const;

  /// A file that is not there is an empty table.
  ///
  /// Errors   those of parse(). kSystem: it cannot be read.
  static Result<GuardTable> load(const std::string& path);
  /// Errors   those of replace_file().
  [[nodiscard]] Status save(const std::string& path) const;

  [[nodiscard]] const std::map<Key, GuardVerdict>& verdicts() const { return verdicts_; }
  void add(const Key& key, const GuardVerdict& verdict) { verdicts_[key] = verdict; }

 private:
  std::map<Key, GuardVerdict> verdicts_;
};

/// HIPS_GUARD_TABLE in one process: read when first asked for, written at the end if there is news.
///
/// A file that cannot be understood is somebody else's, or has a typing error that its owner wants to find:
/// it is told of once, and left as it is.
class GuardTableFile {
 public:
  /// `tells` in one process of the job. A path of "" is a table without a file.
  GuardTableFile(std::string path, bool tells) : path_(std::move(path)), tells_(tells) {}

  const GuardTable& table();
  void add(const GuardTable::Key& key, const GuardVerdict& verdict);
  void save();

 private:
  std::string path_;
  bool tells_, is_read_ = false, is_damaged_ = false, has_news_ = false;
  GuardTable table_;
};

/// "2x4,1x2" from the hosts of ranks in rank order: hosts as they first appear, equal neighbours together.
std::string hosts_text(const std::vector<std::string>& host_of_rank);

}  // namespace hips::mpi

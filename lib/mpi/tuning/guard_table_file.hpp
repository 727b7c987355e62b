#pragma once

#include <string>
#include <utility>

#include "lib/base/result.hpp"
#include "lib/mpi/tuning/guard_table.hpp"

namespace hips::mpi {

/// Reads a table; a file that does not exist is an empty table.
///
/// Errors   those of GuardTable::parse(). kSystem: the file cannot be read.
Result<GuardTable> load_guard_table(const std::string& path);
/// Errors   those of replace_file().
[[nodiscard]] Status save_guard_table(const GuardTable& table, const std::string& path);

/// HIPS_GUARD_TABLE in one process: read when it is first needed, written at the end if it has changed.
///
/// A file that cannot be parsed belongs to something else or has a typing error that its owner wants to find:
/// one warning names it, and it stays unchanged.
class GuardTableFile {
 public:
  /// `warns` in one process of the job. A path of "" is a table without a file.
  GuardTableFile(std::string path, bool warns) : path_(std::move(path)), warns_(warns) {}

  const GuardTable& table();
  void add(const GuardTable::Key& key, const TuningDecision& decision);
  void save();

 private:
  std::string path_;
  bool warns_, is_read_ = false, is_damaged_ = false, has_changed_ = false;
  GuardTable table_;
};

}  // namespace hips::mpi

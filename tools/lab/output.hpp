#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::lab {

/// Where the ranks' output goes: whole lines to our own streams, so that those of several ranks do not mix, and
/// every byte to a file for each rank and stream, where a folder is given (rank0.out, rank0.err).
class RankOutput {
 public:
  /// `tagged`: each line begins with "[rank] ".
  ///
  /// Errors   kInvalidArgument: the folder cannot be written to.
  static Result<RankOutput> create(std::size_t num_ranks, const std::string& folder, bool tagged);

  void add(std::size_t rank, bool is_error, std::string_view bytes);
  /// Prints what was begun and not ended by a newline.
  ///
  /// Errors   kSystem: some output could not be written.
  Status finish();

 private:
  /// A longer line is printed in pieces: a progress bar, or binary data.
  static constexpr std::size_t kLongLine = 64U << 10U;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct Stream {
    std::string begun;
    std::string path;
    std::unique_ptr<std::FILE, Close> file;
  };
  /// Whether no line of another rank, and no tag, may come between: every byte is printed as it is.
  [[nodiscard]] bool is_alone() const { return !tagged_ && streams_.size() <= 2; }
  void print(std::size_t rank, bool is_error, std::string_view lines) const;

  std::vector<Stream> streams_;  ///< by rank, then output, error
  bool tagged_ = false;
};

}  // namespace hips::lab

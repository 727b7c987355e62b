#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace hips::topology {

/// The most cells of a row.
inline constexpr std::size_t kMostCells = 1000;

/// The rows of a table as spreadsheets write it: cells between separators; a cell in quotes may have separators, ends of lines
/// and doubled quotes. Cells come without blanks at their ends. Rows without text are left out.
class CsvRows {
 public:
  CsvRows(std::string_view file, std::string_view text, char separator);

  /// The next row; empty at the end of the text.
  ///
  /// Errors   kInvalidArgument: a quote without its end, or more than kMostCells cells.
  Result<std::vector<std::string>> next();

  /// The line where the last row begins.
  [[nodiscard]] std::int64_t line() const { return line_; }

 private:
  Result<std::string> take_cell();

  std::string_view file_, rest_;
  char separator_;
  std::int64_t line_ = 0, next_line_ = 1;
};

}  // namespace hips::topology

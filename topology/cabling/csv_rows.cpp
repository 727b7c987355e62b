#include "topology/cabling/csv_rows.hpp"

#include <algorithm>

#include "topology/cabling/text_lines.hpp"

namespace hips::topology {

CsvRows::CsvRows(std::string_view file, std::string_view text, char separator)
    : file_(file), rest_(without_mark(text)), separator_(separator) {}

/// Takes a cell, but not the separator or the end of the line behind it.
Result<std::string> CsvRows::take_cell() {
  const std::size_t blanks = rest_.find_first_not_of(separator_ == '\t' ? " " : " \t");
  if (blanks != std::string_view::npos && rest_[blanks] == '"') {
    rest_.remove_prefix(blanks + 1);
    std::string cell;
    for (;;) {
      const std::size_t end = rest_.find('"');
      if (end == std::string_view::npos)
        return bad_line(file_, line_, "a \" is missing at the end of a cell in quotes; add it");
      next_line_ += std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
      cell += rest_.substr(0, end);
      rest_.remove_prefix(end + 1);
      if (!rest_.starts_with('"')) break;
      cell += '"';
      rest_.remove_prefix(1);
    }
    // Anything between the quote and the separator belongs to no cell.
    rest_.remove_prefix(std::min(rest_.find_first_of(std::string{separator_, '\n'}), rest_.size()));
    return std::string(without_blanks(cell));
  }
  const std::size_t end = std::min(rest_.find_first_of(std::string{separator_, '\n'}), rest_.size());
  const std::string cell(without_blanks(rest_.substr(0, end)));
  rest_.remove_prefix(end);
  return cell;
}

Result<std::vector<std::string>> CsvRows::next() {
  std::vector<std::string> cells;
  while (!rest_.empty()) {
    if (cells.empty()) line_ = next_line_;
    auto cell = take_cell();
    if (!cell) return fail(cell.error());
    if (cells.size() == kMostCells)
      return bad_line(file_, line_, "the row has more than 1000 cells; give a table of cables");
    cells.push_back(*std::move(cell));
    const char after = rest_.empty() ? '\n' : rest_.front();
    if (!rest_.empty()) rest_.remove_prefix(1);
    if (after == separator_) continue;
    ++next_line_;
    if (std::ranges::any_of(cells, [](const std::string& text) { return !text.empty(); })) break;
    cells.clear();
  }
  return cells;
}

}  // namespace hips::topology

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "lib/base/config/config.hpp"

namespace hips {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(std::string(HIPS_SOURCE_ROOT) + "/" + path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// "|" ends a cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped.empty() ? "-" : escaped;
}

TEST(EnvironmentPageTest, ThePageListsEveryVariable) {
  std::string table;
  for (const ConfigVariable& variable : config_variables()) {
    table += fmt::format("| `{}` | {} | {} | {} |\n", variable.name, cell(variable.values),
                         cell(variable.default_value), cell(variable.doc));
  }
  EXPECT_THAT(read("docs/environment.md"), ::testing::HasSubstr("|---|---|---|---|\n" + table + "\n"))
      << "write:\n"
      << table;
}

TEST(ReadmeTest, TheProgramOfTheReadmeIsTheExample) {
  const std::string example = read("examples/allreduce.cpp");
  const std::size_t code = example.find("#include");
  ASSERT_NE(code, std::string::npos);
  EXPECT_THAT(read("README.md"), ::testing::HasSubstr("```cpp\n" + example.substr(code) + "```\n"));
}

}  // namespace
}  // namespace hips

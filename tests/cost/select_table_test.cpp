#include "lib/cost/select_table.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "tests/choices.hpp"

namespace hips::cost {
namespace {

constexpr const char* kTwo =
    "# HiPS selection table 1\n"
    "topology=bcube:3,1 up_to=65536 algorithm=recursive-doubling pattern=default\n"
    "topology=bcube:3,1 up_to=any algorithm=hips pattern=mesh,ring\n"
    "topology=switch:2/2 up_to=any algorithm=auto pattern=default\n";

TEST(SelectTable, ReadsTheTextThatItWrites) {
  const auto table = SelectTable::parse(kTwo, "two");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->text(), kTwo);
  EXPECT_EQ(table->find("bcube:3,2"), nullptr);
  const auto* plans = table->find("bcube:3,1");
  ASSERT_NE(plans, nullptr);
  EXPECT_EQ(to_string(*plans), "recursive-doubling up to 65536, else hips mesh,ring");

  const std::string path = ::testing::TempDir() + "/select_table_" + std::to_string(getpid());
  ASSERT_TRUE(table->write(path).ok());
  const auto again = SelectTable::read(path);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->text(), kTwo);
  // A symbolic link to a table stays a link.
  const std::string link = path + ".link";
  std::filesystem::create_symlink(path, link);
  EXPECT_TRUE(table->write(link).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  for (const std::string& file : {link, path}) (void)std::remove(file.c_str());
}

TEST(SelectTable, AcceptsPathsWithSpaces) {
  for (const std::string spec :
       {"file:my net.yaml#0123456789abcdef", "file:50% \n\tdone.yaml#1", "file:\xc3\xa4 b"}) {
    SelectTable table;
    table.set(spec, {{}});
    table.set("switch:4", {{}});
    const auto read = SelectTable::parse(table.text(), "t");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_NE(read->find(spec), nullptr) << table.text();
    EXPECT_NE(read->find("switch:4"), nullptr);
  }
}

TEST(SelectTable, AnErrorNamesTheWrongLine) {
  const std::string title = "# HiPS selection table 1\n";
  const auto error_of = [](const std::string& text) {
    const auto table = SelectTable::parse(text, "t");
    return table ? std::string("none") : table.error().message;
  };
  const auto expect = [&](const std::string& text, const std::string& part) {
    EXPECT_NE(error_of(text).find(part), std::string::npos) << text << "gives " << error_of(text);
  };
  expect("", "line 1: found \"\"; the first line must be");
  expect("{}", "line 1");
  expect(title + "\n# a word\ntopo=switch:4", "line 4: found \"topo=switch:4\"; expected topology=...");
  expect(title + "topology=switch:4 up_to=1K algorithm=hips pattern=default", "up_to=1K is neither");
  expect(title + "topology=switch:4 up_to=-1 algorithm=hips pattern=default", "up_to=-1 is neither");
  expect(title + "topology=switch:4 up_to=18446744073709551615 algorithm=hips pattern=default", "is neither");
  expect(title + "topology=file:a%2 up_to=any algorithm=hips pattern=default",
         "topology=file:a%2: two hexadecimal digits");
  expect(title + "topology=file:a%zz up_to=any algorithm=hips pattern=default",
         "topology=file:a%zz: two hexadecimal digits");
  expect(title + "topology=switch:4 up_to=any algorithm=best pattern=default",
         "unknown algorithm=best; expected auto or");
  expect(title + "topology=switch:4 up_to=any algorithm=hips pattern=star", "pattern=star");
  expect(title + "topology=switch:4 up_to=any algorithm=auto pattern=ring",
         "invalid pattern=ring for algorithm=auto");
  expect(title + "topology=switch:4 up_to=any algorithm=hips", "found \"\"; expected pattern=...");
  expect(title + "topology=switch:4 up_to=any algorithm=hips pattern=mesh more",
         "unexpected \"more\" after pattern");
  expect(title + "topology=switch:4 up_to=8 algorithm=hips pattern=mesh", "needs up_to=any");
  const std::string any = "topology=switch:4 up_to=any algorithm=hips pattern=mesh\n";
  expect(title + any + any, "line 3: the lines of switch:4 must ascend");
}

TEST(SelectTable, SurvivesRandomDamageToAFile) {
  std::mt19937_64 random(test::seed());
  for (int trial = 0; trial < 2000; ++trial) {
    std::string text = kTwo;
    for (std::uint64_t damage = random() % 5 + 1; damage > 0; --damage)
      text[random() % text.size()] = static_cast<char>(random() % 256);
    const auto table = SelectTable::parse(text, "t");
    if (table)
      EXPECT_TRUE(SelectTable::parse(table->text(), "t"));
    else
      EXPECT_EQ(table.error().code, Code::kInvalidArgument);
  }
}

TEST(SelectTable, AnErrorNamesTheMissingFile) {
  const auto table = SelectTable::read("/nowhere/table");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().message,
            "selection table /nowhere/table: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace hips::cost

#include "lib/base/os/replace_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "lib/base/os/unique_fd.hpp"

namespace hips {
namespace replace_file_test {

namespace fs = std::filesystem;

/// Each test has its own folder.
class ReplaceFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "hips_replace_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
};

TEST_F(ReplaceFile, CreatesAndReplacesAFileAndLeavesNoOtherFile) {
  const fs::path path = folder_ / "a";
  ASSERT_TRUE(replace_file(path, "old and long").ok());
  ASSERT_TRUE(replace_file(path, "new").ok());
  EXPECT_EQ(text_of(path), "new");
  EXPECT_EQ(entries(), 1);
}

TEST_F(ReplaceFile, KeepsThePermissionsOfTheFile) {
  const fs::path path = folder_ / "a";
  ASSERT_TRUE(replace_file(path, "old").ok());
  for (const auto mode : {0600, 0664, 0444}) {
    fs::permissions(path, static_cast<fs::perms>(mode));
    ASSERT_TRUE(replace_file(path, "new").ok());
    EXPECT_EQ(fs::status(path).permissions(), static_cast<fs::perms>(mode));
  }
}

TEST_F(ReplaceFile, FollowsAndKeepsSymbolicLinks) {
  fs::create_directory(folder_ / "real");
  std::ofstream(folder_ / "real" / "a") << "old";
  fs::create_symlink("real/a", folder_ / "link");
  fs::create_symlink("real/none", folder_ / "dangling");
  for (const char* name : {"link", "dangling"}) {
    ASSERT_TRUE(replace_file(folder_ / name, "new").ok()) << name;
    EXPECT_TRUE(fs::is_symlink(folder_ / name));
    EXPECT_EQ(text_of(folder_ / name), "new");
  }
  EXPECT_EQ(text_of(folder_ / "real" / "a"), "new");
  EXPECT_EQ(entries(), 3);
}

TEST_F(ReplaceFile, WritesIntoAPipe) {
  const fs::path path = folder_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const UniqueFd reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(reader.valid());
  fs::create_symlink("pipe", folder_ / "link");
  for (const char* name : {"pipe", "link"}) {
    ASSERT_TRUE(replace_file(folder_ / name, "text").ok()) << name;
    std::array<char, 16> got{};
    EXPECT_EQ(read(reader.get(), got.data(), got.size()), 4);
    EXPECT_STREQ(got.data(), "text");
    EXPECT_TRUE(fs::is_fifo(path));
  }
}

TEST_F(ReplaceFile, ReturnsTheReasonOfAFailure) {
  const Status missing = replace_file(folder_ / "none" / "a", "text");
  EXPECT_EQ(missing.message, "cannot be written: No such file or directory");
  EXPECT_EQ(missing.sys_errno, ENOENT);
  EXPECT_EQ(replace_file(folder_, "text").message, "cannot be written: Is a directory");
  EXPECT_EQ(entries(), 0);
}

}  // namespace replace_file_test
}  // namespace hips

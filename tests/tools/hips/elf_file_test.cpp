#include "tools/hips/run/elf_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include <unistd.h>

#include "tools/hips/run/program.hpp"

namespace hips::cli {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string bytes_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

TEST(ElfFile, AProgramNamesItsLoaderAndItsLibraries) {
  const auto elf = read_elf("/bin/true");
  ASSERT_TRUE(elf);
  EXPECT_THAT(elf->interpreter, HasSubstr("/ld-linux"));
  EXPECT_THAT(elf->needed, Contains("libc.so.6"));
  EXPECT_FALSE(read_elf("/etc/passwd"));
  EXPECT_FALSE(read_elf("/no/such/file"));
}

TEST(ElfFile, BrokenAndCutOffFilesAreReadAsFarAsTheyGo) {
  const std::string whole = bytes_of("/bin/true");
  const std::string path = testing::TempDir() + "hips_broken_program";
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text = whole;
    if (round % 2 == 0) text.resize(random() % (round % 4 == 0 ? 2048 : text.size()));
    // Headers and the table of libraries stand in the first pages.
    for (unsigned i = random() % 8; i > 0 && !text.empty(); --i)
      text[random() % std::min<std::size_t>(text.size(), 1024)] = static_cast<char>(random());
    std::ofstream(path, std::ios::binary) << text;
    const auto elf = read_elf(path);
    if (!elf) continue;
    for (const std::string& one : elf->needed) EXPECT_LT(one.size(), whole.size());
    EXPECT_LT(elf->interpreter.size(), whole.size());
  }
  unlink(path.c_str());
}

TEST(ElfFile, TheMpiOfAProgramThatNamesItNeedsNoLoader) {
  // This program's headers, with the name of its C library replaced: no loader could list it.
  std::string text = bytes_of("/bin/true");
  const std::string path = testing::TempDir() + "hips_program_of_mpi";
  for (std::size_t at = text.find("libc.so.6"); at != std::string::npos; at = text.find("libc.so.6", at + 1))
    text.replace(at, 9, "libmpi.so");
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(inspect_program(path).abi, MpiAbi::kOpenMpi);
  EXPECT_EQ(inspect_program(path).mpi_library, "libmpi.so");
  unlink(path.c_str());
}

}  // namespace
}  // namespace hips::cli

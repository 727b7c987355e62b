#pragma once

#include <gtest/gtest.h>

#include <sys/wait.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

// What the tests of `hips topo` share: they run the tool as a user does; HIPS_TOOL names it.
namespace hips::test {

struct Outcome {
  int exit_code = -1;
  std::string out;  ///< includes stderr if the command redirects it
};

inline Outcome run(const std::string& arguments, const std::string& environment = "") {
  const char* tool = std::getenv("HIPS_TOOL");
  EXPECT_NE(tool, nullptr) << "HIPS_TOOL names the hips program to test";
  const std::string command =
      environment + " '" + std::string(tool != nullptr ? tool : "") + "' " + arguments;
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 1 << 16> buffer{};
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    outcome.out.append(buffer.data(), n);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

}  // namespace hips::test

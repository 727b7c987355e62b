// The classes that a call passes on its way from hips_allreduce() to the executor, as docs/architecture.md tells them. A function of
// the user that reduces, called at the end of that way, looks at the stack.

#include <cxxabi.h>
#include <execinfo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <hips/hips.hpp>

#include "tests/comm/whole_ranks.hpp"

namespace call_path_test {
namespace {

constexpr std::size_t kMostFrames = 100;
std::array<void*, kMostFrames> frames;
int num_frames = 0;

void add_and_look(const void* in, void* inout, std::uint64_t count, hips_type_t /*type*/, void* /*context*/) {
  num_frames = backtrace(frames.data(), static_cast<int>(kMostFrames));
  for (std::uint64_t i = 0; i < count; ++i)
    static_cast<std::int64_t*>(inout)[i] += static_cast<const std::int64_t*>(in)[i];
}

/// The functions of this program by their addresses. Few are exported, so the symbol table has to tell them.
std::map<std::uintptr_t, std::string> functions() {
  std::uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        *static_cast<std::uintptr_t*>(into) = info->dlpi_addr;
        return 1;  // the first one is the program
      },
      &base);
  std::map<std::uintptr_t, std::string> found;
  const auto close = [](FILE* file) { pclose(file); };
  const std::string command = "nm /proc/" + std::to_string(getpid()) + "/exe";
  const std::unique_ptr<FILE, decltype(close)> names(popen(command.c_str(), "r"), close);
  std::array<char, 4096> line{};
  while (names != nullptr && fgets(line.data(), static_cast<int>(line.size()), names.get()) != nullptr) {
    unsigned long address = 0;
    char kind = 0;
    int at = 0;
    if (sscanf(line.data(), "%lx %c %n", &address, &kind, &at) < 2 || std::tolower(kind) != 't') continue;
    std::string name(line.data() + at);
    name.resize(name.find_last_not_of('\n') + 1);
    int status = 0;
    if (char* readable = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status); readable != nullptr) {
      name = readable;
      std::free(readable);
    }
    found.emplace(base + address, std::move(name));
  }
  return found;
}

/// "hips::comm::Communicator" of "hips::comm::Communicator::call(hips::comm::CallArgs const&)"; "" for other functions.
std::string class_of(const std::string& function) {
  const std::string name = function.substr(0, function.find('('));
  const std::size_t end = name.rfind("::");
  if (!name.starts_with("hips::") || end == std::string::npos) return {};
  const std::size_t begin = name.rfind("::", end - 1) + 2;
  return std::isupper(static_cast<unsigned char>(name[begin])) != 0 ? name.substr(0, end) : std::string();
}

/// From hips_allreduce() on, each once: "hips::comm::Communicator hips::comm::PlanBackend ...", up to the first of the executor.
std::vector<std::string> classes_on_the_stack() {
  const auto known = functions();
  std::vector<std::string> classes;
  bool is_call = false;
  for (int i = num_frames - 1; i >= 0; --i) {
    auto found = known.upper_bound(reinterpret_cast<std::uintptr_t>(frames[static_cast<std::size_t>(i)]) - 1);
    if (found == known.begin()) continue;
    const std::string& function = std::prev(found)->second;
    is_call |= function == "hips_allreduce";
    const std::string one = class_of(function);
    if (!is_call || one.empty() || std::ranges::count(classes, one) > 0) continue;
    classes.push_back(one);
    if (one.starts_with("hips::node::") || one.starts_with("hips::exec::")) break;
  }
  return classes;
}

/// What rank 0, or the first rank that reduces, has seen.
std::string path_of_a_call() {
  hips_op_t op = HIPS_OP_NULL;
  if (hips_op_create(add_and_look, 1, nullptr, nullptr, &op) != HIPS_OK) return "no op";
  hips_comm_t comm = nullptr;
  if (hips_comm_create(nullptr, nullptr, &comm) != HIPS_OK) return "no communicator";
  std::int64_t value = 1;
  const hips_status_t status = hips_allreduce(HIPS_IN_PLACE, &value, 1, HIPS_INT64, op, comm);
  std::string text;
  for (const std::string& one : classes_on_the_stack()) text += (text.empty() ? "" : " ") + one;
  hips_comm_destroy(comm);
  return status == HIPS_OK && value == 2 ? text : "wrong";
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> found;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    found.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return found;
}

void expect_short_path(const hips::test::Environment& environment, const std::string& backend,
                       const std::string& executor) {
  hips::test::RankProcesses ranks(
      2, [](int, const hips::test::Ready&) { return path_of_a_call(); }, environment);
  for (const hips::test::Outcome& outcome : ranks.wait()) {
    const std::vector<std::string> classes = words(outcome.text);
    EXPECT_THAT(classes,
                testing::AllOf(testing::Contains("hips::comm::Communicator"), testing::Contains(backend)))
        << outcome.text;
    ASSERT_FALSE(classes.empty());
    EXPECT_TRUE(classes.back().starts_with(executor)) << outcome.text;
    EXPECT_LE(classes.size(), 5U) << outcome.text;
  }
}

TEST(CallPath, ReachesSharedMemoryThroughAtMostFiveClasses) {
  expect_short_path({}, "hips::comm::SharedMemoryBackend", "hips::node::");
}

TEST(CallPath, ReachesTheExecutorOfPlansThroughAtMostFiveClasses) {
  expect_short_path({{"HIPS_TRANSPORT", "tcp"}}, "hips::comm::PlanBackend", "hips::exec::");
}

}  // namespace
}  // namespace call_path_test

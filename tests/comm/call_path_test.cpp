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
#include <string_view>
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

struct Function {
  std::uintptr_t end = 0;
  std::string name;
};

/// The functions of this program by where they begin. Few are exported, so the symbol table has to tell them.
std::map<std::uintptr_t, Function> functions() {
  std::uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        *static_cast<std::uintptr_t*>(into) = info->dlpi_addr;
        return 1;  // the first one is the program
      },
      &base);
  std::map<std::uintptr_t, Function> found;
  const auto close = [](FILE* file) { pclose(file); };
  const std::string command = "nm -S /proc/" + std::to_string(getpid()) + "/exe";
  const std::unique_ptr<FILE, decltype(close)> names(popen(command.c_str(), "r"), close);
  std::array<char, 4096> line{};
  while (names != nullptr && fgets(line.data(), static_cast<int>(line.size()), names.get()) != nullptr) {
    unsigned long address = 0, bytes = 0;
    char kind = 0;
    int at = 0;
    if (sscanf(line.data(), "%lx %lx %c %n", &address, &bytes, &kind, &at) < 3) continue;
    if (std::string("tTwW").find(kind) == std::string::npos) continue;
    std::string name(line.data() + at);
    name.resize(name.find_last_not_of('\n') + 1);
    int status = 0;
    if (char* readable = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status); readable != nullptr) {
      name = readable;
      std::free(readable);
    }
    found.emplace(base + address, Function{base + address + bytes, std::move(name)});
  }
  return found;
}

/// "hips::comm::Communicator" of "hips::comm::Communicator::call(hips::comm::CallArgs const&)"; "" for other functions.
std::string class_of(std::string function) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  for (std::size_t at = 0; (at = function.find(kUnnamed)) != std::string::npos;)
    function.erase(at, kUnnamed.size());
  std::string name;  // without arguments of templates
  int depth = 0;
  for (const char c : function) {
    depth -= c == '>' ? 1 : 0;
    if (depth == 0 && c != '<' && c != '>') name += c;
    depth += c == '<' ? 1 : 0;
  }
  name = name.substr(0, name.find('('));
  name = name.substr(name.rfind(' ') + 1);  // without the type that a template returns
  const std::size_t end = name.rfind("::");
  if (!name.starts_with("hips::") || end == std::string::npos) return {};
  const std::size_t begin = name.rfind("::", end - 1) + 2;
  return std::isupper(static_cast<unsigned char>(name[begin])) != 0 ? name.substr(0, end) : std::string();
}

TEST(CallPath, TellsTheClassOfAFunction) {
  EXPECT_EQ(class_of("hips::comm::Communicator::call(hips::comm::CallArgs const&)"),
            "hips::comm::Communicator");
  EXPECT_EQ(
      class_of(
          "hips::Status hips::comm::Communicator::finish_blocking<hips::comm::TeamCall>(hips::comm::TeamCall&)"),
      "hips::comm::Communicator");
  EXPECT_EQ(class_of("hips::comm::(anonymous namespace)::SingleRankCall::start()"),
            "hips::comm::SingleRankCall");
  EXPECT_EQ(class_of("hips::reduce::fold(hips::DataType)"), "");
  EXPECT_EQ(class_of("main"), "");
}

/// From hips_allreduce() on, each once: "hips::comm::Communicator hips::comm::PlanBackend ...", up to the first of the executor.
std::vector<std::string> classes_on_the_stack() {
  const auto known = functions();
  std::vector<std::string> classes;
  bool is_call = false;
  for (int i = num_frames - 1; i >= 0; --i) {
    auto found = known.upper_bound(reinterpret_cast<std::uintptr_t>(frames[static_cast<std::size_t>(i)]) - 1);
    if (found == known.begin()) continue;
    const auto& [end, function] = std::prev(found)->second;
    if (reinterpret_cast<std::uintptr_t>(frames[static_cast<std::size_t>(i)]) > end) continue;
    is_call |= function == "hips_allreduce";
    const std::string one = class_of(function);
    if (!is_call || one.empty() || std::ranges::count(classes, one) > 0) continue;
    classes.push_back(one);
    if (one.starts_with("hips::node::") || one.starts_with("hips::exec::")) break;
  }
  return classes;
}

/// What this rank has seen: all ranks reduce a vector this short.
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

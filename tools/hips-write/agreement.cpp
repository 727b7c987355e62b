#include "tools/hips-write/agreement.hpp"

#include <map>
#include <sstream>

#include <fmt/format.h>

namespace hips::write {
namespace {

std::map<std::string, std::string> read(const std::string& text) {
  std::map<std::string, std::string> values;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    const std::size_t space = line.find(' ');
    if (space != line.npos) values[line.substr(0, space)] = line.substr(space + 1);
  }
  return values;
}

}  // namespace

std::string agreement_text(const WriteOptions& options) {
  const auto flag = [](bool value) { return value ? "on" : "off"; };
  std::string text = fmt::format("program {}\n", options.name());
  text += options.all_sizes ? "-s all\n" : fmt::format("-s {}\n", options.bytes);
  text += options.duration_s > 0 ? fmt::format("-D {}\n-f {}\n", options.duration_s, options.margin_s)
                                 : fmt::format("-n {}\n", options.iterations);
  text += fmt::format("-q {}\n-b {}\n-R {}\n", options.queue_pairs, flag(options.bidirectional),
                      flag(options.rdma_cm));
  text += fmt::format("--raw {}\n--price {}\n", flag(options.raw), flag(options.overhead));
  if (options.raw || options.overhead)
    text += fmt::format("--write_with_imm {}\n", flag(options.with_immediate));
  text += fmt::format("--perform_warm_up {}\n--data_validation {}\n", flag(options.warm_up),
                      flag(options.validate));
  return text;
}

Status check_agreement(const WriteOptions& options, const std::string& theirs) {
  const auto here = read(agreement_text(options));
  auto there = read(theirs);
  std::string differences;
  const auto differ = [&](const std::string& flag, const std::string& ours, const std::string& other) {
    differences +=
        fmt::format("{}{} is {} here and {} there", differences.empty() ? "" : ", ", flag, ours, other);
  };
  for (const auto& [flag, ours] : here) {
    const auto found = there.find(flag);
    const std::string other = found == there.end() ? "not given" : found->second;
    if (found != there.end()) there.erase(found);
    if (other != ours) differ(flag, ours, other);
  }
  for (const auto& [flag, other] : there) differ(flag, "not given", other);
  if (differences.empty()) return Status::success();
  return Status::error(Code::kMismatch, "both ends need the same settings: " + differences);
}

}  // namespace hips::write

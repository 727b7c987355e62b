#include "tools/lab/output.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

namespace hips::lab {

Result<RankOutput> RankOutput::create(std::size_t num_ranks, const std::string& folder, bool tagged) {
  RankOutput output;
  output.tagged_ = tagged;
  output.streams_.resize(2 * num_ranks);
  if (folder.empty()) return output;
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  for (std::size_t i = 0; i < output.streams_.size(); ++i) {
    const std::string path = fmt::format("{}/rank{}.{}", folder, i / 2, i % 2 == 0 ? "out" : "err");
    output.streams_[i].path = path;
    output.streams_[i].file.reset(std::fopen(path.c_str(), "we"));
    if (!output.streams_[i].file) {
      return fail(Code::kInvalidArgument,
                  fmt::format("lab: {} cannot be written: {}", path, std::strerror(errno)));
    }
  }
  return output;
}

void RankOutput::add(std::size_t rank, bool is_error, std::string_view bytes) {
  Stream& stream = streams_[2 * rank + (is_error ? 1 : 0)];
  if (stream.file) std::fwrite(bytes.data(), 1, bytes.size(), stream.file.get());
  const auto end = bytes.rfind('\n');
  std::size_t ready = end == std::string_view::npos ? 0 : stream.begun.size() + end + 1;
  stream.begun += bytes;
  if (is_alone() && stream.begun.size() - ready > kLongLine) ready = stream.begun.size();
  if (ready == 0) return;
  print(rank, is_error, std::string_view(stream.begun).substr(0, ready));
  stream.begun.erase(0, ready);
}

Status RankOutput::finish() {
  Status status;
  const auto check = [&](std::FILE* file, const std::string& name) {
    if ((std::fflush(file) != 0 || std::ferror(file) != 0) && status.ok())
      status = Status::error(Code::kSystem, fmt::format("lab: {} cannot be written: output is lost", name));
  };
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    std::string rest = std::exchange(streams_[i].begun, "");
    if (!rest.empty()) print(i / 2, i % 2 == 1, is_alone() ? rest : rest + "\n");
    if (streams_[i].file) check(streams_[i].file.get(), streams_[i].path);
  }
  check(stdout, "the standard output");
  return status;
}

void RankOutput::print(std::size_t rank, bool is_error, std::string_view lines) const {
  std::FILE* to = is_error ? stderr : stdout;
  if (!tagged_) {
    std::fwrite(lines.data(), 1, lines.size(), to);
  } else {
    while (!lines.empty()) {
      const auto end = lines.find('\n') + 1;
      fmt::print(to, "[{}] {}", rank, lines.substr(0, end));
      lines.remove_prefix(end);
    }
  }
  std::fflush(to);
}

}  // namespace hips::lab

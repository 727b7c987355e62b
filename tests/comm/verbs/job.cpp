#include "tests/comm/verbs/job.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "transports/verbs/verbs.hpp"

namespace hips::test {
namespace {

std::vector<std::string> find_ports() {
  // Jobs say themselves what they run on; what a lab has set for its own ranks is not theirs.
  for (const char* name : {"HIPS_TOPO", "HIPS_RANK", "HIPS_SIZE", "HIPS_ROOT"}) unsetenv(name);
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    const char* hca = std::getenv("HIPS_IB_HCA");
    verbs::VerbsOptions options;
    options.hca = hca != nullptr ? hca : "";
    const auto ports = verbs::find_ports(options);
    std::string text = ports ? "+" : "-" + ports.error().message;
    for (std::size_t i = 0; ports && i < ports->size(); ++i) text += (*ports)[i].name + "\n";
    (void)!write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t size = read(ends[0], text.data(), text.size());
  close(ends[0]);
  int status = 0;
  (void)waitpid(child, &status, 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  if (!text.starts_with('+')) {
    std::fprintf(stderr, "%s\n", text.empty() ? "no answer about RDMA ports" : text.c_str() + 1);
    std::exit(1);
  }
  std::vector<std::string> names;
  for (std::size_t at = 1; at < text.size(); at = text.find('\n', at) + 1)
    names.push_back(text.substr(at, text.find('\n', at) - at));
  return names;
}

/// Before any test, so that without a device the program fails with that line and nothing else.
const std::vector<std::string> ports_at_start = find_ports();

}  // namespace

const std::vector<std::string>& rdma_ports() {
  return ports_at_start;
}
const std::string& rdma_port() {
  return ports_at_start.front();
}

std::map<std::string, std::string> verbs_environment() {
  return {{"HIPS_TRANSPORT", "verbs"},
          {"HIPS_IB_HCA", rdma_port()},
          {"HIPS_IB_TIMEOUT", "14"},
          {"HIPS_TIMEOUT", "300"}};
}

std::vector<std::string> run_job(int num_ranks, const RankProcesses::Body& body,
                                 const std::map<std::string, std::string>& environment) {
  std::map<std::string, std::string> all = verbs_environment();
  for (const auto& [name, value] : environment) all[name] = value;
  RankProcesses ranks(num_ranks, body, all);
  std::vector<std::string> texts;
  for (const Outcome& outcome : ranks.wait(10min)) {
    texts.push_back(outcome.hung             ? "hung: " + outcome.text
                    : !outcome.exited        ? fmt::format("killed by signal {}", outcome.signal)
                    : outcome.exit_code != 0 ? fmt::format("exit {}: {}", outcome.exit_code, outcome.text)
                                             : outcome.text);
  }
  return texts;
}

}  // namespace hips::test

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/hips/command.hpp"
#include "tools/hips/trace/trace_file.hpp"
#include "tools/hips/trace/trace_summary.hpp"

namespace hips::cli {
namespace {

struct SummaryOptions {
  std::string directory;
  bool json = false;
};

void run_summary(const SummaryOptions& options) {
  const auto traces = value_or_throw(trace::read_trace_directory(options.directory));
  const trace::Summary summary = trace::summarize(traces);
  const std::string text = options.json ? trace::to_json(summary).dump(2) + "\n" : trace::to_text(summary);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

void add_trace(CLI::App& app) {
  CLI::App* trace = app.add_subcommand("trace", "Reads the traces that HIPS_TRACE=DIR leaves, one per rank.");
  trace->require_subcommand(1);
  auto options = std::make_shared<SummaryOptions>();
  CLI::App* summary = trace->add_subcommand(
      "summary", "Names the slowest link and the latest rank; shares of each rank's time.");
  summary->add_option("DIR", options->directory, "directory with trace-<rank>.json files")->required();
  summary->add_flag("--json", options->json, "the same for machines");
  summary->callback([options] { run_summary(*options); });
}

}  // namespace hips::cli

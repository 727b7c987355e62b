#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/hips/command.hpp"
#include "tools/hips/common/output.hpp"
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
  write_stdout(text);
}

}  // namespace

void add_trace(CLI::App& app) {
  CLI::App* trace = app.add_subcommand("trace", "Read the traces that HIPS_TRACE=DIR writes, one per rank");
  trace->require_subcommand(1);
  auto options = std::make_shared<SummaryOptions>();
  CLI::App* summary = trace->add_subcommand(
      "summary", "Show how each rank spends its time, the slowest link and the latest rank");
  summary->add_option("DIR", options->directory, "Folder with trace-<rank>.json files")->required();
  summary->add_flag("--json", options->json, "Print JSON");
  summary->callback([options] { run_summary(*options); });
}

}  // namespace hips::cli

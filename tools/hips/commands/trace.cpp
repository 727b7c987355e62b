#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/hips/command.hpp"
#include "tools/hips/common/output.hpp"
#include "tools/hips/trace/trace_file.hpp"
#include "tools/hips/trace/trace_summary.hpp"

namespace hips::cli {
namespace {

struct SummaryOptions {
  std::vector<std::string> paths;
  bool json = false;
};

void run_summary(const SummaryOptions& options) {
  if (options.paths.empty()) {
    throw Error(Status::error(Code::kInvalidArgument,
                              "trace: no traces; give the folder that HIPS_TRACE named, or files of it"));
  }
  const trace::Summary summary = trace::summarize(value_or_throw(trace::read_traces(options.paths)));
  const std::string text =
      options.json
          ? trace::to_json(summary).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                "\n"
          : trace::to_text(summary);
  write_stdout(text);
}

void add_options(CLI::App& command, const std::shared_ptr<SummaryOptions>& options) {
  command.add_option("PATH", options->paths, "Folder with trace-<rank>.json files, or such files");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace

void add_trace(CLI::App& app) {
  CLI::App* trace = app.add_subcommand(
      "trace",
      "Summarise the traces that HIPS_TRACE=DIR writes: how each rank spends its time, the slowest link, the latest rank");
  auto options = std::make_shared<SummaryOptions>(), more = std::make_shared<SummaryOptions>();
  add_options(*trace, options);
  CLI::App* summary = trace->add_subcommand("summary", "The same as hips trace PATH");
  add_options(*summary, more);
  trace->callback([options, more] {
    options->paths.insert(options->paths.end(), more->paths.begin(), more->paths.end());
    options->json = options->json || more->json;
    run_summary(*options);
  });
}

}  // namespace hips::cli

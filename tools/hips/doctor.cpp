#include <cstdio>
#include <memory>
#include <string>

#include "tools/doctor/file_tree.hpp"
#include "tools/doctor/judge.hpp"
#include "tools/doctor/report.hpp"
#include "tools/hips/command.hpp"

namespace hips::cli {
namespace {

struct DoctorOptions {
  bool json = false;
};

int run(const DoctorOptions& options) {
  const LoadedConfig loaded = load_config(process_environment());
  const doctor::Host host = doctor::look_at_host(doctor::FileTree());
  const doctor::RailChoice rails = doctor::choose_rails(host, loaded.config.rdma);
  const doctor::Findings findings = doctor::judge_host(host, loaded, rails);
  const std::string transports = doctor::transports_text(host, loaded.config, rails);
  std::string text;
  if (options.json) {
    nlohmann::ordered_json json;
    json["ranks"] = {doctor::host_json(host, rails, transports)};
    json["findings"] = doctor::findings_json(findings);
    text = json.dump(2) + "\n";
  } else {
    text = doctor::host_text(host, rails, transports) + "\n" + doctor::findings_text(findings);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return doctor::any_error(findings) ? 1 : 0;
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Looks at NICs, addresses, limits and counters; under mpirun also at who reaches whom");
  command->add_flag("--json", options->json, "the same for machines");
  command->callback([options] {
    if (const int code = run(*options); code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace hips::cli

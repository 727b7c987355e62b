#include "tools/hips/common/settings.hpp"

#include "lib/base/config/config_file.hpp"
#include "lib/base/result.hpp"
#include "lib/comm/setup/transport_registry.hpp"

namespace hips::cli {
namespace {

bool reads_settings(std::string_view command) {
  // These commands report bad settings themselves.
  if (command == "doctor" || command == "info" || command == "info env") return false;
  // The program that is run reports them, once for all ranks.
  if (command == "run") return false;
  // Shells run this at start; a bad settings file must not disturb them.
  if (command.starts_with("completion")) return false;
  // The other lab commands run inside guests or make their image.
  return !command.starts_with("lab") || command == "lab run";
}

}  // namespace

const Config& settings() {
  static const LoadedConfig loaded = [] {
    LoadedConfig read = load_process_config();
    if (read.status.ok()) read.status = comm::check_transport_choice(read.config.transport);
    return read;
  }();
  if (!loaded.status.ok()) throw Error(loaded.status);
  return loaded.config;
}

LoadedConfig read_settings() {
  const Environment environment = process_environment();
  const GatheredSettings gathered = gather_settings(environment, config_files(environment));
  LoadedConfig loaded = load_config(gathered.settings);
  if (!gathered.status.ok()) loaded.status = gathered.status;
  return loaded;
}

void check_settings(std::string_view command) {
  if (reads_settings(command)) (void)settings();
}

}  // namespace hips::cli

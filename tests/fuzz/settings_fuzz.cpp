// The environment, files of variables, selection tables, and patterns.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/config/config_file.hpp"
#include "lib/cost/select_table.hpp"
#include "lib/plan/builder.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto settings = hips::parse_config_file("hips.conf", text)) (void)hips::load_config(*settings);
  for (const hips::ConfigVariable& variable : hips::config_variables()) {
    hips::Config config;
    if (variable.set != nullptr) (void)variable.set(config, text);
  }
  (void)hips::cost::SelectTable::parse(text, "table");
  (void)hips::plan::parse_patterns(text);
  return 0;
}

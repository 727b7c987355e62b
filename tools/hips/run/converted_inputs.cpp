#include "tools/hips/run/converted_inputs.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/plan/formats/plan_file.hpp"
#include "lib/plan/formats/plan_json.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/formats/yaml_tree.hpp"

namespace hips::cli {
namespace {

/// A file in memory that programs inherit; its path.
Result<std::string> inherited_file(const char* name, std::string_view text) {
  const auto failed = [&](const char* what) {
    return fail(Code::kSystem,
                fmt::format("run: {} of the converted {}: {}", what, name, std::strerror(errno)));
  };
  const int fd = memfd_create(name, MFD_ALLOW_SEALING);
  if (fd < 0) return failed("memfd_create");
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = ::write(fd, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed("write");
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0) return failed("F_ADD_SEALS");
  return fmt::format("/proc/{}/fd/{}", getpid(), fd);
}

}  // namespace

Result<std::optional<std::string>> converted_topology(const std::string& spec) {
  const auto named = topology::file_spec(spec);
  if (!named) return std::nullopt;
  const auto file = topology::read_file_spec(*named);
  if (!file) return fail(file.error());
  std::error_code error;
  const std::string read = topology::path_of(*named);
  if (!std::filesystem::is_directory(read, error) && !topology::has_added_format(read, "")) {
    const auto text = topology::read_text_file(read, topology::kMostYamlBytes);
    if (!text || (!topology::has_name_lists(*text) && !topology::has_added_format(read, *text)))
      return std::nullopt;
  }
  if (topology::has_plain_spec(file->topology)) return file->topology.spec;
  const auto path = inherited_file("topology file", topology::nameless_topology_text(*file));
  if (!path) return fail(path.error());
  return "file:" + *path;
}

Result<std::optional<std::string>> converted_plan_file(const std::string& path,
                                                       const std::optional<std::string>& topology) {
  const auto given = topology::read_text_file(path, plan::kMostPlanBytes);
  // The library reports what is wrong with a JSON file, and a file that cannot be read.
  if (!given || plan::plan_format(*given) == plan::kJsonFormat) return std::nullopt;
  auto stored = plan::read_plan_file(path);
  if (!stored) return fail(stored.error());
  std::ostringstream text;
  plan::PlanJsonWriter writer(text, stored->plan.shape, {{plan::kConvertedFrom, path}});
  for (const auto& program : stored->plan.programs) writer.add(program);
  writer.finish();
  if (topology) {
    try {
      const Topology wiring = parse_topology(*topology);
      if (wiring.num_ranks() == stored->plan.shape.num_ranks) {
        plan::set_rails(wiring, stored->plan);
        if (Status proved = plan::prove_stored(path, stored->plan, wiring); !proved.ok())
          return fail(std::move(proved));
      }
    } catch (const Error& error) {
      return fail(error.status());
    }
  }
  const auto made = inherited_file("plan", text.str());
  if (!made) return fail(made.error());
  return *made;
}

}  // namespace hips::cli

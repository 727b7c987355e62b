#include "tools/hips/common/temporary_topology.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "lib/base/result.hpp"
#include "topology/formats/topology_file.hpp"

namespace hips::cli {

TemporaryTopology::TemporaryTopology(const std::string& spec) {
  topology::TopologyFile nameless;
  nameless.topology = value_or_throw(topology::load_topology(spec)).topology;
  if (topology::has_plain_spec(nameless.topology)) {
    spec_ = nameless.topology.spec;
    return;
  }
  constexpr std::string_view kSuffix = ".yaml";
  path_ = (std::filesystem::temp_directory_path() / "hips-topology-XXXXXX").string();
  path_ += kSuffix;
  const int fd = mkstemps(path_.data(), static_cast<int>(kSuffix.size()));
  if (fd < 0)
    throw Error(
        Status::error(Code::kSystem, fmt::format("{} cannot be created: {}", path_, std::strerror(errno))));
  ::close(fd);
  if (auto written = topology::write_topology_file(path_, nameless); !written) {
    ::unlink(path_.c_str());
    throw Error(written.error());
  }
  spec_ = "file:" + path_;
}

TemporaryTopology::~TemporaryTopology() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace hips::cli

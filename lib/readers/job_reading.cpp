#include "lib/readers/job_reading.hpp"

#include <utility>

namespace hips::topology {
namespace {

std::vector<std::string>& hosts_of_job() {
  static std::vector<std::string> hosts;
  return hosts;
}

}  // namespace

void read_for_job(std::vector<std::string> hosts) {
  hosts_of_job() = std::move(hosts);
}

const std::vector<std::string>& job_of_reading() {
  return hosts_of_job();
}

Result<TopologyFile> read_slurm_for_job(const std::string& path, std::string_view text,
                                        SlurmOptions options) {
  auto cluster = read_slurm_file(path, text, options);
  if (!cluster && !job_of_reading().empty()) {
    options.job = job_of_reading();
    cluster = read_slurm_file(path, text, std::move(options));
  }
  if (!cluster) return fail(cluster.error());
  return file_of(*std::move(cluster));
}

}  // namespace hips::topology

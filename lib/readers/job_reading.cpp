#include "lib/readers/job_reading.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "topology/formats/server_names.hpp"
#include "topology/spec.hpp"

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

Result<void> check_job(std::string_view file, std::span<const std::string> names, std::string_view why) {
  if (hosts_of_job().empty()) return {};
  const HostNames known(names);
  const auto is_unknown = [&](const std::string& host) { return !known.has(host); };
  const auto count = std::ranges::count_if(hosts_of_job(), is_unknown);
  if (count == 0) return {};
  return fail(Code::kInvalidArgument,
              fmt::format("{}: host {} of the job{} {}", file,
                          in_quotes(*std::ranges::find_if(hosts_of_job(), is_unknown)),
                          count > 1 ? fmt::format(" (and {} more)", count - 1) : "", why));
}

ClusterTopology told_for_job(ClusterTopology of_job, const Status& refused, std::string_view read) {
  of_job.notes.push_back(fmt::format("{}; read for {}", refused.message, read));
  return of_job;
}

Result<TopologyFile> read_slurm_for_job(const std::string& path, std::string_view text,
                                        SlurmOptions options) {
  options.all_nodes = job_of_reading();
  auto cluster = read_slurm_file(path, text, options);
  if (!cluster && !job_of_reading().empty()) {
    options.job = job_of_reading();
    auto of_job = read_slurm_file(path, text, std::move(options));
    if (of_job) cluster = told_for_job(*std::move(of_job), cluster.error());
  }
  if (!cluster) return fail(cluster.error());
  if (auto known = check_job(path, cluster->nodes, kNotInFile); !known) return fail(known.error());
  return file_of(*std::move(cluster));
}

}  // namespace hips::topology

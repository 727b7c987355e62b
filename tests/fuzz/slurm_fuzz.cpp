// Slurm's topology.conf and topology.yaml, and the files and lists that name a job's hosts.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "topology/clusters/job_hosts.hpp"
#include "topology/clusters/slurm.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)hips::topology::read_slurm_topology("topology.conf", text);
  (void)hips::topology::read_slurm_yaml("topology.yaml", text);
  (void)hips::topology::read_hostfile("hosts", text);
  (void)hips::topology::read_nodelist(text);
  return 0;
}

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "tools/lab/network/shaping.hpp"

namespace hips::lab {

/// What `hips lab run` is asked for.
struct LabOptions {
  std::string topology;
  std::int32_t ranks_per_server = 0;  ///< 0: as the topology says
  bool namespaces = false;  ///< servers are network namespaces of this kernel instead of guests; no RDMA
  bool without_topology = false;  ///< HIPS_TOPO is not set: programs find out, or name it themselves
  bool one_guest = false;         ///< all ranks in one guest, on devices that reach themselves
  bool mpirun = false;            ///< the command runs once, on node0, and starts programs on the others
  Shaping shaping;
  int num_cpus = 0;                    ///< of a guest; 0: one, or all of the host's for the lab of one guest
  std::int64_t memory_mb = 0;          ///< of a guest; 0: 512, or 2048 for the lab of one guest
  std::string accelerator;             ///< host, kvm or tcg; empty: the first of these that works
  std::int64_t timeout_s = 600;        ///< for the command; 0: none
  std::string counters;                ///< a file for them
  std::string output;                  ///< a folder for the ranks' output
  std::vector<std::string> writable;   ///< folders of the host that guests may write to
  std::vector<std::string> variables;  ///< further variables to pass: NAME or NAME=VALUE
  bool tagged = false;
  bool quiet = false;
  std::vector<std::string> command;
};

/// Boots a lab, runs the command in it, and takes it down.
///
/// Result   0 where every rank exited with 0; else the exit code of the first rank that did not (128 + signal
///          where one killed it, 1 where its guest was lost); 124 where the time was over. Each such rank has
///          a line on stderr. 128 + signal where one ended the lab.
/// Errors   kInvalidArgument: a wrong option. kUnsupported: something is missing here; the message says what,
///          and what installs it. kTimeout, kSystem: the lab does not come up.
Result<int> run_lab(const LabOptions& options);

}  // namespace hips::lab

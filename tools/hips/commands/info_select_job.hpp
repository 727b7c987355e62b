#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hips::cli {

/// What a job was asked.
struct JobSelectOptions {
  std::optional<std::string> topology{};  ///< of -t; default: HIPS_TOPO, else what the NICs show
  std::vector<std::string>
      topology_words{};                    ///< -t and how its file is read, which was applied; to pass it on
  std::optional<std::string> transport{};  ///< of --transport; default: HIPS_TRANSPORT
  bool json = false;
};

/// `hips info select` as one of several processes: measures the network between the nodes, and rank 0 prints the plans by measured and
/// by default constants side by side.
///
/// Cost     set-up of a communicator, and its measurement (up to 200 ms on a slow network).
/// Errors   (thrown) those of finding the other ranks and of Communicator::create(). Returns the exit code of this rank; none if it is to print the
/// model's choice as a process alone does.
std::optional<int> run_select_in_job(const JobSelectOptions& options);

}  // namespace hips::cli

#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/comm/rank_processes.hpp"

namespace hips::test {

/// The ports of this host, "rxe0:1"; looked up in a process of its own, because one that forks ranks must not
/// have used HiPS. Ends the program with one line where this host has none.
const std::vector<std::string>& rdma_ports();
/// The one that jobs of these tests run over.
const std::string& rdma_port();

/// Runs ranks over verbs and gives what each said. `environment` comes on top of HIPS_TRANSPORT=verbs, the
/// port and a short timeout. A rank that is killed or fails says so in its text.
std::vector<std::string> run_job(int num_ranks, const RankProcesses::Body& body,
                                 const std::map<std::string, std::string>& environment = {});

/// The environment that run_job() starts from.
std::map<std::string, std::string> verbs_environment();

/// What went wrong in `action`, "" where nothing did.
template <typename Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace hips::test

#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "transports/verbs/verbs.hpp"

namespace hips::test {

/// What the tests over verbs ask of the transport: answers are quick on a software device, and a peer that is
/// gone should be noticed in about a second. HIPS_IB_HCA and HIPS_VERBS_CM count as they do in a job.
inline verbs::VerbsOptions verbs_options() {
  const char* hca = std::getenv("HIPS_IB_HCA");
  const char* cm = std::getenv("HIPS_VERBS_CM");
  verbs::VerbsOptions options;
  options.hca = hca != nullptr ? hca : "";
  options.cm = cm != nullptr && *cm == '1';
  options.timeout = 14;
  return options;
}

/// The first port that may be used. main() has seen to it that there is one.
inline verbs::PortChoice verbs_port() {
  return verbs::find_ports(verbs_options()).value().front();
}

}  // namespace hips::test

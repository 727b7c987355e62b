// The conformance suite over verbs: every rank has a transport of its own on the same device.

#include "tests/transports/verbs/device.hpp"
#include "tests/transports/world.hpp"

namespace hips::test {
namespace {

Backend verbs_backend(const std::string& name, std::int32_t pairs_per_peer) {
  return {.name = name, .start = [pairs_per_peer] {
            return [pairs_per_peer](Rank) {
              verbs::VerbsOptions options = verbs_options();
              options.pairs_per_peer = pairs_per_peer;
              return verbs::create(verbs_port(), options).value();
            };
          }};
}

}  // namespace

std::vector<Backend> backends() {
  return {verbs_backend("Verbs", 1), verbs_backend("VerbsStriped", 3)};
}

}  // namespace hips::test

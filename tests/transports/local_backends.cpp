// The transports that need no device.

#include <netinet/in.h>

#include "tests/choices.hpp"
#include "tests/transports/world.hpp"
#include "transports/inproc/network.hpp"
#include "transports/shm/shm.hpp"
#include "transports/tcp/tcp.hpp"

namespace hips::test {
namespace {

Backend inproc_backend(const std::string& name, const inproc::Faults& faults, bool attaches) {
  return {
      .name = name,
      .start =
          [faults, attaches] {
            auto random = std::make_shared<std::mt19937_64>(seed());
            std::shared_ptr<inproc::Network> network(inproc::Network::create({.random = random.get(),
                                                                              .faults = faults,
                                                                              .attaches_memory = attaches,
                                                                              .registers_freely = !attaches})
                                                         .value());
            return [random, network](Rank rank) { return network->make_transport(rank); };
          },
      .is_bounded = faults.queue_full > 0};
}

Backend tcp_backend(const std::string& name, std::uint32_t queue_entries, std::uint32_t socket_buffer_bytes,
                    tcp::ZeroCopy zero_copy = tcp::ZeroCopy::kOff) {
  return {.name = name,
          .start =
              [=] {
                return [=](Rank) {
                  return tcp::create({.address = any_address(AF_INET, INADDR_LOOPBACK),
                                      .device = "lo",
                                      .queue_entries = queue_entries,
                                      .socket_buffer_bytes = socket_buffer_bytes,
                                      .zero_copy = zero_copy})
                      .value();
                };
              },
          .is_bounded = socket_buffer_bytes > 0};
}

}  // namespace

std::vector<Backend> backends() {
  std::vector<Backend> all = {
      inproc_backend("Inproc", {}, true),
      inproc_backend(
          "InprocFaulty",
          {.delay = 0.3, .reorder = 0.3, .late_completion = 0.3, .queue_full = 0.2, .max_delay_steps = 20},
          false),
      {.name = "Shm",
       .start = [] { return [](Rank) { return shm::create({}).value(); }; },
       .is_bounded = true},
      {.name = "ShmSmallRings",
       .start = [] { return [](Rank) { return shm::create({.max_peers = 32, .ring_entries = 4}).value(); }; },
       .is_bounded = true},
      tcp_backend("Tcp", 256, 0),
      // Small queues and socket buffers, so that frames are cut at any byte.
      tcp_backend("TcpSmallBuffers", 4, 4096),
      tcp_backend("TcpZeroCopy", 256, 0, tcp::ZeroCopy::kWhereCopied),
  };
  // Given up after the first send, so that little is new.
  if (!runs_a_sample()) all.push_back(tcp_backend("TcpZeroCopyWherePays", 8, 65536, tcp::ZeroCopy::kOn));
  return all;
}

}  // namespace hips::test

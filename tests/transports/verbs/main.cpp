// The main() of tests that need an RDMA device: without one they fail with one line that says what to do.

#include <cstdio>

#include <gtest/gtest.h>

#include "lib/base/config/config.hpp"
#include "tests/transports/verbs/device.hpp"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  (void)hips::load_process_config();
  const auto ports = hips::verbs::find_ports(hips::test::verbs_options());
  if (!ports) {
    std::fprintf(stderr, "%s\n", ports.error().message.c_str());
    return 1;
  }
  std::printf("over %s\n", ports->front().description.c_str());
  return RUN_ALL_TESTS();
}

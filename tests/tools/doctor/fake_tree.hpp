#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tools/doctor/file_tree.hpp"

namespace hips::test {

/// A temporary folder with files like the kernel's in /sys and /proc; removed by the destructor.
class FakeTree {
 public:
  FakeTree() {
    std::string name = (std::filesystem::temp_directory_path() / "hips-doctor-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~FakeTree() { std::filesystem::remove_all(root_); }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  [[nodiscard]] doctor::FileTree tree() const { return doctor::FileTree(root_); }

  FakeTree& write(std::string_view path, std::string_view text) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
    return *this;
  }
  FakeTree& link(std::string_view path, std::string_view target) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::create_symlink(target, file);
    return *this;
  }

  FakeTree& interface(const std::string& name, int mtu, const std::string& state = "up") {
    const std::string folder = "sys/class/net/" + name;
    write(folder + "/mtu", std::to_string(mtu))
        .write(folder + "/operstate", state)
        .write(folder + "/type", "1");
    return write(folder + "/statistics/rx_packets", "1000000").write(folder + "/statistics/rx_dropped", "0");
  }

  /// A port of a RoCE device with addresses at index 0 (link-local, v1), 1 (the same, v2), 2 and 3 (IPv4).
  FakeTree& roce_port(const std::string& device, int port, const std::string& interface,
                      const std::string& state, const std::string& ipv4_digits) {
    const std::string folder = fmt::format("sys/class/infiniband/{}/ports/{}", device, port);
    write(folder + "/state", state).write(folder + "/link_layer", "Ethernet");
    write(folder + "/phys_state", state == "4: ACTIVE" ? "5: LinkUp" : "3: Disabled");
    write(folder + "/rate", "100 Gb/sec (4X EDR)");
    const std::string local = "fe80:0000:0000:0000:ba59:9fff:fe01:0203";
    const std::string ipv4 = "0000:0000:0000:0000:0000:ffff:" + ipv4_digits;
    for (int i = 0; i < 6; ++i) {
      write(fmt::format("{}/gids/{}", folder, i),
            i < 2   ? local
            : i < 4 ? ipv4
                    : std::string("0000:0000:0000:0000:0000:0000:0000:0000"));
      if (i >= 4) continue;  // the kernel has no type and no interface for empty entries
      write(fmt::format("{}/gid_attrs/types/{}", folder, i), i % 2 == 0 ? "IB/RoCE v1" : "RoCE v2");
      write(fmt::format("{}/gid_attrs/ndevs/{}", folder, i), interface);
    }
    return *this;
  }

  /// A ConnectX with two ports as separate devices, as mlx5 presents them: mlx5_0 up, mlx5_1 down.
  FakeTree& mlx5() {
    for (int i = 0; i < 2; ++i) {
      const std::string device = fmt::format("mlx5_{}", i), folder = "sys/class/infiniband/" + device;
      write(folder + "/fw_ver", "20.31.1014")
          .write(folder + "/hca_type", "MT4123")
          .write(folder + "/node_type", "1: CA");
      write(folder + "/device/numa_node", "1").write(folder + "/device/local_cpulist", "16-31");
      link(folder + "/device/driver", "../../../bus/pci/drivers/mlx5_core");
      roce_port(device, 1, fmt::format("eth{}", i), i == 0 ? "4: ACTIVE" : "1: DOWN",
                i == 0 ? "0a00:0001" : "0a01:0001");
    }
    const std::string counters = "sys/class/infiniband/mlx5_0/ports/1/hw_counters/";
    for (const char* name : {"out_of_sequence", "duplicate_request", "np_cnp_sent", "rp_cnp_handled",
                             "np_ecn_marked_roce_packets", "lifespan"})
      write(counters + name, name == std::string_view("lifespan") ? "10" : "0");
    write("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_packets", "1000000");
    interface("eth0", 9000);
    return interface("eth1", 9000, "down");
  }
  FakeTree& mlx5_counter(std::string_view name, std::uint64_t value) {
    return write(fmt::format("sys/class/infiniband/mlx5_0/ports/1/hw_counters/{}", name),
                 std::to_string(value));
  }

  /// A port of a NIC with this driver: RoCE on `interface_name`, or InfiniBand if that is empty.
  FakeTree& nic(const std::string& device, const std::string& driver, const std::string& interface_name) {
    const std::string folder = "sys/class/infiniband/" + device, port = folder + "/ports/1";
    write(folder + "/node_type", "1: CA").write(folder + "/fw_ver", "1.0");
    link(folder + "/device/driver", "../../../bus/pci/drivers/" + driver);
    roce_port(device, 1, interface_name.empty() ? "ib0" : interface_name, "4: ACTIVE", "0a00:0001");
    if (!interface_name.empty()) return interface(interface_name, 9000);
    for (const char* index : {"1", "2", "3"})
      write(port + "/gids/" + index, "0000:0000:0000:0000:0000:0000:0000:0000");
    std::filesystem::remove_all(root_ / (port + "/gid_attrs"));
    return write(port + "/gid_attrs/types/0", "IB/RoCE v1").write(port + "/link_layer", "InfiniBand");
  }

  /// rdma_rxe on nic0, with index 0 link-local and 1 IPv4, both v2.
  FakeTree& rxe(const std::string& device, const std::string& interface_name, int mtu, bool has_ipv4 = true) {
    const std::string folder = "sys/class/infiniband/" + device;
    write(folder + "/node_type", "1: CA")
        .write(folder + "/parent", interface_name)
        .write(folder + "/fw_ver", "");
    roce_port(device, 1, interface_name, "4: ACTIVE", "0a64:0001");
    const std::string port = folder + "/ports/1";
    write(port + "/gid_attrs/types/0", "RoCE v2").write(port + "/rate", "2.5 Gb/sec (1X SDR)");
    const std::string none = "0000:0000:0000:0000:0000:0000:0000:0000";
    for (const char* index : {"2", "3"}) write(port + "/gids/" + index, none);
    write(port + "/gids/1", has_ipv4 ? "0000:0000:0000:0000:0000:ffff:0a64:0001" : none);
    write(port + "/hw_counters/rcvd_pkts", "100").write(port + "/hw_counters/rcvd_seq_err", "0");
    return interface(interface_name, mtu, "unknown");
  }

  /// `locked`: "8388608" or "unlimited". `capabilities`: 0 for an ordinary user.
  FakeTree& process(const std::string& locked, const std::string& files = "1024",
                    const std::string& capabilities = "0000000000000000", const std::string& cpus = "0-31") {
    write("proc/self/limits",
          "Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max open files            " +
              files +
              "                 524288               files     \n"
              "Max locked memory         " +
              locked + "              unlimited              bytes     ");
    write("proc/self/status", "Name:\thips\nCapEff:\t" + capabilities + "\nCpus_allowed_list:\t" + cpus);
    write("proc/meminfo",
          "MemTotal:       65536000 kB\nMemAvailable:   60000000 kB\nHugePages_Total:       0\n"
          "HugePages_Free:        0\nHugepagesize:       2048 kB");
    return write("sys/devices/system/cpu/online", "0-31");
  }

 private:
  std::filesystem::path root_;
};

}  // namespace hips::test

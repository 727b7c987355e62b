#include "lib/comm/setup/process_info.hpp"

#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <fstream>
#include <random>

#include <fmt/format.h>

namespace hips::comm {
namespace {

std::string read_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string link_target(const char* path) {
  char target[PATH_MAX];
  const ssize_t length = readlink(path, target, sizeof target);
  return length < 0 ? std::string("?") : std::string(target, static_cast<std::size_t>(length));
}

std::vector<std::uint64_t> usable_cores() {
  // The kernel refuses a set that is smaller than its own, which may have more than the 1,024 cores of cpu_set_t.
  constexpr std::size_t kMostCores = std::size_t{1} << 20U;
  for (std::size_t num = CPU_SETSIZE; num <= kMostCores; num *= 2) {
    std::vector<cpu_set_t> sets(num / CPU_SETSIZE);
    const std::size_t bytes = sets.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, sets.data()) != 0) continue;
    std::vector<std::uint64_t> words;
    for (std::size_t core = 0; core < num; ++core) {
      if (!CPU_ISSET_S(core, bytes, sets.data())) continue;
      words.resize(std::max(words.size(), core / 64 + 1));
      words[core / 64] |= std::uint64_t{1} << core % 64;
    }
    return words;
  }
  return {1};
}

}  // namespace

ProcessUid ProcessUid::random() {
  ProcessUid uid;
  if (getrandom(&uid, sizeof uid, 0) != sizeof uid) {
    std::random_device device;
    const auto word = [&] { return std::uint64_t{device()} << 32 | device(); };
    uid = {word(), word()};
  }
  return uid;
}

ProcessInfo ProcessInfo::self() {
  ProcessInfo info;
  info.uid = ProcessUid::random();
  info.pid = getpid();
  info.host = host_name();
  // Containers on one node share its boot ID, but have separate process IDs, networks and file permissions.
  info.node_key = fmt::format("{} {} {} {}", read_line("/proc/sys/kernel/random/boot_id"),
                              link_target("/proc/self/ns/pid"), link_target("/proc/self/ns/net"), getuid());
  info.cores = usable_cores();
  return info;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name[0] == '\0' ? "an unnamed node" : name;
}

bool all_on_one_node(const std::vector<ProcessInfo>& processes) {
  return std::ranges::all_of(
      processes, [&](const ProcessInfo& process) { return process.node_key == processes.front().node_key; });
}

std::string to_string(const ProcessInfo& info) {
  return fmt::format("pid {} on {}", info.pid, info.host);
}

void put_control_address(ByteWriter& writer, const ControlAddress& address) {
  writer.put(static_cast<std::uint32_t>(address.hosts.size()));
  for (const std::string& host : address.hosts) writer.put_text(host);
  writer.put(address.port);
}

ControlAddress get_control_address(ByteReader& reader) {
  ControlAddress address;
  const auto count = reader.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) address.hosts.push_back(reader.get_text());
  address.port = reader.get<std::uint16_t>();
  return address;
}

void put_nics(ByteWriter& writer, const std::vector<NicInfo>& nics) {
  writer.put(static_cast<std::uint32_t>(nics.size()));
  for (const NicInfo& nic : nics) {
    for (const std::string* text : {&nic.name, &nic.address, &nic.subnet, &nic.device})
      writer.put_text(*text);
    writer.put(nic.bandwidth_bytes_per_s);
    writer.put(nic.mtu);
    writer.put(static_cast<std::uint8_t>(nic.named_by_node ? 1 : 0));
  }
}

std::vector<NicInfo> get_nics(ByteReader& reader) {
  std::vector<NicInfo> nics;
  const auto count = reader.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    NicInfo& nic = nics.emplace_back();
    for (std::string* text : {&nic.name, &nic.address, &nic.subnet, &nic.device}) *text = reader.get_text();
    nic.bandwidth_bytes_per_s = reader.get<double>();
    nic.mtu = reader.get<std::int32_t>();
    nic.named_by_node = reader.get<std::uint8_t>() != 0;
  }
  return nics;
}

void put_process(ByteWriter& writer, const ProcessInfo& info) {
  writer.put(info.uid.high);
  writer.put(info.uid.low);
  writer.put(info.pid);
  writer.put_text(info.host);
  writer.put_text(info.node_key);
  writer.put(static_cast<std::uint32_t>(info.cores.size()));
  for (const std::uint64_t word : info.cores) writer.put(word);
  put_control_address(writer, info.control);
  put_nics(writer, info.rdma_nics);
  writer.put_text(info.rdma_problem);
  put_nics(writer, info.socket_nics);
  writer.put(static_cast<std::uint8_t>(info.socket_loopback ? 1 : 0));
  writer.put_text(info.socket_problem);
}

ProcessInfo get_process(ByteReader& reader) {
  ProcessInfo info;
  info.uid.high = reader.get<std::uint64_t>();
  info.uid.low = reader.get<std::uint64_t>();
  info.pid = reader.get<std::int32_t>();
  info.host = reader.get_text();
  info.node_key = reader.get_text();
  const auto words = reader.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < words && reader.ok(); ++i) info.cores.push_back(reader.get<std::uint64_t>());
  info.control = get_control_address(reader);
  info.rdma_nics = get_nics(reader);
  info.rdma_problem = reader.get_text();
  info.socket_nics = get_nics(reader);
  info.socket_loopback = reader.get<std::uint8_t>() != 0;
  info.socket_problem = reader.get_text();
  return info;
}

}  // namespace hips::comm

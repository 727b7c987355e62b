// hips-meet SECONDS COMMAND PROGRAM [ARGUMENT...]: under a launcher with PMIx, runs PROGRAM with HIPS_RANK,
// HIPS_SIZE and HIPS_ROOT. COMMAND is what it says where that cannot be.
//
// The launcher carries rank 0's addresses to all ranks, and each takes the first that lets it in. No
// MPI_Init: that opens the RDMA network, and a broken one would keep its doctor out.

#include <netinet/in.h>
#include <pmix.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/comm/interfaces.hpp"
#include "lib/comm/process_info.hpp"
#include "lib/comm/socket.hpp"

namespace hips::doctor {
namespace {

/// Where rank 0 is to be found; travels as "PORT TOKEN ADDRESS ADDRESS ...".
struct Door {
  std::uint16_t port = 0;
  std::string token;
  std::vector<std::string> addresses;
};

std::string encode(const Door& door) {
  return fmt::format("{} {} {}", door.port, door.token, fmt::join(door.addresses, " "));
}

Door decode(const std::string& text) {
  Door door;
  std::istringstream words(text);
  words >> door.port >> door.token;
  for (std::string address; words >> address;) door.addresses.push_back(address);
  return door;
}

/// Addresses of this host that others may reach, and at the end its loopback: only ranks of the same host get
/// in there.
std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  if (const auto networks = comm::local_networks())
    for (const comm::LocalNetwork& network : *networks) addresses.push_back(comm::host_of(network.address));
  addresses.emplace_back("127.0.0.1");
  return addresses;
}

Door open_door(UniqueFd& listener) {
  Door door;
  auto listening = listen_tcp(any_address(AF_INET));
  if (!listening) return door;
  listener = *std::move(listening);
  door.port = port_of(local_address(listener.get()));
  door.addresses = own_addresses();
  const comm::ProcessUid uid = comm::ProcessUid::random();
  door.token = fmt::format("{:016x}{:016x}", uid.high, uid.low);
  return door;
}

bool lets_in(const std::string& host, std::uint16_t port) {
  constexpr int kPatienceMs = 2000;
  const auto addresses = comm::resolve(host, port);
  if (!addresses) return false;
  auto fd = comm::connect_tcp(addresses->front(), std::int64_t{kPatienceMs} * 1'000'000);
  if (!fd) return false;
  pollfd writable{fd->get(), POLLOUT, 0};
  return poll(&writable, 1, kPatienceMs) == 1 && connect_error(fd->get()) == 0;
}

/// The first of rank 0's addresses that lets this rank in; empty where none does.
std::string find_address(const Door& door) {
  for (const std::string& address : door.addresses)
    if (lets_in(address, door.port)) return address;
  return {};
}

/// Ends the process when the launcher does not come back: ranks that wait for each other say nothing by
/// themselves.
void start_watch(int seconds, const std::string& command) {
  std::thread([seconds, command] {
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    const char* rank = std::getenv("PMIX_RANK");
    std::fprintf(
        stderr,
        "hips: %s: the launcher did not bring the ranks together within %d s (this is rank %s); fix: see "
        "that all hosts started theirs, or give rank 0's address: mpirun -x HIPS_ROOT=node0:18500 hips %s\n",
        command.c_str(), seconds, rank != nullptr ? rank : "?", command.c_str());
    _exit(1);
  }).detach();
}

/// This rank among those that the launcher started.
class Job {
 public:
  /// False: no launcher with PMIx.
  bool join() {
    if (PMIx_Init(&self_, nullptr, 0) != PMIX_SUCCESS) return false;
    joined_ = true;
    const std::string size = get(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
    return !size.empty() && std::from_chars(size.data(), size.data() + size.size(), size_).ec == std::errc();
  }
  ~Job() {
    if (joined_) (void)PMIx_Finalize(nullptr, 0);
  }
  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  [[nodiscard]] std::uint32_t rank() const { return self_.rank; }
  [[nodiscard]] std::uint32_t size() const { return size_; }

  bool put(const std::string& key, std::string text) {
    pmix_value_t value{};
    value.type = PMIX_STRING;
    value.data.string = text.data();
    return PMIx_Put(PMIX_GLOBAL, key.c_str(), &value) == PMIX_SUCCESS && PMIx_Commit() == PMIX_SUCCESS;
  }
  /// All ranks have come here, and what they had put can be got.
  bool fence() {
    pmix_info_t collect{};
    std::strncpy(collect.key, PMIX_COLLECT_DATA, sizeof collect.key - 1);
    collect.value.type = PMIX_BOOL;
    collect.value.data.flag = true;
    return PMIx_Fence(nullptr, 0, &collect, 1) == PMIX_SUCCESS;
  }
  /// A text, or a number as text; empty where there is none.
  std::string get(pmix_rank_t rank, const std::string& key) {
    pmix_proc_t whose = self_;
    whose.rank = rank;
    pmix_value_t* value = nullptr;
    if (PMIx_Get(&whose, key.c_str(), nullptr, 0, &value) != PMIX_SUCCESS || value == nullptr) return {};
    std::string text;
    if (value->type == PMIX_STRING && value->data.string != nullptr) text = value->data.string;
    if (value->type == PMIX_UINT32) text = std::to_string(value->data.uint32);
    PMIX_VALUE_RELEASE(value);
    return text;
  }

 private:
  pmix_proc_t self_{};
  std::uint32_t size_ = 0;
  bool joined_ = false;
};

/// Sets the variables by which HiPS meets; false, and says why, where that cannot be.
bool meet(const char* command) {
  constexpr const char* kKey = "hips.doctor.door";
  Job job;
  if (!job.join()) {
    std::fprintf(stderr,
                 "hips: %s: this launcher has no PMIx; give rank 0's address: mpirun -x "
                 "HIPS_ROOT=node0:18500 hips %s\n",
                 command, command);
    return false;
  }
  UniqueFd listener;
  bool ok = job.rank() != 0 || job.put(kKey, encode(open_door(listener)));
  ok = job.fence() && ok;
  const Door door = ok ? decode(job.get(0, kKey)) : Door{};
  const std::string address = job.rank() == 0 ? "0.0.0.0" : find_address(door);
  if (address.empty())
    std::fprintf(stderr,
                 "hips: %s: rank %u on %s reaches rank 0 by none of its addresses %s, port %u; fix: open the "
                 "firewall between the hosts: iptables -I INPUT -p tcp -s HOST -j ACCEPT\n",
                 command, job.rank(), comm::ProcessInfo::self().host.c_str(),
                 fmt::format("{}", fmt::join(door.addresses, ", ")).c_str(), unsigned{door.port});
  // Rank 0's door stays open until all have tried it, and is shut before anyone looks for the doctor behind
  // the same port: a connection that the door takes ends with it.
  (void)job.fence();
  listener.reset();
  (void)job.fence();
  if (!ok || address.empty()) return false;
  setenv("HIPS_RANK", std::to_string(job.rank()).c_str(), 1);
  setenv("HIPS_SIZE", std::to_string(job.size()).c_str(), 1);
  setenv("HIPS_ROOT", fmt::format("{}:{}", address, door.port).c_str(), 1);
  setenv("HIPS_JOB_TOKEN", door.token.c_str(), 1);
  return true;
}

int run(int argc, char** argv) {
  int seconds = 0;
  if (argc < 4 || std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), seconds).ec != std::errc() ||
      seconds < 1) {
    std::fprintf(stderr,
                 "hips-meet: usage: hips-meet SECONDS COMMAND PROGRAM [ARGUMENT...]; hips doctor runs it\n");
    return 2;
  }
  start_watch(seconds, argv[2]);
  if (!meet(argv[2])) return 1;
  execv(argv[3], argv + 3);
  std::fprintf(stderr, "hips: %s: cannot execute %s: %s\n", argv[2], argv[3], std::strerror(errno));
  return 1;
}

}  // namespace
}  // namespace hips::doctor

int main(int argc, char** argv) {
  return hips::doctor::run(argc, argv);
}

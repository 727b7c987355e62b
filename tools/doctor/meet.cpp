// hips-meet SECONDS COMMAND PROGRAM [ARGUMENT...]: under a launcher with PMIx, executes PROGRAM with
// HIPS_RANK, HIPS_SIZE and HIPS_ROOT. COMMAND is the name for its error messages.
//
// PMIx distributes rank 0's addresses, and each rank uses the first one to which it can connect. MPI_Init is
// not used: it opens the RDMA network, and would hang or abort if that is broken.

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

#include "lib/comm/setup/interfaces.hpp"
#include "lib/comm/setup/process_info.hpp"
#include "lib/comm/setup/socket.hpp"

namespace hips::doctor {
namespace {

/// The addresses of rank 0; distributed as "PORT TOKEN ADDRESS ADDRESS ...".
struct RootAddresses {
  std::uint16_t port = 0;
  std::string token;
  std::vector<std::string> addresses;
};

std::string encode(const RootAddresses& root) {
  return fmt::format("{} {} {}", root.port, root.token, fmt::join(root.addresses, " "));
}

RootAddresses decode(const std::string& text) {
  RootAddresses root;
  std::istringstream words(text);
  words >> root.port >> root.token;
  for (std::string address; words >> address;) root.addresses.push_back(address);
  return root;
}

/// The addresses of this node that other nodes may reach, then its loopback address, which only ranks of this
/// node reach.
std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  if (const auto networks = comm::local_networks())
    for (const comm::LocalNetwork& network : *networks) addresses.push_back(comm::host_of(network.address));
  addresses.emplace_back("127.0.0.1");
  return addresses;
}

RootAddresses listen_as_root(UniqueFd& listener) {
  RootAddresses root;
  auto listening = listen_tcp(any_address(AF_INET));
  if (!listening) return root;
  listener = *std::move(listening);
  root.port = port_of(local_address(listener.get()));
  root.addresses = own_addresses();
  const comm::ProcessUid uid = comm::ProcessUid::random();
  root.token = fmt::format("{:016x}{:016x}", uid.high, uid.low);
  return root;
}

bool can_connect(const std::string& address, std::uint16_t port) {
  constexpr int kTimeoutMs = 2000;
  const auto addresses = comm::resolve(address, port);
  if (!addresses) return false;
  auto fd = comm::connect_tcp(addresses->front(), std::int64_t{kTimeoutMs} * 1'000'000);
  if (!fd) return false;
  pollfd writable{fd->get(), POLLOUT, 0};
  return poll(&writable, 1, kTimeoutMs) == 1 && connect_error(fd->get()) == 0;
}

/// The first of rank 0's addresses to which this rank can connect; "" if there is none.
std::string find_address(const RootAddresses& root) {
  for (const std::string& address : root.addresses)
    if (can_connect(address, root.port)) return address;
  return {};
}

/// Ends this process with a message after `seconds`: ranks that wait in PMIx for each other report nothing.
void start_timeout(int seconds, const std::string& command) {
  std::thread([seconds, command] {
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    const char* rank = std::getenv("PMIX_RANK");
    std::fprintf(
        stderr,
        "hips: %s: the ranks did not meet by PMIx within %d s (this is rank %s); fix: check that all nodes "
        "started their ranks, or set rank 0's address: mpirun -x HIPS_ROOT=node0:18500 hips %s\n",
        command.c_str(), seconds, rank != nullptr ? rank : "?", command.c_str());
    _exit(1);
  }).detach();
}

/// This rank's connection to PMIx.
class PmixJob {
 public:
  /// Returns false if the launcher has no PMIx.
  bool join() {
    if (PMIx_Init(&self_, nullptr, 0) != PMIX_SUCCESS) return false;
    joined_ = true;
    const std::string size = get(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE);
    return !size.empty() && std::from_chars(size.data(), size.data() + size.size(), size_).ec == std::errc();
  }
  ~PmixJob() {
    if (joined_) (void)PMIx_Finalize(nullptr, 0);
  }
  PmixJob() = default;
  PmixJob(const PmixJob&) = delete;
  PmixJob& operator=(const PmixJob&) = delete;

  [[nodiscard]] std::uint32_t rank() const { return self_.rank; }
  [[nodiscard]] std::uint32_t size() const { return size_; }

  bool put(const std::string& key, std::string text) {
    pmix_value_t value{};
    value.type = PMIX_STRING;
    value.data.string = text.data();
    return PMIx_Put(PMIX_GLOBAL, key.c_str(), &value) == PMIX_SUCCESS && PMIx_Commit() == PMIX_SUCCESS;
  }
  /// Waits for all ranks; afterwards get() returns the values that they have put.
  bool fence() {
    pmix_info_t collect{};
    std::strncpy(collect.key, PMIX_COLLECT_DATA, sizeof collect.key - 1);
    collect.value.type = PMIX_BOOL;
    collect.value.data.flag = true;
    return PMIx_Fence(nullptr, 0, &collect, 1) == PMIX_SUCCESS;
  }
  /// A text, or a number as text; "" if there is none.
  std::string get(pmix_rank_t rank, const std::string& key) {
    pmix_proc_t owner = self_;
    owner.rank = rank;
    pmix_value_t* value = nullptr;
    if (PMIx_Get(&owner, key.c_str(), nullptr, 0, &value) != PMIX_SUCCESS || value == nullptr) return {};
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

/// Sets the variables through which ranks meet. Returns false after printing the cause if that fails.
bool meet(const char* command) {
  constexpr const char* kKey = "hips.doctor.root";
  PmixJob job;
  if (!job.join()) {
    std::fprintf(stderr,
                 "hips: %s: this launcher has no PMIx; set rank 0's address: mpirun -x "
                 "HIPS_ROOT=node0:18500 hips %s\n",
                 command, command);
    return false;
  }
  UniqueFd listener;
  bool ok = job.rank() != 0 || job.put(kKey, encode(listen_as_root(listener)));
  ok = job.fence() && ok;
  const RootAddresses root = ok ? decode(job.get(0, kKey)) : RootAddresses{};
  const std::string address = job.rank() == 0 ? "0.0.0.0" : find_address(root);
  if (!ok || root.addresses.empty()) {
    if (job.rank() == 0)
      std::fprintf(stderr,
                   "hips: %s: rank 0 on %s cannot %s; fix: set its address: mpirun -x HIPS_ROOT=node0:18500 "
                   "hips %s\n",
                   command, comm::ProcessInfo::self().host.c_str(),
                   ok ? "listen at any port" : "give its address to the other ranks by PMIx", command);
  } else if (address.empty())
    std::fprintf(stderr,
                 "hips: %s: rank %u on %s cannot connect to rank 0 at any of %s, port %u; fix: open the "
                 "firewall between the nodes: iptables -I INPUT -p tcp -s HOST -j ACCEPT\n",
                 command, job.rank(), comm::ProcessInfo::self().host.c_str(),
                 fmt::format("{}", fmt::join(root.addresses, ", ")).c_str(), unsigned{root.port});
  // Rank 0 listens until all ranks have tried to connect, and closes the port before PROGRAM opens it again:
  // a connection that this process accepted would end with it.
  (void)job.fence();
  listener.reset();
  (void)job.fence();
  if (!ok || root.addresses.empty() || address.empty()) return false;
  setenv("HIPS_RANK", std::to_string(job.rank()).c_str(), 1);
  setenv("HIPS_SIZE", std::to_string(job.size()).c_str(), 1);
  setenv("HIPS_ROOT", fmt::format("{}:{}", address, root.port).c_str(), 1);
  setenv("HIPS_JOB_TOKEN", root.token.c_str(), 1);
  return true;
}

int run(int argc, char** argv) {
  int seconds = 0;
  if (argc < 4 || std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), seconds).ec != std::errc() ||
      seconds < 1) {
    std::fprintf(
        stderr,
        "hips-meet: usage: hips-meet SECONDS COMMAND PROGRAM [ARGUMENT...]; started by hips doctor\n");
    return 2;
  }
  start_timeout(seconds, argv[2]);
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

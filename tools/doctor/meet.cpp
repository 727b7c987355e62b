// hips-meet SECONDS PROGRAM [ARGUMENT...]: under an MPI launcher, runs PROGRAM with HIPS_RANK, HIPS_SIZE and
// HIPS_ROOT.
//
// MPI carries rank 0's addresses to all ranks, over TCP and shared memory only, so that a broken RDMA network does
// not keep its doctor out; each rank then takes the first address that lets it in.

#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "lib/comm/process_info.hpp"
#include "lib/comm/socket.hpp"

namespace hips::doctor {
namespace {

/// Rank 0's door, as MPI carries it.
struct Door {
  static constexpr std::size_t kMostAddresses = 16;
  std::uint32_t num_addresses = 0;
  std::uint16_t port = 0;
  std::array<std::array<char, INET6_ADDRSTRLEN>, kMostAddresses> addresses{};
  std::array<char, 40> token{};
};

/// Addresses of this host that are up, the loopback's last: only ranks of the same host get in there.
std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses, loopback;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0) continue;
    comm::SocketAddress address;
    std::memcpy(&address.storage, one->ifa_addr, sizeof(sockaddr_in));
    address.length = sizeof(sockaddr_in);
    std::string text = comm::to_string(address);
    text.resize(text.rfind(':'));
    ((one->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : addresses).push_back(text);
  }
  freeifaddrs(list);
  addresses.insert(addresses.end(), loopback.begin(), loopback.end());
  return addresses;
}

Door open_door(UniqueFd& listener) {
  Door door;
  comm::SocketAddress any;
  any.storage.ss_family = AF_INET;
  any.length = sizeof(sockaddr_in);
  auto listening = comm::listen_tcp(any);
  if (!listening) return door;
  listener = *std::move(listening);
  door.port = comm::port_of(comm::local_address(listener.get()));
  for (const std::string& address : own_addresses()) {
    if (door.num_addresses == Door::kMostAddresses || address.size() >= door.addresses[0].size()) continue;
    std::memcpy(door.addresses[door.num_addresses++].data(), address.c_str(), address.size());
  }
  const comm::ProcessUid uid = comm::ProcessUid::random();
  const std::string token = fmt::format("{:016x}{:016x}", uid.high, uid.low);
  std::memcpy(door.token.data(), token.data(), token.size());
  return door;
}

bool lets_in(const std::string& host, std::uint16_t port) {
  constexpr int kPatienceMs = 2000;
  const auto addresses = comm::resolve(host, port);
  if (!addresses) return false;
  auto fd = comm::connect_tcp(addresses->front());
  if (!fd) return false;
  pollfd writable{fd->get(), POLLOUT, 0};
  return poll(&writable, 1, kPatienceMs) == 1 && comm::connect_error(fd->get()) == 0;
}

/// The first of rank 0's addresses that lets this rank in; empty where none does.
std::string find_address(const Door& door) {
  for (std::uint32_t i = 0; i < door.num_addresses; ++i)
    if (std::string address = door.addresses[i].data(); lets_in(address, door.port)) return address;
  return {};
}

std::string list(const Door& door) {
  std::string text;
  for (std::uint32_t i = 0; i < door.num_addresses; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", door.addresses[i].data());
  return text;
}

/// Ends the process when MPI does not come back: a job whose ranks wait for each other says nothing by itself.
void start_watch(int seconds) {
  std::thread([seconds] {
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
    std::fprintf(stderr,
                 "hips: doctor: MPI did not bring the ranks together within %d s (this is rank %s); fix: mpirun --mca "
                 "btl_tcp_if_include IF hips doctor, or give rank 0's address: mpirun -x HIPS_ROOT=node0:18500 hips "
                 "doctor\n",
                 seconds, rank != nullptr ? rank : "?");
    _exit(1);
  }).detach();
}

int run(int argc, char** argv) {
  int seconds = 0;
  if (argc < 3 || std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), seconds).ec != std::errc() || seconds < 1) {
    std::fprintf(stderr, "hips-meet: usage: hips-meet SECONDS PROGRAM [ARGUMENT...]; hips doctor runs it\n");
    return 2;
  }
  start_watch(seconds);
  for (const auto& [name, value] : {std::pair("OMPI_MCA_pml", "ob1"), std::pair("OMPI_MCA_btl", "self,vader,tcp"),
                                    std::pair("OMPI_MCA_coll_hcoll_enable", "0")})
    setenv(name, value, 1);
  MPI_Init(nullptr, nullptr);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Door door;
  UniqueFd listener;
  if (rank == 0) door = open_door(listener);
  MPI_Bcast(&door, sizeof door, MPI_BYTE, 0, MPI_COMM_WORLD);
  const std::string address = rank == 0 ? "0.0.0.0" : find_address(door);
  int outside = address.empty() ? 1 : 0;
  if (outside != 0) {
    std::fprintf(stderr,
                 "hips: doctor: rank %d on %s reaches rank 0 by none of its addresses %s, port %u; fix: open the "
                 "firewall between the hosts: iptables -I INPUT -p tcp -s HOST -j ACCEPT\n",
                 rank, comm::ProcessInfo::self().host.c_str(), list(door).c_str(), unsigned{door.port});
  }
  MPI_Allreduce(MPI_IN_PLACE, &outside, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  if (outside != 0) return 1;
  listener.reset();
  setenv("HIPS_RANK", std::to_string(rank).c_str(), 1);
  setenv("HIPS_SIZE", std::to_string(size).c_str(), 1);
  setenv("HIPS_ROOT", fmt::format("{}:{}", address, door.port).c_str(), 1);
  setenv("HIPS_JOB_TOKEN", door.token.data(), 1);
  execv(argv[2], argv + 2);
  std::fprintf(stderr, "hips: doctor: cannot execute %s: %s\n", argv[2], std::strerror(errno));
  return 1;
}

}  // namespace
}  // namespace hips::doctor

int main(int argc, char** argv) {
  return hips::doctor::run(argc, argv);
}

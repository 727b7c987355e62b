#include "tools/doctor/ethtool.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

#include "lib/base/os/unique_fd.hpp"

namespace hips::doctor {
namespace {

bool ask(int socket, const std::string& interface, void* request) {
  ifreq question{};
  std::strncpy(question.ifr_name, interface.c_str(), sizeof question.ifr_name - 1);
  question.ifr_data = static_cast<char*>(request);
  return ioctl(socket, SIOCETHTOOL, &question) == 0;
}

/// Storage for a kernel structure that ends with an array of `bytes` bytes.
template <typename Header>
std::vector<std::byte> with_room(std::size_t bytes) {
  return std::vector<std::byte>(sizeof(Header) + bytes);
}

}  // namespace

Counters ethtool_counters(const std::string& interface) {
  Counters counters;
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return counters;

  std::vector<std::byte> set = with_room<ethtool_sset_info>(sizeof(std::uint32_t));
  ethtool_sset_info set_info{};
  set_info.cmd = ETHTOOL_GSSET_INFO;
  set_info.sset_mask = std::uint64_t{1} << ETH_SS_STATS;
  std::memcpy(set.data(), &set_info, sizeof set_info);
  if (!ask(socket.get(), interface, set.data())) return counters;
  std::memcpy(&set_info, set.data(), sizeof set_info);
  if (set_info.sset_mask == 0) return counters;
  std::uint32_t count = 0;
  std::memcpy(&count, set.data() + sizeof set_info, sizeof count);
  constexpr std::uint32_t kMostCounters = 1U << 16;
  if (count == 0 || count > kMostCounters) return counters;

  std::vector<std::byte> names = with_room<ethtool_gstrings>(std::size_t{count} * ETH_GSTRING_LEN);
  ethtool_gstrings names_header{};
  names_header.cmd = ETHTOOL_GSTRINGS;
  names_header.string_set = ETH_SS_STATS;
  names_header.len = count;
  std::memcpy(names.data(), &names_header, sizeof names_header);
  std::vector<std::byte> values = with_room<ethtool_stats>(count * sizeof(std::uint64_t));
  ethtool_stats values_header{};
  values_header.cmd = ETHTOOL_GSTATS;
  values_header.n_stats = count;
  std::memcpy(values.data(), &values_header, sizeof values_header);
  if (!ask(socket.get(), interface, names.data()) || !ask(socket.get(), interface, values.data()))
    return counters;

  for (std::uint32_t i = 0; i < count; ++i) {
    char name[ETH_GSTRING_LEN + 1] = {};
    std::memcpy(name, names.data() + sizeof names_header + std::size_t{i} * ETH_GSTRING_LEN, ETH_GSTRING_LEN);
    std::uint64_t value = 0;
    std::memcpy(&value, values.data() + sizeof values_header + i * sizeof value, sizeof value);
    counters[name] = value;
  }
  return counters;
}

}  // namespace hips::doctor

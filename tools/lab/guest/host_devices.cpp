#include "tools/lab/guest/host_devices.hpp"

#include <unistd.h>

#include <csignal>

#include <fmt/format.h>

#include "tools/lab/network/network.hpp"
#include "tools/lab/process/child.hpp"

namespace hips::lab {
namespace {

/// A moment on a real machine; it may be an emulated one that is busy.
constexpr int kPingPongMs = 30'000;

Status unsupported(const std::string& what, const Result<Finished>& done) {
  std::string why = done ? done->err : done.error().message;
  if (const auto end = why.find('\n'); end != std::string::npos) why.resize(end);
  return Status::error(Code::kUnsupported, fmt::format("lab: {}{}{}", what, why.empty() ? "" : ": ", why));
}

Result<Finished> run_with_input(std::vector<std::string> argv, const std::string& input,
                                int timeout_ms = 60'000) {
  argv.front() = find_on_path(argv.front()).value_or(argv.front());
  ChildOptions options;
  options.argv = std::move(argv);
  options.dies_with_us = true;
  return run_child(options, input, timeout_ms);
}

}  // namespace

Status add_host_devices(const std::string& prefix, std::int64_t num_devices) {
  for (const char* module : {"rdma_rxe", "ib_uverbs"}) {
    // A container may see a loaded module and no file of it.
    if (access(fmt::format("/sys/module/{}", module).c_str(), F_OK) == 0) continue;
    if (const auto done = run_with_input({"modprobe", module}, ""); !done || !done->ok()) {
      return unsupported(fmt::format("the host's kernel has no module {}", module), done);
    }
  }
  std::string ip = "link set lo up\n", rdma;
  for (std::int64_t i = 0; i < num_devices; ++i) {
    ip += fmt::format(
        "link add nic{} type dummy\naddr add 10.100.{}.1/24 dev nic{}\nlink set nic{} mtu {} up\n", i, i, i,
        i, kRailMtu);
    rdma += fmt::format("link add {}{} type rxe netdev nic{}\n", prefix, i, i);
  }
  if (const auto done = run_with_input({"ip", "-batch", "-"}, ip); !done || !done->ok()) {
    return unsupported("dummy interfaces cannot be added", done);
  }
  if (const auto done = run_with_input({"rdma", "-b", "-"}, rdma); !done || !done->ok()) {
    return unsupported("the host's kernel adds no soft-RoCE device in a network namespace", done);
  }
  return Status::success();
}

Status check_host_device() {
  const std::string prefix = fmt::format("labcheck{}x", getppid() > 0 ? getppid() : getpid());
  if (Status status = add_host_devices(prefix, 1); !status.ok()) return status;
  const auto pingpong = find_on_path("ibv_rc_pingpong");
  if (!pingpong) {
    return Status::error(Code::kUnsupported,
                         "lab: ibv_rc_pingpong is missing: apt-get install ibverbs-utils");
  }
  // Both ends in one shell: the server, and a client that tries again while the server waits for it.
  const auto done = run_with_input({"sh", "-c",
                                    "\"$0\" -d \"$1\" -g 1 -n 20 >/dev/null & "
                                    "until \"$0\" -d \"$1\" -g 1 -n 20 127.0.0.1 2>/dev/null; do kill -0 $! "
                                    "|| exit 1; sleep 0.1; done; wait $!",
                                    *pingpong, prefix + "0"},
                                   "", kPingPongMs);
  if (!done || !done->ok()) {
    return unsupported("soft-RoCE devices of the host's kernel carry no data in a network namespace", done);
  }
  return Status::success();
}

Status ask_for_host_devices(const std::string& self) {
  const auto done = run_with_input({self, "lab", "host-check"}, "", 3 * kPingPongMs);
  if (!done) return done.error();
  if (done->ok()) return Status::success();
  // "hips: lab: why" without its first word.
  const std::string& text = done->err;
  const auto begin = text.find("lab: ");
  const auto end = text.find('\n', begin == std::string::npos ? 0 : begin);
  return Status::error(Code::kUnsupported,
                       begin == std::string::npos ? "lab: " + text : text.substr(begin, end - begin));
}

}  // namespace hips::lab

#include "tools/lab/guest/guest.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "tools/lab/guest/cycle_counter.hpp"
#include "tools/lab/process/agent.hpp"
#include "tools/lab/process/child.hpp"

namespace hips::lab {
namespace {

/// How much of a guest's console is kept.
constexpr std::size_t kMaxConsole = 64 * 1024;

/// Spaces end a word of the kernel's command line: everything unusual becomes an escape that the shell's
/// `printf %b` knows.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) || std::strchr("/._-+", c)) {
      result += c;
    } else {
      result += fmt::format("\\0{:03o}", static_cast<unsigned char>(c));
    }
  }
  return result;
}

/// The emulator's options are separated by commas; a comma in a value is written twice.
std::string option_value(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == ',' ? ",," : std::string(1, c);
  return result;
}

std::string kernel_arguments(const GuestOptions& options) {
  // The mitigations guard against neighbours; a lab has none, and an emulated CPU pays dearly for them.
  // On a busy host the guest's timer may come too late for the kernel's check of it, which then panics.
  std::string arguments = "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check nowatchdog";
  const std::int64_t khz = options.accelerator == "tcg" ? cycle_counter_khz() : 0;
  if (khz > 0) arguments += fmt::format(" tsc_early_khz={} tsc=reliable", khz);
  return arguments + fmt::format(" hips.agent={}", escaped(options.agent));
}

}  // namespace

std::string writable_tag(std::size_t n) {
  return fmt::format("writable{}", n);
}

std::vector<std::string> emulator_command(const GuestOptions& options, int agent_fd) {
  const bool kvm = options.accelerator == "kvm";
  std::vector<std::string> argv = {
      options.emulator, "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-serial",
      "stdio", "-no-reboot", "-machine", "q35", "-accel", kvm ? "kvm" : "tcg,thread=multi", "-cpu",
      // String moves and carry-less products are emulated byte by byte and bit by bit; the kernel has better.
      kvm ? "host" : "max,erms=off,pclmulqdq=off", "-smp", std::to_string(options.num_cpus), "-m",
      std::to_string(options.memory_mb), "-kernel", options.image.kernel, "-initrd", options.image.initrd,
      "-append", kernel_arguments(options), "-device", "virtio-rng-pci",
      // The agent's connection.
      "-device", "virtio-serial-pci", "-chardev", fmt::format("socket,id=agent,fd={}", agent_fd), "-device",
      fmt::format("virtserialport,chardev=agent,name={}", kAgentPort),
      // The host's files.
      "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"};
  for (std::size_t i = 0; i < options.writable.size(); ++i) {
    argv.insert(argv.end(),
                {"-virtfs", fmt::format("local,path={},mount_tag={},security_model=none,multidevs=remap",
                                        option_value(options.writable[i]), writable_tag(i))});
  }
  for (std::size_t i = 0; i < options.nics.size(); ++i) {
    const GuestNic& nic = options.nics[i];
    argv.insert(
        argv.end(),
        {"-netdev", fmt::format("tap,id=net{},ifname={},script=no,downscript=no", i, nic.tap), "-device",
         // No romfile: nobody boots from the network.
         fmt::format("virtio-net-pci,netdev=net{},mac={},host_mtu={},romfile=", i, nic.mac, nic.mtu)});
  }
  return argv;
}

Result<Guest> Guest::boot(const GuestOptions& options) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail(Code::kSystem, fmt::format("lab: socketpair: {}", std::strerror(errno)));
  }
  UniqueFd agent(ends[0]);
  const UniqueFd agent_end(ends[1]);
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(Code::kSystem, fmt::format("lab: pipe: {}", std::strerror(errno)));
  }
  UniqueFd console(ends[0]);
  const UniqueFd console_end(ends[1]);
  set_nonblocking(agent.get());
  set_nonblocking(console.get());

  ChildOptions child;
  const std::vector<std::string> agent_command = {options.agent, "lab", "agent", "--fd",
                                                  std::to_string(agent_end.get())};
  if (options.accelerator == "host") {
    child.argv = agent_command;
  } else if (options.accelerator == "namespaces") {
    child.argv = agent_command;
    child.argv.insert(child.argv.end(), {"--server", std::to_string(options.server)});
  } else {
    child.argv = emulator_command(options, agent_end.get());
  }
  child.out = child.err = console_end.get();
  child.keep = agent_end.get();
  child.own_session = true;  // else Ctrl-C would end it before we have heard of it
  child.dies_with_us = true;
  const auto pid = start_child(child);
  if (!pid) return fail(pid.error());
  return Guest(*pid, std::move(agent), std::move(console));
}

Guest::~Guest() {
  end();
}

Guest& Guest::operator=(Guest&& other) noexcept {
  end();
  reader = std::move(other.reader);
  waiting = std::move(other.waiting);
  up = other.up;
  down = other.down;
  pid_ = std::move(other.pid_);
  agent_ = std::move(other.agent_);
  console_ = std::move(other.console_);
  console_text_ = std::move(other.console_text_);
  return *this;
}

void Guest::end() {
  if (pid_.value < 0) return;
  kill(pid_.value, SIGKILL);
  waitpid(pid_.value, nullptr, 0);
  pid_.value = -1;
}

bool Guest::read_console() {
  const bool open = read_available(console_.get(), console_text_);
  if (console_text_.size() > kMaxConsole) console_text_.erase(0, console_text_.size() - kMaxConsole);
  if (!open) console_.reset();
  return open;
}

std::string Guest::last_words() const {
  constexpr int kLines = 5;
  std::string text;
  for (const char c : console_text_) {
    if (c != '\r') text += c;
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::size_t begin = text.size();
  for (int i = 0; i < kLines && begin != std::string::npos && begin > 0; ++i)
    begin = text.rfind('\n', begin - 1);
  return begin == std::string::npos ? text : text.substr(begin == text.size() ? begin : begin + 1);
}

}  // namespace hips::lab

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/os/unique_fd.hpp"
#include "lib/base/result.hpp"
#include "tools/lab/guest/image.hpp"
#include "tools/lab/process/frames.hpp"

namespace hips::lab {

/// A NIC of a guest: a tap device of the lab's network and the address that the guest sees.
struct GuestNic {
  std::string tap, mac;
  std::int64_t mtu = 1500;
};

struct GuestOptions {
  Image image;
  std::string emulator;
  /// "kvm"; without a guest, the agent being a process of this machine: "host", or "namespaces" with its own.
  std::string accelerator = "tcg";
  std::string agent;  ///< path of the program whose "lab agent" the guest runs
  int num_cpus = 1;
  std::int64_t memory_mb = 512;
  std::int64_t server = -1;  ///< which one the namespaces are
  std::vector<GuestNic> nics;
  std::vector<std::string> writable;  ///< folders of the host that the guest may write to
};

/// Tag of the n-th writable folder.
std::string writable_tag(std::size_t n);

/// Command line of the emulator; `agent_fd` is its end of the connection to the agent.
std::vector<std::string> emulator_command(const GuestOptions& options, int agent_fd);

/// A virtual machine. It ends with this object, and with our process.
class Guest {
 public:
  static Result<Guest> boot(const GuestOptions& options);
  Guest(Guest&&) = default;
  Guest& operator=(Guest&& other) noexcept;
  ~Guest();

  /// Ends the emulator; its NICs are free once this returns.
  void end();

  [[nodiscard]] int agent_fd() const { return agent_.get(); }
  [[nodiscard]] int console_fd() const { return console_.get(); }
  [[nodiscard]] pid_t pid() const { return pid_.value; }

  AgentFrameReader reader;  ///< what came from the agent
  std::string waiting;      ///< what has to be sent to it
  bool up = false;          ///< the agent has said hello
  bool down = false;        ///< it is gone; `waiting` will never be sent

  /// Takes in what the guest printed on its console; false when it printed its last.
  bool read_console();
  /// The last lines of the console, for when a guest fails.
  [[nodiscard]] std::string last_words() const;

 private:
  struct Pid {
    pid_t value = -1;
    Pid() = default;
    explicit Pid(pid_t pid) : value(pid) {}
    Pid(Pid&& other) noexcept : value(other.value) { other.value = -1; }
    Pid& operator=(Pid&& other) noexcept {
      value = std::exchange(other.value, -1);
      return *this;
    }
  };
  Guest(pid_t pid, UniqueFd agent, UniqueFd console)
      : pid_(pid), agent_(std::move(agent)), console_(std::move(console)) {}

  Pid pid_;
  UniqueFd agent_, console_;
  std::string console_text_;
};

}  // namespace hips::lab

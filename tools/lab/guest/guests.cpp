#include "tools/lab/guest/guests.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "tools/lab/process/child.hpp"

namespace hips::lab {

Guests::Guests(int lifeline) : lifeline_(lifeline) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signals_ = UniqueFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

Status Guests::boot(const std::vector<GuestOptions>& options, Clock::duration limit) {
  guests_.reserve(options.size());
  for (const GuestOptions& each : options) {
    auto guest = Guest::boot(each);
    if (!guest) return guest.error();
    guests_.push_back(std::move(*guest));
  }
  int boots = 1;
  auto deadline = Clock::now() + limit;
  for (;;) {
    const auto late =
        std::find_if(guests_.begin(), guests_.end(), [](const Guest& guest) { return !guest.up; });
    if (late == guests_.end()) return Status::success();
    const auto failed =
        std::find_if(guests_.begin(), guests_.end(), [](const Guest& guest) { return guest.down; });
    if (failed != guests_.end()) {
      return Status::error(Code::kSystem, fmt::format("lab: guest {} did not boot; its last words:\n{}",
                                                      failed - guests_.begin(), failed->last_words()));
    }
    if (Clock::now() >= deadline) {
      if (boots == kBoots) {
        return Status::error(Code::kTimeout,
                             fmt::format("lab: guest {} did not boot in time; its last words:\n{}",
                                         late - guests_.begin(), late->last_words()));
      }
      if (Status status = boot_late_ones_anew(options); !status.ok()) return status;
      ++boots;
      deadline = Clock::now() + limit;
    }
    if (Status status = step(deadline, {}); !status.ok()) return status;
  }
}

Status Guests::boot_late_ones_anew(const std::vector<GuestOptions>& options) {
  for (std::size_t i = 0; i < guests_.size(); ++i) {
    if (guests_[i].up) continue;
    guests_[i].end();
    auto guest = Guest::boot(options[i]);
    if (!guest) return guest.error();
    guests_[i] = std::move(*guest);
  }
  return Status::success();
}

Result<std::vector<Outcome>> Guests::run(const std::vector<Job>& jobs, const OnOutput& on_output,
                                         Clock::time_point deadline) {
  const std::uint32_t first = next_process_;
  next_process_ += static_cast<std::uint32_t>(jobs.size());
  std::vector<Outcome> outcomes(jobs.size());
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    append_frame(guests_[jobs[job].guest].waiting, FrameKind::kStart, first + static_cast<std::uint32_t>(job),
                 to_json(jobs[job].request));
  }
  const auto on_frame = [&](std::size_t guest, const AgentFrame& frame) {
    // What an earlier call has left running may still print.
    const std::size_t job = frame.process - first;
    if (frame.process < first || job >= jobs.size() || jobs[job].guest != guest) return;
    if (frame.kind == FrameKind::kOutput) on_output(job, false, frame.payload);
    if (frame.kind == FrameKind::kError) on_output(job, true, frame.payload);
    if (frame.kind == FrameKind::kExit) {
      outcomes[job] = {Outcome::Kind::kEnded, std::atoi(frame.payload.c_str())};
    }
  };
  for (;;) {
    bool all_ended = true;
    for (std::size_t job = 0; job < jobs.size(); ++job) {
      Outcome& outcome = outcomes[job];
      if (outcome.kind == Outcome::Kind::kRunning && guests_[jobs[job].guest].down) {
        outcome.kind = Outcome::Kind::kGuestLost;
      }
      all_ended = all_ended && outcome.kind != Outcome::Kind::kRunning;
    }
    if (all_ended || Clock::now() >= deadline) return outcomes;
    if (Status status = step(deadline, on_frame); !status.ok()) return fail(std::move(status));
  }
}

Status Guests::step(Clock::time_point deadline, const OnFrame& on_frame) {
  std::vector<pollfd> fds{{signals_.get(), POLLIN, 0}, {lifeline_, POLLIN, 0}};
  for (const Guest& guest : guests_) {
    const short events = guest.waiting.empty() ? POLLIN : POLLIN | POLLOUT;
    fds.push_back({guest.down ? -1 : guest.agent_fd(), events, 0});
    fds.push_back({guest.console_fd(), POLLIN, 0});
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  const int timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
  if (poll(fds.data(), fds.size(), timeout) < 0 && errno != EINTR) {
    return Status::error(Code::kSystem, fmt::format("lab: poll: {}", std::strerror(errno)));
  }
  signalfd_siginfo info{};
  if (read(signals_.get(), &info, sizeof info) == sizeof info) {
    Status status = Status::error(
        Code::kAborted, fmt::format("lab: ended by signal {}", strsignal(static_cast<int>(info.ssi_signo))));
    status.sys_errno = static_cast<int>(info.ssi_signo);
    return status;
  }
  if (fds[1].revents != 0) return Status::error(Code::kAborted, "lab: the program that started it is gone");
  for (std::size_t guest = 0; guest < guests_.size(); ++guest) {
    serve(guest, fds[2 + 2 * guest].revents, fds[3 + 2 * guest].revents, on_frame);
  }
  return Status::success();
}

void Guests::serve(std::size_t idx, short agent_events, short console_events, const OnFrame& on_frame) {
  Guest& guest = guests_[idx];
  // The console ends with the emulator, the agent's connection too: whichever is noticed first.
  if (console_events != 0 && !guest.read_console()) guest.down = true;
  if ((agent_events & (POLLIN | POLLHUP | POLLERR)) != 0) {
    std::string bytes;
    if (!read_available(guest.agent_fd(), bytes)) guest.down = true;
    guest.reader.add(bytes);
    for (;;) {
      const auto frame = guest.reader.next();
      if (!frame) guest.down = true;  // not our agent's words
      if (!frame || !*frame) break;
      if ((*frame)->kind == FrameKind::kHello) guest.up = true;
      if (on_frame) on_frame(idx, **frame);
    }
  }
  while (!guest.down && !guest.waiting.empty()) {
    const ssize_t size = send(guest.agent_fd(), guest.waiting.data(), guest.waiting.size(), MSG_NOSIGNAL);
    if (size < 0) {
      if (errno != EAGAIN && errno != EINTR) guest.down = true;
      break;
    }
    guest.waiting.erase(0, static_cast<std::size_t>(size));
  }
}

}  // namespace hips::lab

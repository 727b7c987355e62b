#include "tools/lab/process/agent.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <optional>

#include "tools/lab/process/child.hpp"
#include "tools/lab/process/frames.hpp"
#include "tools/lab/process/start_request.hpp"

namespace hips::lab {
namespace {

/// While more than this waits to be sent, programs are not read: they wait, and memory does not grow.
constexpr std::size_t kMaxWaiting = std::size_t{1} << 20;

/// A program that runs for a session.
struct RunningProgram {
  std::uint32_t process = 0;
  pid_t pid = -1;
  UniqueFd out, err;
};

/// One connection: the lab's, or that of a remote shell.
struct Session {
  UniqueFd fd;
  bool is_lab = false;
  AgentFrameReader reader;
  std::string waiting;  ///< to be sent
  std::list<RunningProgram> programs;
  bool gone = false;
};

/// The device of the lab's virtio port. There is no udev to make the name a link.
std::string find_port() {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/class/virtio-ports", error)) {
    std::ifstream file(entry.path() / "name");
    std::string name;
    if (std::getline(file, name) && name == kAgentPort) return "/dev/" + entry.path().filename().string();
  }
  return {};
}

UniqueFd listen_to_guests() {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kAgentTcpPort);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd.get(), 64) != 0) {
    return {};
  }
  return fd;
}

class Agent {
 public:
  bool begin(int given_fd) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    children_ = UniqueFd(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    UniqueFd fd(given_fd >= 0 ? given_fd : open(find_port().c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!fd.valid()) {
      std::fprintf(stderr, "hips lab guest: the agent finds no port to the lab\n");
      return false;
    }
    set_nonblocking(fd.get());
    fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
    listener_ = listen_to_guests();
    add_session(std::move(fd), true);
    return true;
  }

  /// One round: waits for something and handles it; false when the lab is gone.
  bool step() {
    std::vector<pollfd> fds;
    fds.push_back({children_.get(), POLLIN, 0});
    fds.push_back({listener_.get(), POLLIN, 0});
    for (const Session& session : sessions_) {
      const short events = session.waiting.empty() ? POLLIN : POLLIN | POLLOUT;
      fds.push_back({session.fd.get(), events, 0});
      const bool read = session.waiting.size() < kMaxWaiting;
      for (const RunningProgram& program : session.programs) {
        fds.push_back({read ? program.out.get() : -1, POLLIN, 0});
        fds.push_back({read ? program.err.get() : -1, POLLIN, 0});
      }
    }
    if (poll(fds.data(), fds.size(), -1) < 0) return errno == EINTR;

    std::size_t at = 2;
    for (Session& session : sessions_) {
      const pollfd& connection = fds[at++];
      for (RunningProgram& program : session.programs) {
        if (fds[at++].revents != 0) forward(session, program, FrameKind::kOutput);
        if (fds[at++].revents != 0) forward(session, program, FrameKind::kError);
      }
      if ((connection.revents & (POLLIN | POLLHUP | POLLERR)) != 0) receive(session);
      send(session);
    }
    if (fds[0].revents != 0) bury();
    if (fds[1].revents != 0) {
      UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd.valid()) add_session(std::move(fd), false);
    }
    bool lab_is_there = true;
    sessions_.remove_if([&](Session& session) {
      if (!session.gone) return false;
      if (session.is_lab) lab_is_there = false;
      // Like ssh: who loses the connection loses the programs that it waits for.
      for (const RunningProgram& program : session.programs) kill(-program.pid, SIGKILL);
      return true;
    });
    return lab_is_there;
  }

 private:
  void add_session(UniqueFd fd, bool is_lab) {
    Session& session = sessions_.emplace_back();
    session.fd = std::move(fd);
    session.is_lab = is_lab;
    append_frame(session.waiting, FrameKind::kHello, 0, {});
    send(session);
  }

  static void send(Session& session) {
    while (!session.waiting.empty()) {
      const ssize_t size = write(session.fd.get(), session.waiting.data(), session.waiting.size());
      if (size > 0) {
        session.waiting.erase(0, static_cast<std::size_t>(size));
      } else {
        if (errno != EAGAIN && errno != EINTR) session.gone = true;
        return;
      }
    }
  }

  void receive(Session& session) {
    std::string bytes;
    const bool open = read_available(session.fd.get(), bytes);
    session.reader.add(bytes);
    for (;;) {
      auto frame = session.reader.next();
      if (!frame) {
        session.gone = true;
        return;
      }
      if (!*frame) break;
      if ((*frame)->kind == FrameKind::kStart) start(session, **frame);
    }
    if (!open) session.gone = true;
  }

  void start(Session& session, const AgentFrame& frame) {
    const auto refuse = [&](const std::string& message) {
      append_frame(session.waiting, FrameKind::kError, frame.process, message + "\n");
      append_frame(session.waiting, FrameKind::kExit, frame.process, std::to_string(127 << 8));
    };
    const auto request = parse_start_request(frame.payload);
    if (!request) return refuse(request.error().message);
    if (request->shared) {
      for (const auto& [name, value] : request->env) setenv(name.c_str(), value.c_str(), 1);
    }
    std::array<int, 2> out{-1, -1};
    std::array<int, 2> err{-1, -1};
    if (pipe2(out.data(), O_CLOEXEC) != 0) return refuse("no pipe can be made");
    RunningProgram program;
    program.process = frame.process;
    program.out = UniqueFd(out[0]);
    const UniqueFd child_out(out[1]);
    if (pipe2(err.data(), O_CLOEXEC) != 0) return refuse("no pipe can be made");
    program.err = UniqueFd(err[0]);
    const UniqueFd child_err(err[1]);
    set_nonblocking(out[0]);
    set_nonblocking(err[0]);
    ChildOptions options;
    options.argv = request->argv;
    options.env = request->env;
    options.folder = request->folder.empty() ? "/" : request->folder;
    options.out = child_out.get();
    options.err = child_err.get();
    options.own_session = true;
    const auto pid = start_child(options);
    if (!pid) return refuse(pid.error().message);
    program.pid = *pid;
    session.programs.push_back(std::move(program));
  }

  /// What a program has printed goes to its session; a stream that ended is closed.
  static void forward(Session& session, RunningProgram& program, FrameKind kind) {
    UniqueFd& fd = kind == FrameKind::kOutput ? program.out : program.err;
    if (!fd.valid()) return;
    std::string bytes;
    if (!read_available(fd.get(), bytes)) fd.reset();
    if (!bytes.empty()) append_frame(session.waiting, kind, program.process, bytes);
  }

  void bury() {
    signalfd_siginfo ignored{};
    while (read(children_.get(), &ignored, sizeof ignored) > 0) {
    }
    for (;;) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid <= 0) return;
      for (Session& session : sessions_) {
        session.programs.remove_if([&](RunningProgram& program) {
          if (program.pid != pid) return false;
          // All that it wrote itself is in the pipes. A background process may keep them open: it is not
          // waited for.
          forward(session, program, FrameKind::kOutput);
          forward(session, program, FrameKind::kError);
          append_frame(session.waiting, FrameKind::kExit, program.process, std::to_string(status));
          return true;
        });
        send(session);
      }
    }
  }

  UniqueFd children_, listener_;
  std::list<Session> sessions_;
};

}  // namespace

int run_agent(int fd) {
  Agent agent;
  if (!agent.begin(fd)) return 1;
  while (agent.step()) {
  }
  return 1;
}

}  // namespace hips::lab

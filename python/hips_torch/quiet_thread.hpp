#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace hips::torch_backend {

/// Starts a thread that no signal is delivered to: those are for the program's threads.
template <typename Function>
std::thread quiet_thread(Function&& function) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  struct Restore {
    const sigset_t& mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } const restore{before};
  return std::thread(std::forward<Function>(function));
}

}  // namespace hips::torch_backend

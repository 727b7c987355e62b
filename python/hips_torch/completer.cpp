#include "python/hips_torch/completer.hpp"

#include <algorithm>
#include <utility>

#include "python/hips_torch/quiet_thread.hpp"

namespace hips::torch_backend {

std::shared_ptr<Completer> Completer::make() {
  const std::shared_ptr<Completer> completer(new Completer);
  // The thread may be the last user, where the end of a work destroys the process group.
  completer->thread_ = quiet_thread([completer] { completer->run(); });
  return completer;
}

void Completer::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wake_.notify_one();
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();
  else
    thread_.join();
}

void Completer::add(c10::intrusive_ptr<HipsWork> work) {
  bool wakes = false;
  {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
    wakes = std::exchange(asleep_, false);
  }
  if (wakes) wake_.notify_one();
}

void Completer::remove(const HipsWork& work) {
  c10::intrusive_ptr<HipsWork> removed;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto place = std::find_if(works_.begin(), works_.end(), [&](const auto& one) { return one.get() == &work; });
  removed = std::move(*place);
  works_.erase(place);
}

bool Completer::has_outstanding() {
  std::vector<c10::intrusive_ptr<HipsWork>> works;
  {
    const std::lock_guard lock(mutex_);
    works.assign(works_.begin(), works_.end());
  }
  bool all_ended = true;
  for (const auto& work : works) all_ended = work->isCompleted() && all_ended;
  return !all_ended;
}

c10::intrusive_ptr<HipsWork> Completer::take_one() {
  for (const auto& work : works_)
    if (work->take()) return work;
  return {};
}

void Completer::run() {
  std::unique_lock lock(mutex_);
  std::chrono::microseconds nap = kShortest, idle{0};
  while (!stops_ || !works_.empty()) {
    if (auto work = take_one()) {
      lock.unlock();
      work->end();
      work.reset();
      lock.lock();
      nap = kShortest;
      idle = {};
    } else if (works_.empty() && idle >= kAwake && !stops_) {
      // Anew each time: the work that woke this thread may have been completed by another one meanwhile.
      while (!stops_ && works_.empty()) {
        asleep_ = true;
        wake_.wait(lock);
      }
      asleep_ = false;
      nap = kShortest;
      idle = {};
    } else {
      wake_.wait_for(lock, nap);
      idle = works_.empty() ? idle + nap : std::chrono::microseconds{0};
      nap = std::min(2 * nap, kLongest);
    }
  }
}

}  // namespace hips::torch_backend

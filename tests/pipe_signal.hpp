#pragma once

#include <unistd.h>

#include <stdexcept>

namespace hips::test {

/// A rank tells others without HiPS that they may go on. Made before the ranks are forked.
class PipeSignal {
 public:
  PipeSignal() {
    if (pipe(ends_) != 0) throw std::runtime_error("no pipe");
  }
  ~PipeSignal() {
    close(ends_[0]);
    close(ends_[1]);
  }
  PipeSignal(const PipeSignal&) = delete;
  PipeSignal& operator=(const PipeSignal&) = delete;

  void give() const { (void)!write(ends_[1], "x", 1); }
  /// Until it has been given so often.
  void wait(int times = 1) const {
    char byte = 0;
    for (int i = 0; i < times; ++i) (void)!read(ends_[0], &byte, 1);
  }

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace hips::test

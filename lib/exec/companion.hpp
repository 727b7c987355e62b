#pragma once

#include <string>

#include <hips/status.hpp>

namespace hips::exec {

/// What a thread may wait for while it drives progress.
///
/// Threads  done() and status() from any thread.
class Awaited {
 public:
  virtual ~Awaited() = default;
  [[nodiscard]] virtual bool done() const = 0;
  [[nodiscard]] virtual const Status& status() const = 0;  ///< valid once done()
  /// "lane 0, scatter stage 1, from rank 4 over rail 1"; "" when nothing lacks. Progress owner only.
  [[nodiscard]] virtual std::string waiting_text() const = 0;
};

/// Something that the engine does not know, which moves beside its operations and waits for them as they for
/// it: whoever drives progress moves both, and sleeps until there is news of either.
///
/// Threads  the progress owner only.
class Companion {
 public:
  virtual ~Companion() = default;
  /// Moves it as far as it gets; true when anything moved.
  virtual bool advance() = 0;
  /// Has it still something to move? One that has not is looked at no more, until it is enlisted again.
  [[nodiscard]] virtual bool busy() const = 0;
  /// As Transport::arm(): asks to be woken. Gives what becomes readable when there is news; -1 where none can
  /// come but of operations.
  virtual int arm() = 0;
  /// After each arm(), even where the companion is no longer busy.
  virtual void disarm() = 0;
};

}  // namespace hips::exec

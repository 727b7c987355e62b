#pragma once

#include <string>

#include <hips/status.hpp>

namespace hips::exec {

/// A condition that a thread can wait for while it drives progress.
///
/// Threads  done() and status() from any thread.
class Waitable {
 public:
  virtual ~Waitable() = default;
  [[nodiscard]] virtual bool done() const = 0;
  [[nodiscard]] virtual const Status& status() const = 0;  ///< valid once done()
  /// What is missing: "lane 0, scatter stage 1, from rank 4 over rail 1"; "" when nothing is missing.
  /// Progress owner only.
  [[nodiscard]] virtual std::string waiting_text() const = 0;
};

/// Work that the engine makes progress on beside its operations. The thread that drives progress advances
/// both, and sleeps until there is news of either. What arrives by a port reaches a client through operations of a team.
///
/// Threads  the progress owner only.
class EngineClient {
 public:
  virtual ~EngineClient() = default;
  /// Makes as much progress as is possible now; true if there was any.
  virtual bool advance() = 0;
  /// Whether there is work left. The engine drops a client that is not busy, until Engine::activate() adds it
  /// again.
  [[nodiscard]] virtual bool busy() const = 0;
  /// Requests a wake-up, as Transport::arm() does. Returns a descriptor that becomes readable when there is
  /// news, or -1 if the engine's own operations are the only source of news.
  virtual int arm() = 0;
  /// Called after each arm(), even if the client is no longer busy.
  virtual void disarm() = 0;
};

}  // namespace hips::exec

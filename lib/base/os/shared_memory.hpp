#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "lib/base/os/process_file.hpp"
#include "lib/base/result.hpp"

namespace hips {

/// What another process of this node needs to map a segment. Plain bytes, which may be sent.
struct SharedMemoryName {
  ProcessFile file;
  std::uint64_t token = 0;  ///< random and unique: inode numbers are reused eventually
  std::uint64_t bytes = 0;
};

/// Memory that other processes of this node can map. It ends with its last user, even after a crash.
///
/// It is an anonymous file (memfd). It has no name in a file system, so nothing is left in /dev/shm when all
/// processes are killed, and the size of /dev/shm (64 MiB in many containers) does not limit it. Peers open
/// it as /proc/PID/fd/N of the process that created it, which requires the same user and pid namespace. Pages
/// are zero and use no memory until they are touched.
///
/// Owns     the mapping, and the descriptor at the creator. A peer's mapping outlives the creator.
/// Threads  a handle is like any value; users synchronise access to the memory.
/// Example  auto memory = SharedMemory::create(1 << 20);
///          auto same = SharedMemory::attach(memory->name());  // in another process
class SharedMemory {
 public:
  SharedMemory() = default;  ///< empty; size() == 0

  /// Creates a segment of `bytes` zero bytes.
  ///
  /// Errors   kInvalidArgument: 0 bytes. kOutOfMemory, kSystem: the kernel refuses; see sys_errno.
  static Result<SharedMemory> create(std::size_t bytes);

  /// Maps a segment of another process. A segment of this process shares the creator's mapping.
  ///
  /// Errors   those of open_process_file(). kPeerLost also if device, inode or token differ, so a reused process id
  ///          never leads to wrong memory.
  static Result<SharedMemory> attach(const SharedMemoryName& name);

  /// Maps a segment read-only, so that this process cannot write into user memory of another. All holders in
  /// this process share one mapping. A segment of this process comes with the creator's mapping.
  static Result<SharedMemory> attach_readable(const SharedMemoryName& name);

  /// The name of a segment of this process, by descriptor.
  ///
  /// Errors   kInvalidArgument: `fd` is open but not a segment of create(). kSystem: it is not open.
  static Result<SharedMemoryName> name_of(int fd);

  [[nodiscard]] std::byte* data() const;
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::span<std::byte> bytes() const { return {data(), size()}; }
  /// The descriptor of the segment; -1 if another process created it.
  [[nodiscard]] int fd() const;
  [[nodiscard]] const SharedMemoryName& name() const;

  /// Returns all pages to the kernel immediately, even if peers still map them; only the creator does so.
  /// Reads then return zero, or what a device that pinned the pages wrote.
  void give_back_pages() const;

 private:
  struct Mapping;
  static Result<std::shared_ptr<const Mapping>> map(const SharedMemoryName& name, bool writable);
  std::shared_ptr<const Mapping> mapping_;
};

}  // namespace hips

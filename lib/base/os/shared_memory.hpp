#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "lib/base/os/process_file.hpp"
#include "lib/base/result.hpp"

namespace hips {

/// What another process of this machine needs to map a segment; plain bytes, may travel.
struct SharedMemoryName {
  ProcessFile file;
  std::uint64_t token = 0;  ///< random, unlike any other segment's: inode numbers are reused in the end
  std::uint64_t bytes = 0;
};

/// Memory that other processes of this machine can map, and that ends with its last user, crash or not.
///
/// It is an anonymous file (memfd): it has no name in any file system, so nothing is left in /dev/shm when
/// all processes are killed, and /dev/shm's size (64 MiB in many containers) does not limit it. Peers reach
/// it as /proc/PID/fd/N of the process that made it, which asks for the same user and pid namespace. Pages
/// are zero and take no memory until they are touched.
///
/// Owns     the mapping and, where created, the descriptor. A peer's mapping outlives the creator.
/// Threads  a handle as any value; the memory is the users' to synchronise.
/// Example  auto memory = SharedMemory::create(1 << 20);
///          auto same = SharedMemory::attach(memory->name());  // in another process
class SharedMemory {
 public:
  SharedMemory() = default;  ///< holds nothing; size() == 0

  /// Makes a segment of `bytes` zero bytes.
  ///
  /// Errors   kInvalidArgument: no bytes. kOutOfMemory, kSystem: the kernel refuses; sys_errno says how.
  static Result<SharedMemory> create(std::size_t bytes);

  /// Maps a segment of another process, or shares the mapping where it is one of this process.
  ///
  /// Errors   those of open_process_file(). A process number that was reused never gives wrong memory:
  /// device,
  ///          inode and token must all agree, else kPeerLost.
  static Result<SharedMemory> attach(const SharedMemoryName& name);

  /// The same, to be read only: one mapping for all of a process that hold it at a time, and it cannot write
  /// into what may be memory of a user. A segment of this process comes as its creator has it.
  static Result<SharedMemory> attach_readable(const SharedMemoryName& name);

  /// The name of a segment of this process, given its descriptor.
  ///
  /// Errors   kInvalidArgument: `fd` is open but no segment made by create(). kSystem: it is not open.
  static Result<SharedMemoryName> name_of(int fd);

  [[nodiscard]] std::byte* data() const;
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::span<std::byte> bytes() const { return {data(), size()}; }
  /// The descriptor of the segment; -1 where it was attached from another process.
  [[nodiscard]] int fd() const;
  [[nodiscard]] const SharedMemoryName& name() const;

  /// The kernel takes all pages back at once, however many peers still map them; the creator's, at the end.
  /// What is then read is zero, or what a device wrote that holds pages of its own.
  void give_back_pages() const;

 private:
  struct Mapping;
  static Result<std::shared_ptr<const Mapping>> map(const SharedMemoryName& name, bool writable);
  std::shared_ptr<const Mapping> mapping_;
};

}  // namespace hips

#include "lib/base/os/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#ifndef MFD_NOEXEC_SEAL  // Linux 6.3
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace hips {

namespace {

// The token is part of the file's name, which is visible in /proc only. So the whole segment belongs to the
// user.
constexpr std::string_view kNamePrefix = "hips-";
constexpr std::string_view kLinkPrefix = "/memfd:hips-";

tl::unexpected<Status> fail_system(int error, std::string message) {
  const bool memory = error == ENOMEM || error == ENOSPC || error == EFBIG || error == EINVAL;
  Status status = Status::error(memory ? Code::kOutOfMemory : Code::kSystem, std::move(message));
  status.sys_errno = error;
  return fail(std::move(status));
}

std::optional<std::uint64_t> token_of(int fd) {
  std::array<char, 128> link{};
  const ssize_t length = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), link.data(), link.size());
  if (length < 0) return std::nullopt;
  std::string_view text(link.data(), static_cast<std::size_t>(length));
  if (!text.starts_with(kLinkPrefix)) return std::nullopt;
  text.remove_prefix(kLinkPrefix.size());
  std::uint64_t token = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), token, 16);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return token;
}

}  // namespace

struct SharedMemory::Mapping {
  class Registry;

  Mapping(std::byte* mapped, const SharedMemoryName& named, UniqueFd descriptor, Registry* known)
      : data(mapped), name(named), fd(std::move(descriptor)), registry(known) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (registry != nullptr) registry->forget(name.token);
    munmap(data, name.bytes);
  }

  /// Mappings that are shared inside the process, by token.
  class Registry {
   public:
    void remember(const std::shared_ptr<const Mapping>& mapping) {
      const std::lock_guard lock(mutex_);
      mappings_[mapping->name.token] = mapping;
    }
    void forget(std::uint64_t token) {
      const std::lock_guard lock(mutex_);
      const auto found = mappings_.find(token);
      // Another thread may have mapped the segment again in the meantime.
      if (found != mappings_.end() && found->second.expired()) mappings_.erase(found);
    }
    std::shared_ptr<const Mapping> find(std::uint64_t token) {
      const std::lock_guard lock(mutex_);
      const auto found = mappings_.find(token);
      return found == mappings_.end() ? nullptr : found->second.lock();
    }

   private:
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::weak_ptr<const Mapping>> mappings_;
  };
  /// The segments that this process created. A peer inside the process shares the creator's mapping: it costs
  /// no address space, and tools that track memory by address (ThreadSanitizer) see one memory instead of
  /// two.
  static Registry& own() {
    // Never destroyed: segments in static objects may outlive every other static.
    static auto* registry = new Registry;
    return *registry;
  }
  /// Segments of other processes that are mapped for reading.
  static Registry& read() {
    static auto* registry = new Registry;
    return *registry;
  }

  std::byte* data;
  SharedMemoryName name;
  UniqueFd fd;         ///< valid at the creator only
  Registry* registry;  ///< the registry that holds it; null: none
};

Result<SharedMemory> SharedMemory::create(std::size_t bytes) {
  if (bytes == 0)
    return fail(Code::kInvalidArgument, "shared memory: a segment of 0 bytes; ask for at least 1");
  std::uint64_t token = 0;
  if (getrandom(&token, sizeof token, 0) != static_cast<ssize_t>(sizeof token)) {
    return fail_system(errno, fmt::format("shared memory: getrandom: {}", std::strerror(errno)));
  }
  const std::string file_name = fmt::format("{}{:016x}", kNamePrefix, token);
  // Systems with vm.memfd_noexec=2 require the seal; kernels before 6.3 do not know it.
  UniqueFd fd(memfd_create(file_name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL));
  if (!fd.valid() && errno == EINVAL)
    fd.reset(memfd_create(file_name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) {
    const int error = errno;
    return fail_system(error, fmt::format("shared memory: memfd_create: {}", std::strerror(error)));
  }
  if (bytes > static_cast<std::size_t>(INT64_MAX) || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    const int error = bytes > static_cast<std::size_t>(INT64_MAX) ? EFBIG : errno;
    return fail_system(error,
                       fmt::format("shared memory: a segment of {} bytes: {}", bytes, std::strerror(error)));
  }
  // With the seals, no process can shrink the file, so an access inside the segment never ends in SIGBUS for
  // that reason. If the kernel refuses the seals, nothing changes, because we never shrink it.
  (void)fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);

  auto file = process_file(fd.get());
  if (!file) return fail(std::move(file).error());
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    return fail_system(error,
                       fmt::format("shared memory: mmap of {} bytes: {}", bytes, std::strerror(error)));
  }
  SharedMemory memory;
  memory.mapping_ = std::make_shared<const Mapping>(
      static_cast<std::byte*>(mapped), SharedMemoryName{.file = *file, .token = token, .bytes = bytes},
      std::move(fd), &Mapping::own());
  Mapping::own().remember(memory.mapping_);
  return memory;
}

Result<std::shared_ptr<const SharedMemory::Mapping>> SharedMemory::map(const SharedMemoryName& name,
                                                                       bool writable) {
  if (name.bytes == 0) return fail(Code::kInvalidArgument, "shared memory: the name of a segment of 0 bytes");
  if (name.file.pid == getpid()) {
    auto mapping = Mapping::own().find(name.token);
    if (mapping && mapping->name.bytes >= name.bytes) return mapping;
  }
  auto fd = open_process_file(name.file, writable ? O_RDWR : O_RDONLY);
  if (!fd) return fail(std::move(fd).error());
  struct stat info {};
  if (fstat(fd->get(), &info) != 0 || static_cast<std::uint64_t>(info.st_size) < name.bytes ||
      token_of(fd->get()) != name.token) {
    return fail(
        Code::kPeerLost,
        fmt::format("shared memory: descriptor {} of process {} now refers to another segment: the process "
                    "has closed it, or has ended and its process id was reused",
                    name.file.fd, name.file.pid),
        Scope::kPeer);
  }
  void* mapped =
      mmap(nullptr, name.bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd->get(), 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    return fail_system(error, fmt::format("shared memory: mmap of {} bytes of process {}: {}", name.bytes,
                                          name.file.pid, std::strerror(error)));
  }
  return std::make_shared<const Mapping>(static_cast<std::byte*>(mapped), name, UniqueFd(),
                                         writable ? nullptr : &Mapping::read());
}

Result<SharedMemory> SharedMemory::attach(const SharedMemoryName& name) {
  auto mapping = map(name, true);
  if (!mapping) return fail(std::move(mapping).error());
  SharedMemory memory;
  memory.mapping_ = std::move(*mapping);
  return memory;
}

Result<SharedMemory> SharedMemory::attach_readable(const SharedMemoryName& name) {
  SharedMemory memory;
  memory.mapping_ = Mapping::read().find(name.token);
  if (memory.mapping_ && memory.mapping_->name.bytes >= name.bytes) return memory;
  auto mapping = map(name, false);
  if (!mapping) return fail(std::move(mapping).error());
  memory.mapping_ = std::move(*mapping);
  if (memory.mapping_->registry == &Mapping::read()) Mapping::read().remember(memory.mapping_);
  return memory;
}

Result<SharedMemoryName> SharedMemory::name_of(int fd) {
  auto file = process_file(fd);
  if (!file) return fail(std::move(file).error());
  const auto token = token_of(fd);
  struct stat info {};
  if (!token || fstat(fd, &info) != 0) {
    return fail(Code::kInvalidArgument,
                fmt::format("shared memory: descriptor {} is not a segment of SharedMemory::create", fd));
  }
  return SharedMemoryName{.file = *file, .token = *token, .bytes = static_cast<std::uint64_t>(info.st_size)};
}

std::byte* SharedMemory::data() const {
  return mapping_ ? mapping_->data : nullptr;
}
std::size_t SharedMemory::size() const {
  return mapping_ ? mapping_->name.bytes : 0;
}
int SharedMemory::fd() const {
  return mapping_ ? mapping_->fd.get() : -1;
}
void SharedMemory::give_back_pages() const {
  // A child of fork() also has the descriptor, but the memory is not the child's.
  if (!mapping_ || !mapping_->fd.valid() || mapping_->name.file.pid != getpid()) return;
  // The seals forbid a change of size, not holes. If a kernel refuses, the pages are freed with the last
  // mapping.
  (void)fallocate(mapping_->fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                  static_cast<off_t>(mapping_->name.bytes));
}
const SharedMemoryName& SharedMemory::name() const {
  static const SharedMemoryName kNone;
  return mapping_ ? mapping_->name : kNone;
}

}  // namespace hips

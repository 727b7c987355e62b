#include "tools/lab/guest/image.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <system_error>

#include <fmt/format.h>

#include "lib/base/os/unique_fd.hpp"
#include "tools/lab/process/child.hpp"
#include "tools/lab/scripts.hpp"

namespace hips::lab {
namespace fs = std::filesystem;
namespace {

/// A guest takes 2 s under KVM.
constexpr int kProbeMs = 15'000;
constexpr int kMakeMs = 600'000;

Result<fs::path> cache_folder() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if ((!xdg || !*xdg) && (!home || !*home)) {
    return fail(Code::kUnsupported,
                "lab: neither XDG_CACHE_HOME nor HOME says where the guests' kernel is kept");
  }
  const fs::path folder = (xdg && *xdg ? fs::path(xdg) : fs::path(home) / ".cache") / "hips" / "lab";
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return fail(Code::kSystem, fmt::format("lab: {} cannot be made: {}", folder.string(), error.message()));
  }
  return folder;
}

/// Another text of the scripts is another image.
std::string image_name() {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const std::string_view text : {kMakeImage, kInit}) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return fmt::format("image-{:016x}", hash);
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The part of a script's message that tells the cause.
std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const auto newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

Status make_image(const fs::path& folder) {
  std::fprintf(stderr, "hips lab: making the guests' kernel image in %s, once\n",
               folder.parent_path().c_str());
  const fs::path made = folder.string() + ".new";
  std::error_code error;
  fs::remove_all(made, error);
  fs::create_directories(made, error);
  if (error) {
    return Status::error(Code::kSystem,
                         fmt::format("lab: {} cannot be made: {}", made.string(), error.message()));
  }
  ChildOptions options;
  options.argv = {"sh", "-c", std::string(kMakeImage), "make_image.sh", made.string(), std::string(kInit)};
  options.dies_with_us = true;
  const auto done = run_child(options, {}, kMakeMs);
  if (!done) return done.error();
  if (!done->ok()) {
    fs::remove_all(made, error);
    return Status::error(Code::kUnsupported, "lab: " + last_line(done->err));
  }
  fs::rename(made, folder, error);
  if (error) return Status::error(Code::kSystem, "lab: " + folder.string() + ": " + error.message());
  return Status::success();
}

}  // namespace

Result<Image> find_or_make_image() {
  const auto cache = cache_folder();
  if (!cache) return fail(cache.error());
  const fs::path folder = *cache / image_name();
  const UniqueFd lock(open((*cache / "lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644));
  if (!lock.valid() || flock(lock.get(), LOCK_EX) != 0) {
    return fail(Code::kSystem,
                fmt::format("lab: {} cannot be locked: {}", cache->string(), std::strerror(errno)));
  }
  if (!fs::exists(folder / "version")) {
    if (Status status = make_image(folder); !status.ok()) return fail(std::move(status));
  }
  return Image{folder / "vmlinuz", folder / "initrd"};
}

std::string choose_accelerator(const Image& image) {
  if (access("/dev/kvm", R_OK | W_OK) != 0) return "tcg";
  const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
  const fs::path answer = image.kernel.parent_path() / "accelerator";
  if (const std::string line = first_line(answer); line == boot + " kvm" || line == boot + " tcg") {
    return line.substr(boot.size() + 1);
  }
  const auto emulator = find_emulator();
  if (!emulator) return "tcg";
  ChildOptions options;
  // Where the processor cannot be set up the emulator aborts: that is an answer, and no core file.
  options.argv = {"sh",
                  "-c",
                  "ulimit -c 0; exec \"$0\" \"$@\"",
                  *emulator,
                  "-nodefaults",
                  "-no-user-config",
                  "-machine",
                  "q35",
                  "-accel",
                  "kvm",
                  "-cpu",
                  "host",
                  "-m",
                  "256",
                  "-kernel",
                  image.kernel,
                  "-initrd",
                  image.initrd,
                  "-append",
                  "console=ttyS0 quiet panic=-1 no_timer_check hips.probe",
                  "-display",
                  "none",
                  "-monitor",
                  "none",
                  "-serial",
                  "stdio",
                  "-no-reboot"};
  options.dies_with_us = true;
  const auto done = run_child(options, {}, kProbeMs);
  const std::string choice = done && done->out.find("probe: it boots") != std::string::npos ? "kvm" : "tcg";
  std::ofstream(answer) << boot << ' ' << choice << '\n';
  return choice;
}

Result<std::string> find_emulator() {
  auto found = find_on_path("qemu-system-x86_64");
  if (!found) {
    return fail(Code::kUnsupported, "lab: qemu-system-x86_64 is missing: apt-get install qemu-system-x86");
  }
  return *found;
}

}  // namespace hips::lab

#pragma once

#include <filesystem>
#include <string>

#include "lib/base/result.hpp"

namespace hips::lab {

/// What a guest boots from.
struct Image {
  std::filesystem::path kernel, initrd;
};

/// The guests' kernel and first file system. Made where they are missing - which needs the network once - and
/// kept in $XDG_CACHE_HOME/hips/lab or ~/.cache/hips/lab; later calls work offline. Several processes may ask
/// at once.
///
/// Errors   kUnsupported: a program or a package is missing; the message has the command that installs it.
Result<Image> find_or_make_image();

/// qemu's accelerator for guests of this image: "kvm" where a guest boots with it, else "tcg". There are
/// hosts with a /dev/kvm that boots no stock kernel, so it is tried, once for each boot of the host.
std::string choose_accelerator(const Image& image);

/// Path of the emulator.
///
/// Errors   kUnsupported: it is missing, with the command that installs it.
Result<std::string> find_emulator();

}  // namespace hips::lab

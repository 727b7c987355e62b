#pragma once

#include <string>
#include <vector>

namespace hips::mpi {

/// Paths of all objects of this process, programs and libraries; "" is the program.
///
/// Threads  any.
std::vector<std::string> loaded_objects();

/// A handle of dlopen() of an object that is there already; null where it is not.
void* handle_of_loaded(const std::string& path);

}  // namespace hips::mpi

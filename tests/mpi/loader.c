/*
 * Uses no MPI itself: loads an MPI program with local scope, as Python loads its modules, and runs it.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  int (*program)(int, char**);
  void* address = dlsym(library, "main");
  if (!address) return 2;
  memcpy(&program, &address, sizeof program);
  return program(argc - 1, argv + 1);
}

#include "tools/hips-write/main.hpp"

int main(int argc, char** argv) {
  return hips::write::run_program(hips::write::WriteProgram::kBandwidth, argc, argv);
}

#include <hips/mpi.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>

#include <fmt/format.h>

#include "tools/hips-allreduce-perf/launch.hpp"

namespace hips::perf {
namespace {

class MpiLibrary final : public OtherAllreduce {
 public:
  explicit MpiLibrary(bool interposed) : interposed_(interposed) {}
  [[nodiscard]] std::string name() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    std::string line(text.data(), static_cast<std::size_t>(length));
    line.resize(std::min(line.size(), line.find_first_of(",\n")));
    std::ranges::replace(line, '\t', ' ');
    return interposed_ ? line + ", including interposers" : line;
  }
  [[nodiscard]] std::string label() const override { return "MPI"; }
  [[nodiscard]] bool has(DataType type, ReduceOp op) const override {
    return type_of(type) != MPI_DATATYPE_NULL && op_of(op) != MPI_OP_NULL;
  }
  void allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) override {
    if (count > INT_MAX) {
      throw Error(
          Status::error(Code::kUnsupported,
                        "--compare: MPI_Allreduce has at most 2147483647 elements; choose a smaller -e"));
    }
    const void* from = in == out ? MPI_IN_PLACE : in;
    // PMPI_Allreduce bypasses interposers, ours and others.
    const auto call = interposed_ ? MPI_Allreduce : PMPI_Allreduce;
    call(from, out, static_cast<int>(count), type_of(type), op_of(op), MPI_COMM_WORLD);
  }

 private:
  // By DataType and ReduceOp. Initialised at the first call, because handles need not be constants.
  static MPI_Datatype type_of(DataType type) {
    static const MPI_Datatype types[kNumDataTypes] = {
        MPI_INT32_T, MPI_INT64_T,  MPI_FLOAT,    MPI_DOUBLE,   MPI_INT8_T,        MPI_INT16_T,
        MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T, MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    return types[static_cast<int>(type)];
  }
  static MPI_Op op_of(ReduceOp op) {
    static const MPI_Op ops[kNumReduceOps] = {MPI_SUM, MPI_PROD, MPI_MIN,  MPI_MAX, MPI_OP_NULL, MPI_BAND,
                                              MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
    return ops[static_cast<int>(op)];
  }

  bool interposed_;
};

class MpiLaunch final : public PerfLaunch {
 public:
  MpiLaunch(int* argc, char*** argv) { MPI_Init(argc, argv); }
  hips_status_t create(const hips_comm_config_t& config, hips_comm_t* comm) override {
    return hips_comm_create_mpi(MPI_COMM_WORLD, &config, comm);
  }
  std::unique_ptr<OtherAllreduce> native_mpi(bool interposed) override {
    return std::make_unique<MpiLibrary>(interposed);
  }
  void finish() override { MPI_Finalize(); }
};

/// The number of ranks that a launcher says it has started; 0: it says none.
int launched_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* size = std::getenv(name)) return std::atoi(size);
  }
  return 0;
}

}  // namespace

Result<std::unique_ptr<PerfLaunch>> launch_by_mpi(int* argc, char*** argv) {
  auto launch = std::make_unique<MpiLaunch>(argc, argv);
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (const int launched = launched_ranks(); size == 1 && launched > 1)
    return fail(
        Code::kUnsupported,
        fmt::format(
            "the launcher has started {} ranks, but MPI knows of this one only: it is the launcher of "
            "another MPI than this program's, {}",
            launched, launch->native_mpi(false)->name()));
  return launch;
}

}  // namespace hips::perf

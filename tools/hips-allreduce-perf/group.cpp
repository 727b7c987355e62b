#include "tools/hips-allreduce-perf/group.hpp"

#include <unistd.h>

#include <array>

#include <hips/status.hpp>

namespace hips::perf {
namespace {

const char* text_or_null(const std::string& text) {
  return text.empty() ? nullptr : text.c_str();
}

}  // namespace

void expect_ok(hips_status_t status) {
  if (status != HIPS_OK) throw Error(Status::error(static_cast<Code>(status), hips_last_error()));
}

PerfGroup::PerfGroup(PerfLaunch& launch, const PerfOptions& options) {
  hips_comm_config_t config = HIPS_COMM_CONFIG_INIT;
  config.topology = text_or_null(options.topology);
  config.algorithm = text_or_null(options.algorithm);
  config.pattern = text_or_null(options.pattern);
  config.name = "hips-allreduce-perf";
  config.thread_mode = HIPS_THREAD_SINGLE;
  expect_ok(launch.create(config, &comm_));
  expect_ok(hips_comm_rank(comm_, &rank_));
  expect_ok(hips_comm_size(comm_, &size_));
}

PerfGroup::~PerfGroup() {
  (void)hips_comm_destroy(comm_);
}

void PerfGroup::allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) {
  expect_ok(
      hips_allreduce(in, out, count, static_cast<hips_type_t>(type), static_cast<hips_op_t>(op), comm_));
}

hips_request_t PerfGroup::iallreduce(const void* in, void* out, std::uint64_t count, DataType type,
                                     ReduceOp op) {
  hips_request_t request = HIPS_REQUEST_NULL;
  expect_ok(hips_iallreduce(in, out, count, static_cast<hips_type_t>(type), static_cast<hips_op_t>(op), comm_,
                            &request));
  return request;
}

hips_request_t PerfGroup::allreduce_init(const void* in, void* out, std::uint64_t count, DataType type,
                                         ReduceOp op) {
  hips_request_t request = HIPS_REQUEST_NULL;
  expect_ok(hips_allreduce_init(in, out, count, static_cast<hips_type_t>(type), static_cast<hips_op_t>(op),
                                comm_, &request));
  return request;
}

void PerfGroup::barrier() {
  (void)sum(0);
}

double PerfGroup::combine(double value, ReduceOp op) {
  double all = 0;
  allreduce(&value, &all, 1, DataType::kFloat64, op);
  return all;
}

void PerfGroup::combine(std::span<double> values, ReduceOp op) {
  allreduce(values.data(), values.data(), values.size(), DataType::kFloat64, op);
}

std::int64_t PerfGroup::sum(std::int64_t value) {
  std::int64_t all = 0;
  allreduce(&value, &all, 1, DataType::kInt64, ReduceOp::kSum);
  return all;
}

std::vector<RankProcess> PerfGroup::processes() {
  constexpr std::size_t kHostChars = 64;  // longer names are truncated; they are only printed
  constexpr std::size_t kWidth = 1 + kHostChars;
  std::array<char, kHostChars + 1> host{};
  (void)gethostname(host.data(), kHostChars);
  // An all-gather as a sum: every rank fills its own row, and zeros elsewhere.
  std::vector<std::int32_t> rows(kWidth * static_cast<std::size_t>(size_));
  std::int32_t* mine = rows.data() + kWidth * static_cast<std::size_t>(rank_);
  mine[0] = getpid();
  for (std::size_t i = 0; i < kHostChars; ++i) mine[1 + i] = host[i];
  allreduce(rows.data(), rows.data(), rows.size(), DataType::kInt32, ReduceOp::kSum);
  std::vector<RankProcess> processes(static_cast<std::size_t>(size_));
  for (std::size_t r = 0; r < processes.size(); ++r) {
    const std::int32_t* row = rows.data() + kWidth * r;
    processes[r].pid = row[0];
    for (std::size_t i = 0; i < kHostChars && row[1 + i] != 0; ++i) {
      processes[r].host += static_cast<char>(row[1 + i]);
    }
  }
  return processes;
}

}  // namespace hips::perf

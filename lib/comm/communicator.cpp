#include "lib/comm/communicator.hpp"

#include <atomic>

#include "lib/base/log.hpp"
#include "lib/comm/design.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/node_communicator.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/team_communicator.hpp"
#include "lib/comm/transport_registry.hpp"
#include "lib/reduce/reduce.hpp"
#include "topology/topology_file.hpp"

namespace hips::comm {
namespace {

using log::Subsystem;

/// A call with nobody else: it has ended when start() returns.
class LoneRequest final : public Request {
 public:
  LoneRequest(Communicator& communicator, const void* in, void* out, std::uint64_t count, DataType type,
              ReduceOp op)
      : communicator_(communicator), in_(in), out_(out), count_(count), type_(type), op_(op) {}
  Status renew(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) override {
    if (Status status = check_arguments(in, out, count, type, op); !status.ok()) return status;
    in_ = in;
    out_ = out;
    count_ = count;
    type_ = type;
    op_ = op;
    return Status::success();
  }
  Status start() override { return communicator_.allreduce(in_, out_, count_, type_, op_); }
  [[nodiscard]] bool active() const override { return false; }
  bool test() override { return true; }
  Status wait() override { return Status::success(); }

 private:
  Communicator& communicator_;
  const void* in_;
  void* out_;
  std::uint64_t count_;
  DataType type_;
  ReduceOp op_;
};

/// HIPS_TOPO_DUMP: what the first communicator of this process runs on.
void dump_topology(const std::string& path, const Topology& topology) {
  static std::atomic<bool> dumped{false};
  if (path.empty() || dumped.exchange(true)) return;
  topology::TopologyFile file;
  file.topology = topology;
  // A communicator works without; whoever wants the file has to know.
  if (auto written = topology::write_topology_file(path, file); !written)
    log::warn(Subsystem::kComm, "HIPS_TOPO_DUMP: {}", written.error().message);
}

/// A communicator of one rank: nobody to reduce with.
class LoneCommunicator final : public Communicator {
 public:
  [[nodiscard]] Rank rank() const override { return 0; }
  [[nodiscard]] Rank size() const override { return 1; }
  [[nodiscard]] const std::string& describe() const override { return description_; }
  [[nodiscard]] const std::string& carrier() const override { return carrier_; }
  Status allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) override {
    if (Status status = check_not_forked(); !status.ok()) return status;
    if (Status status = check_arguments(in, out, count, type, op); !status.ok()) return status;
    const auto* const operand = static_cast<const std::byte*>(in);
    reduce::fold(type, op, static_cast<std::byte*>(out), {&operand, 1}, static_cast<std::size_t>(count));
    return Status::success();
  }
  Result<std::unique_ptr<Request>> iallreduce(const void* in, void* out, std::uint64_t count, DataType type,
                                              ReduceOp op) override {
    auto request = allreduce_init(in, out, count, type, op);
    if (!request) return request;
    if (Status status = (*request)->start(); !status.ok()) return fail(std::move(status));
    return request;
  }
  Result<std::unique_ptr<Request>> allreduce_init(const void* in, void* out, std::uint64_t count,
                                                  DataType type, ReduceOp op) override {
    if (Status status = check_not_forked(); !status.ok()) return fail(std::move(status));
    if (Status status = check_arguments(in, out, count, type, op); !status.ok())
      return fail(std::move(status));
    return std::make_unique<LoneRequest>(*this, in, out, count, type, op);
  }
  void note_declined(const char* /*what*/) override {}
  [[nodiscard]] Status failure() const override { return Status::success(); }

 private:
  std::string description_ = "one rank: a copy", carrier_ = "memory";
};

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(Bootstrap& bootstrap,
                                                           const CommunicatorOptions& options) {
  if (Status status = check_not_forked(); !status.ok()) return fail(std::move(status));
  LoadedConfig loaded = load_process_config();
  log::configure(loaded.config.log, bootstrap.rank());
  const Rank rank = bootstrap.rank(), size = bootstrap.size();

  Announcement mine;
  mine.status = loaded.status;
  mine.process = this_process();
  if (mine.status.ok()) mine.status = describe_networks(loaded.config, mine.process);
  mine.id = ProcessUid::random().low;
  Design design;
  if (mine.status.ok()) {
    auto made = make_design(options, loaded.config, rank, size);
    if (made)
      design = std::move(*made);
    else
      mine.status = made.error();
  }
  mine.terms = design.terms;
  auto blobs = bootstrap.allgather(encode(mine));
  if (!blobs) return fail(blobs.error());
  std::uint64_t id = 0;
  auto processes = compare(*blobs, id);
  if (!processes) return fail(processes.error());
  if (size == 1) return std::make_unique<LoneCommunicator>();
  if (Status status = check_reach(loaded.config.transport, *processes); !status.ok())
    return fail(std::move(status));

  if (rank == 0) dump_topology(loaded.config.topology_dump, design.topology);
  std::unique_ptr<WatchedCommunicator> communicator;
  const bool in_memory = NodeCommunicator::serves(design, loaded.config, *processes);
  if (in_memory) {
    communicator = std::make_unique<NodeCommunicator>(bootstrap, loaded.config, options);
  } else {
    communicator = std::make_unique<TeamCommunicator>(bootstrap, loaded.config, options);
  }
  if (Status status = communicator->set_up(bootstrap, loaded.config, design, *processes, id); !status.ok())
    return fail(std::move(status));
  log::info(Subsystem::kComm, "{}: {} ranks, {}", options.name, size, communicator->describe());
  if (loaded.config.reproducible == Reproducible::kAny && rank == 0)
    log::info(Subsystem::kComm, "{}: folded by rank (HIPS_REPRODUCIBLE=any); {}", options.name,
              in_memory ? "memory that all ranks share does so anyway" : design.price);
  return communicator;
}

}  // namespace hips::comm

#include "lib/comm/communicator.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "lib/base/log.hpp"
#include "lib/comm/agreement.hpp"
#include "lib/comm/call_record.hpp"
#include "lib/comm/fork_guard.hpp"
#include "lib/comm/patience.hpp"
#include "lib/comm/process.hpp"
#include "lib/comm/transport_registry.hpp"
#include "lib/comm/watchkeeper.hpp"
#include "lib/exec/team.hpp"
#include "lib/plan/builder.hpp"

namespace hips::comm {
namespace {

using log::Subsystem;

constexpr std::int64_t kLookEveryNs = 200'000'000;
/// What the control threads of all ranks take to answer, when all goes well.
constexpr std::int64_t kAnswersNs = 200'000'000;
constexpr std::int64_t kProgressEveryNs = 1'000'000;

/// What this rank brings to the first exchange.
struct Announcement {
  std::uint32_t version = kWireVersion;
  Status status;
  ProcessInfo process;
  std::uint64_t id = 0;  ///< rank 0's becomes the communicator's
  Terms terms;
};

Blob encode(const Announcement& announcement) {
  ByteWriter writer;
  writer.put(announcement.version);
  writer.put_status(announcement.status);
  put_process(writer, announcement.process);
  writer.put(announcement.id);
  put_terms(writer, announcement.terms);
  return writer.take();
}

/// What all ranks make of their options, before they meet: what can be wrong with it is known here.
struct Design {
  Topology topology;
  std::shared_ptr<const PlanShape> shape;
  std::shared_ptr<const Program> program;
  Terms terms;
};

/// The topology for `size` ranks: as the spec says, or with several ranks on each of its servers.
Result<Topology> fit_topology(const std::string& spec, Rank size) {
  Topology topology = parse_topology(spec);
  const Rank num_ranks = topology.num_ranks();
  if (num_ranks == size) return topology;
  const bool plain = topology.ranks_per_server == 1;
  if (plain && num_ranks > 0 && size % num_ranks == 0)
    return parse_topology(fmt::format("{}/{}", spec, size / num_ranks));
  const std::string each =
      plain ? std::string() : fmt::format(" of {} ranks each", topology.ranks_per_server);
  return fail(
      Code::kInvalidArgument,
      fmt::format(
          "topology \"{}\" has {} servers{}, which takes {} ranks, but the communicator has {}: start {} "
          "ranks{}, or name a topology of {} such as switch:{}",
          spec, topology.num_servers(), each, num_ranks, size, num_ranks,
          plain ? " or a multiple of that" : "", size, size));
}

/// Everything that one rank can decide alone. Throws Error where a parser does.
Result<Design> make_design(const CommunicatorOptions& options, const Config& config, Rank rank, Rank size) {
  const auto chosen = [](const auto& option, const auto& variable, std::string otherwise) {
    return option ? *option : variable ? *variable : std::move(otherwise);
  };
  if (Status status = check_transport_choice(config.transport); !status.ok()) return fail(status);
  Design design;
  const bool named = options.topology || config.topology;
  if (named || size > 1) {
    auto topology =
        fit_topology(chosen(options.topology, config.topology, fmt::format("switch:{}", size)), size);
    if (!topology) return fail(topology.error());
    design.topology = std::move(*topology);
  }

  PlanRequest request;
  request.algorithm = chosen(options.algorithm, config.algorithm, "hips");
  const std::string pattern = chosen(options.pattern, config.pattern, "");
  if (!pattern.empty()) {
    auto patterns = plan::parse_patterns(pattern);
    if (!patterns) return fail(patterns.error());
    request.patterns = std::move(*patterns);
  }
  request.num_rings = config.num_rings;
  request.num_leaders = config.num_leaders;
  if (size > 1) {
    auto builder = plan::make_builder(design.topology, request);
    if (!builder) return fail(builder.error());
    design.shape = std::make_shared<PlanShape>((*builder)->shape());
    design.program = std::make_shared<Program>((*builder)->program(rank));
  }
  design.terms = {
      {"job token", config.job_token},
      {"builder version", std::to_string(plan::kBuilderVersion)},
      {"number of ranks", std::to_string(size)},
      {"topology", design.topology.spec},
      {"algorithm", request.algorithm},
      {"pattern", pattern.empty() ? "default" : pattern},
      {"rings", std::to_string(config.num_rings)},
      {"leaders", std::to_string(config.num_leaders)},
      {"transport", config.transport},
      {"credits", std::to_string(config.credits)},
      {"segment bytes", std::to_string(config.segment_bytes)},
      {"staging bytes", std::to_string(config.staging_bytes)},
      {"queue pairs per connection", std::to_string(config.rdma.pairs_per_connection)},
      {"rdma_cm", config.rdma.cm ? "on" : "off"},
  };
  return design;
}

Result<Design> design_or_status(const CommunicatorOptions& options, const Config& config, Rank rank,
                                Rank size) {
  try {
    return make_design(options, config, rank, size);
  } catch (const Error& error) {
    return fail(error.status());
  } catch (const std::bad_alloc&) {
    return fail(Code::kOutOfMemory, "out of memory while planning");
  }
}

/// Reads the announcements of all ranks and finds the first thing that is wrong with them as a whole: the
/// same on every rank, because all read the same.
Result<std::vector<ProcessInfo>> compare(const std::vector<Blob>& blobs, std::uint64_t& id) {
  std::vector<Terms> versions, terms;
  std::vector<Status> statuses;
  std::vector<ProcessInfo> processes;
  for (const Blob& blob : blobs)
    versions.push_back({{"wire version", std::to_string(ByteReader(blob).get<std::uint32_t>())}});
  // Before anything else: what follows it may look different in another version.
  if (Status status = compare_terms(versions); !status.ok()) return fail(status);
  for (std::size_t r = 0; r < blobs.size(); ++r) {
    ByteReader reader(blobs[r]);
    (void)reader.get<std::uint32_t>();
    statuses.push_back(reader.get_status());
    processes.push_back(get_process(reader));
    const auto proposed = reader.get<std::uint64_t>();
    if (r == 0) id = proposed;
    terms.push_back(get_terms(reader));
    if (!reader.ok())
      return fail(Code::kMismatch, fmt::format("rank {} sent an announcement that cannot be read", r));
  }
  if (Status status = first_failure(statuses); !status.ok()) return fail(status);
  if (Status status = compare_terms(terms); !status.ok()) return fail(status);
  return processes;
}

Status check_reach(const std::string& choice, const std::vector<ProcessInfo>& processes) {
  std::map<ProcessUid, std::size_t> ranks;
  for (std::size_t a = 0; a < processes.size(); ++a) {
    if (const auto [other, is_new] = ranks.emplace(processes[a].uid, a); !is_new)
      return Status::error(Code::kUnsupported,
                           fmt::format("ranks {} and {} are one process ({}); start a process for each rank",
                                       other->second, a, to_string(processes[a])),
                           Scope::kCommunicator);
  }
  // Processes of one host with as many ports are alike: one of each kind speaks for all.
  std::map<std::pair<std::string_view, std::uint32_t>, std::size_t> kinds;
  for (std::size_t a = 0; a < processes.size(); ++a) {
    kinds.emplace(std::pair(std::string_view(processes[a].host_key), processes[a].rdma_rails), a);
    for (const auto& [kind, b] : kinds) {
      if (transport_between(choice, processes[b], processes[a]) != nullptr) continue;
      return Status::error(Code::kUnsupported,
                           fmt::format("no transport reaches from rank {} ({}) to rank {} ({}): {}", b,
                                       to_string(processes[b]), a, to_string(processes[a]),
                                       obstacles_between(choice, processes[b], processes[a])),
                           Scope::kCommunicator);
    }
  }
  return Status::success();
}

std::size_t bytes_of(std::uint64_t count, DataType type) {
  return static_cast<std::size_t>(count) * size_of(type);
}

Status check_arguments(const void* in, const void* out, std::uint64_t count, DataType type, ReduceOp op) {
  const auto wrong = [](std::string message) {
    return Status::error(Code::kInvalidArgument, "allreduce: " + std::move(message));
  };
  const auto type_value = static_cast<std::int32_t>(type);
  const auto op_value = static_cast<std::int32_t>(op);
  if (type_value < 0 || type_value >= kNumDataTypes)
    return wrong(fmt::format("type {} is none; types are 0 to {}", type_value, kNumDataTypes - 1));
  if (op_value < 0 || op_value >= kNumReduceOps)
    return wrong(fmt::format("op {} is none; ops are 0 to {}", op_value, kNumReduceOps - 1));
  constexpr auto kMostBytes = static_cast<std::uint64_t>(PTRDIFF_MAX);
  if (count > kMostBytes / size_of(type))
    return wrong(fmt::format("count {} of {} is more than memory can hold", count, to_string(type)));
  if (count == 0) return Status::success();
  if (in == nullptr || out == nullptr)
    return wrong(
        fmt::format("the {} buffer is null but count is {}", in == nullptr ? "input" : "output", count));
  if (in != out) {
    const auto a = reinterpret_cast<std::uintptr_t>(in), b = reinterpret_cast<std::uintptr_t>(out);
    const std::size_t bytes = bytes_of(count, type);
    if ((a < b ? b - a : a - b) < bytes)
      return wrong(
          fmt::format("input and output overlap by {} of {} bytes; pass one buffer twice or two apart",
                      bytes - (a < b ? b - a : a - b), bytes));
  }
  return Status::success();
}

/// A communicator of one rank: nobody to reduce with.
class LoneCommunicator final : public Communicator {
 public:
  [[nodiscard]] Rank rank() const override { return 0; }
  [[nodiscard]] Rank size() const override { return 1; }
  [[nodiscard]] const std::string& describe() const override { return description_; }
  Status allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) override {
    if (Status status = check_not_forked(); !status.ok()) return status;
    if (Status status = check_arguments(in, out, count, type, op); !status.ok()) return status;
    if (in != out && count > 0) std::memcpy(out, in, bytes_of(count, type));
    return Status::success();
  }
  void note_declined(const char* /*what*/) override {}
  [[nodiscard]] Status failure() const override { return Status::success(); }

 private:
  std::string description_ = "one rank: a copy";
};

class TeamCommunicator final : public Communicator {
 public:
  TeamCommunicator(std::shared_ptr<Watchkeeper> watch, Rank rank, Rank size, ThreadMode mode)
      : watch_(std::move(watch)), rank_(rank), size_(size), mode_(mode) {}

  ~TeamCommunicator() override {
    if (in_forked_child()) {
      // Everything here belongs to the parent: closing it would reach the peers.
      (void)team_.release();
      new std::shared_ptr<ProcessEngine>(std::move(engine_));
      return;
    }
    watch_->leave();
  }

  [[nodiscard]] Rank rank() const override { return rank_; }
  [[nodiscard]] Rank size() const override { return size_; }
  [[nodiscard]] const std::string& describe() const override { return description_; }
  [[nodiscard]] Status failure() const override { return watch_->failure(); }
  void note_declined(const char* what) override {
    if (!in_forked_child()) watch_->record().decline(what);
  }
  Status allreduce(const void* in, void* out, std::uint64_t count, DataType type, ReduceOp op) override;

  Status set_up(Bootstrap& bootstrap, const Config& config, const Design& design,
                const std::vector<ProcessInfo>& processes, std::uint64_t id,
                const CommunicatorOptions& options);

 private:
  Status make_team(const Config& config, const Design& design, const std::vector<ProcessInfo>& processes,
                   std::uint64_t id, const CommunicatorOptions& options);
  Result<std::vector<transport::Transport*>> rails_of(const TransportEntry& entry, const Config& config,
                                                      const Topology& topology,
                                                      const std::vector<ProcessInfo>& processes);
  struct Waiter;
  Status wait(exec::Operation& operation);

  std::shared_ptr<Watchkeeper> watch_;
  std::shared_ptr<ProcessEngine> engine_;
  std::unique_ptr<exec::Team> team_;
  std::string description_;
  std::function<void()> progress_;
  std::int64_t timeout_ns_ = INT64_MAX;
  Rank rank_, size_;
  ThreadMode mode_;
  std::atomic<bool> in_call_{false};
};

/// A transport for each rail of the topology. A rail is the same port number at both of its ends, so all
/// ranks count ports up to the number that every one of them has.
Result<std::vector<transport::Transport*>> TeamCommunicator::rails_of(
    const TransportEntry& entry, const Config& config, const Topology& topology,
    const std::vector<ProcessInfo>& processes) {
  auto made = transports_of(*engine_, entry.name, config);
  if (!made) return made;
  std::size_t count = made->size();
  for (const ProcessInfo& process : processes) {
    if (const std::size_t rails = entry.rails(process); rails > 0) count = std::min(count, rails);
  }
  std::vector<transport::Transport*> rails;
  const auto wanted = static_cast<std::size_t>(std::max<Rail>(1, topology.num_rails));
  for (std::size_t rail = 0; rail < wanted; ++rail) rails.push_back((*made)[rail % count]);
  for (std::size_t level = 0; level < topology.levels.size(); ++level) {
    for (const Rail rail : topology.levels[level].rails) {
      const transport::Limits& port = rails[static_cast<std::size_t>(rail) % rails.size()]->query();
      if (port.description.empty()) continue;
      log::info(Subsystem::kTransport, "level {}, rail {}: {}{}", level, rail, port.description,
                wanted > count
                    ? fmt::format("; {} rails share {} port{}", wanted, count, count == 1 ? "" : "s")
                    : "");
    }
  }
  return rails;
}

Status TeamCommunicator::make_team(const Config& config, const Design& design,
                                   const std::vector<ProcessInfo>& processes, std::uint64_t id,
                                   const CommunicatorOptions& options) {
  const ProcessInfo& self = processes[static_cast<std::size_t>(rank_)];
  const auto local_ranks = std::count_if(processes.begin(), processes.end(),
                                         [&](const ProcessInfo& p) { return p.host_key == self.host_key; });
  auto engine = process_engine({.clock = options.clock,
                                .local_ranks = static_cast<int>(local_ranks),
                                .rank = rank_,
                                .size = size_,
                                .trace_dir = config.trace_dir});
  if (!engine) return engine.error();
  engine_ = std::move(*engine);

  exec::Team::Config team;
  team.id = id;
  team.rank = rank_;
  team.size = size_;
  team.shapes = {design.shape};
  team.programs = {design.program};
  team.credits = config.credits;
  team.max_segment_bytes = config.segment_bytes;
  team.max_staging_bytes = config.staging_bytes;
  team.on_error = [watch = watch_.get()](const Status& status) { watch->found(status); };
  team.routes.resize(processes.size());
  std::map<std::string_view, std::vector<transport::Transport*>> used;
  for (std::size_t r = 0; r < processes.size(); ++r) {
    if (static_cast<Rank>(r) == rank_) continue;
    const TransportEntry* entry = transport_between(config.transport, self, processes[r]);
    if (!used.contains(entry->name)) {
      auto rails = rails_of(*entry, config, design.topology, processes);
      if (!rails) return rails.error();
      used.emplace(entry->name, *std::move(rails));
    }
    team.routes[r].peer = engine_->engine.peer_for(processes[r].uid.high, processes[r].uid.low);
    team.routes[r].by_rail = used[entry->name];
  }
  auto made = exec::Team::create(engine_->engine, std::move(team));
  if (!made) return made.error();
  team_ = std::move(*made);

  std::set<std::string_view> hosts;
  for (const ProcessInfo& process : processes) hosts.insert(process.host_key);
  const auto num_servers = static_cast<std::size_t>(design.topology.num_servers());
  std::vector<std::string_view> names;
  for (const auto& [name, rails] : used) names.push_back(name);
  description_ =
      fmt::format("{} on {}; {}; {}", design.shape->description, design.topology.name, fmt::join(names, ", "),
                  num_servers > hosts.size() ? fmt::format("emulated: {} servers on {} host{}", num_servers,
                                                           hosts.size(), hosts.size() == 1 ? "" : "s")
                                             : "not emulated");
  return Status::success();
}

Status TeamCommunicator::set_up(Bootstrap& bootstrap, const Config& config, const Design& design,
                                const std::vector<ProcessInfo>& processes, std::uint64_t id,
                                const CommunicatorOptions& options) {
  progress_ = options.progress ? options.progress : bootstrap.progress();
  if (config.timeout_ns) timeout_ns_ = *config.timeout_ns;

  // Each phase ends with an exchange that carries its outcome, so that no rank goes on alone.
  const auto exchange = [&](const Status& mine, const Blob& blob) -> Result<std::vector<Blob>> {
    ByteWriter writer;
    writer.put_status(mine);
    writer.put_bytes(blob);
    auto all = bootstrap.allgather(writer.blob());
    if (!all) return all;
    std::vector<Status> statuses;
    for (Blob& one : *all) {
      ByteReader reader(one);
      statuses.push_back(reader.get_status());
      const auto bytes = reader.get_bytes();
      Blob content(bytes.begin(), bytes.end());
      one = std::move(content);
    }
    if (Status status = first_failure(statuses); !status.ok()) return fail(std::move(status));
    return all;
  };

  // Phase 1: team, and an address for the control plane.
  Status status = make_team(config, design, processes, id, options);
  ByteWriter offer;
  std::vector<ProcessInfo> members = processes;
  auto control = process_control(config.job_token, config.dead_after_ns);
  if (status.ok() && !control) status = control.error();
  if (status.ok()) {
    const bool one_host = std::all_of(processes.begin(), processes.end(), [&](const ProcessInfo& process) {
      return process.host_key == processes.front().host_key;
    });
    auto address = (*control)->listen(one_host ? Control::Reach::kHost : Control::Reach::kNetwork);
    if (address) {
      put_control_address(offer, *address);
      offer.put_bytes(team_->offer());
    } else {
      status = address.error();
    }
  }
  auto offers = exchange(status, offer.blob());
  if (!offers) return offers.error();
  std::vector<Blob> team_offers;
  for (std::size_t r = 0; r < offers->size(); ++r) {
    ByteReader reader((*offers)[r]);
    members[r].control = get_control_address(reader);
    const auto bytes = reader.get_bytes();
    team_offers.emplace_back(bytes.begin(), bytes.end());
  }

  // Phase 2: from here on the control plane watches, and staging is laid out.
  watch_->start(**control, *team_, id, rank_, std::move(members));
  auto address = team_->allocate(team_offers);
  auto addresses = exchange(address ? Status::success() : address.error(), address ? *address : Blob());
  if (!addresses) return addresses.error();

  if (team_->departure_bytes() > 0)
    log::info(Subsystem::kTransport,
              "registered staging: {} KiB for arrivals, {} KiB for departures, segments of {} KiB",
              team_->staging_bytes() / 1024, team_->departure_bytes() / 1024, team_->segment_bytes() / 1024);

  // Phase 3: endpoints.
  status = team_->connect(*addresses);
  if (status.ok()) status = watch_->failure();
  return agree(bootstrap, status);
}

/// What a blocking call does while it waits.
struct TeamCommunicator::Waiter {
  TeamCommunicator& communicator;
  const exec::Operation& operation;
  Patience patience;
  std::int64_t next_look_ns = kLookEveryNs;

  void tick(std::int64_t waited_ns) {
    if (communicator.progress_) communicator.progress_();
    // The caller's runtime wants to move more often than we need to look.
    if (waited_ns < next_look_ns) return;
    next_look_ns = waited_ns + kLookEveryNs;
    Watchkeeper& watch = *communicator.watch_;
    const std::vector<Rank> lacking = operation.waiting_for();
    watch.waiting(lacking, operation.waiting_text());
    const Patience::Actions actions = patience.at(waited_ns);
    if (actions.ask) watch.ask(lacking);
    if (actions.ask_all) watch.ask_all();
    if (actions.warn)
      log::warn(Subsystem::kComm, "{} has waited {} s: {}", to_string(watch.record().last()),
                waited_ns / 1'000'000'000, watch.missing());
  }
};

Status TeamCommunicator::wait(exec::Operation& operation) {
  Waiter waiter{*this, operation, {}};
  exec::WaitOptions options;
  options.tick_ns = progress_ ? kProgressEveryNs : kLookEveryNs;
  // One pointer: the function then needs no memory of its own.
  options.on_tick = [&waiter](std::int64_t waited_ns) { waiter.tick(waited_ns); };
  if (timeout_ns_ != INT64_MAX) options.deadline_ns = engine_->engine.clock().now_ns() + timeout_ns_;
  Status status = engine_->engine.wait(operation, options);
  if (operation.done()) return operation.status();

  // The user's deadline. Who is missing is worth a short moment more; it may even save the call.
  watch_->ask_all();
  options.deadline_ns = engine_->engine.clock().now_ns() + kAnswersNs;
  (void)engine_->engine.wait(operation, options);
  if (operation.done()) return operation.status();

  // The buffers belong to the operation until it has ended, and it ends for all ranks.
  status.scope = Scope::kCommunicator;
  status.message = fmt::format("rank {} gave up {} after {:g} s (HIPS_TIMEOUT): {}", rank_,
                               to_string(watch_->record().last()), static_cast<double>(timeout_ns_) / 1e9,
                               watch_->missing());
  watch_->found(status);
  options.deadline_ns = INT64_MAX;
  (void)engine_->engine.wait(operation, options);
  return operation.status();
}

Status TeamCommunicator::allreduce(const void* in, void* out, std::uint64_t count, DataType type,
                                   ReduceOp op) {
  if (Status status = check_not_forked(); !status.ok()) return status;
  if (Status status = check_arguments(in, out, count, type, op); !status.ok()) return status;
  // Finds most misuse at the price of two plain stores; who needs certainty asks a thread sanitizer.
  if (mode_ == ThreadMode::kMultiple && in_call_.load(std::memory_order_relaxed))
    return Status::error(
        Code::kInvalidArgument,
        "allreduce: another thread is in a call on this communicator; use one communicator for each "
        "thread");
  in_call_.store(true, std::memory_order_relaxed);
  Status status;
  if (watch_->failed()) {
    status = watch_->failure();
  } else {
    watch_->record().begin(count, type, op);
    // A count of 0 ends at once, but it is a call like others: a peer that passed another count must not pair
    // its messages with those of our next call.
    const auto operation = team_->start({.in = static_cast<const std::byte*>(in),
                                         .out = static_cast<std::byte*>(out),
                                         .count = count,
                                         .type = type,
                                         .op = op});
    status = wait(*operation);
    if (!status.ok() && watch_->failed()) status = watch_->failure();
    watch_->record().end();
  }
  in_call_.store(false, std::memory_order_relaxed);
  return status;
}

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
  if (mine.status.ok()) mine.status = describe_rdma(loaded.config, mine.process);
  mine.id = ProcessUid::random().low;
  Design design;
  if (mine.status.ok()) {
    auto made = design_or_status(options, loaded.config, rank, size);
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

  auto communicator =
      std::make_unique<TeamCommunicator>(std::make_shared<Watchkeeper>(), rank, size, options.thread_mode);
  if (Status status = communicator->set_up(bootstrap, loaded.config, design, *processes, id, options);
      !status.ok())
    return fail(std::move(status));
  log::info(Subsystem::kComm, "{}: {} ranks, {}", options.name, size, communicator->describe());
  return communicator;
}

}  // namespace hips::comm

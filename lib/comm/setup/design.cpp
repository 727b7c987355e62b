#include "lib/comm/setup/design.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lib/comm/setup/rank_order.hpp"
#include "lib/comm/setup/spare_communicators.hpp"
#include "lib/comm/setup/transport_registry.hpp"
#include "lib/cost/select_table.hpp"
#include "lib/plan/builder.hpp"
#include "lib/plan/finished_builder.hpp"
#include "lib/plan/formats/plan_file.hpp"

namespace hips::comm {
namespace {

/// What ranks compare of a secret, and errors and logs show.
std::string secret_text(const std::string& secret) {
  return secret.empty() ? std::string() : fmt::format("{:016x}", digest_of({}, {{"secret", secret}}));
}

/// The topology of `spec` for `size` ranks, with several ranks per server if `size` is a multiple of the servers.
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

Design::Choice choice_of(std::shared_ptr<const PlanBuilder> builder, Rank rank, std::uint64_t up_to_bytes) {
  return {.shape = std::make_shared<PlanShape>(builder->shape()),
          .program = [builder, rank] { return builder->program(rank); },
          .up_to_bytes = up_to_bytes,
          .builder = builder};
}

/// The plans of a selection table for this topology.
Result<std::vector<Design::Choice>> choices_of(const Topology& topology,
                                               const std::vector<cost::ChosenPlan>& plans, Rank rank) {
  std::vector<Design::Choice> choices;
  for (const cost::ChosenPlan& plan : plans) {
    if (plan.algorithm == cost::ChosenPlan::kAuto) {
      choices.push_back({.up_to_bytes = plan.up_to_bytes, .automatic = true});
      continue;
    }
    PlanRequest request{.algorithm = plan.algorithm};
    if (!plan.pattern.empty()) {
      auto patterns = plan::parse_patterns(plan.pattern);
      if (!patterns) return fail(patterns.error());
      request.patterns = std::move(*patterns);
    }
    auto builder = plan::make_builder(topology, request);
    if (!builder) return fail(builder.error());
    choices.push_back(choice_of(*std::move(builder), rank, plan.up_to_bytes));
  }
  return choices;
}

/// The error with the variable that caused it in front.
Status with_origin(std::string_view variable, Status status) {
  if (!variable.empty()) status.message = fmt::format("{}: {}", variable, status.message);
  return status;
}

/// The plan of HIPS_PLAN_FILE, not checked yet.
Result<std::optional<plan::StoredPlan>> stored_plan(const Config& config, Rank size, bool others_named) {
  if (!config.plan_file) return std::optional<plan::StoredPlan>();
  if (others_named || config.reproducible == Reproducible::kAny) {
    return fail(Code::kInvalidArgument,
                fmt::format("HIPS_PLAN_FILE={} names the plan: leave out {}", *config.plan_file,
                            others_named ? "the algorithm, patterns, rings and leaders"
                                         : "HIPS_REPRODUCIBLE=any, which uses its own plan"));
  }
  auto stored = plan::read_plan_file(*config.plan_file);
  if (!stored) return fail(with_origin("HIPS_PLAN_FILE", stored.error()));
  // A single rank needs no plan, but a wrong file is an error there, too.
  if (size == 1) return std::optional<plan::StoredPlan>();
  if (stored->plan.shape.num_ranks != size) {
    // Unsupported, not invalid: a program may have communicators of other sizes, which use another backend.
    return fail(Code::kUnsupported, fmt::format("{} is a plan for {} ranks, and the communicator has {}",
                                                stored->name, stored->plan.shape.num_ranks, size));
  }
  return std::optional(std::move(*stored));
}

/// The configuration of a part: without settings that describe all ranks of the parent.
Config config_of_part(Config config) {
  config.topology.reset();
  config.plan_file.reset();
  if (config.pattern && config.pattern->find(',') != std::string::npos) config.pattern.reset();
  return config;
}

/// Who chose: HiPS looks at the wiring where no topology is named, so all ranks do or none.
const char* plan_term(bool plan_named, bool topology_named) {
  if (plan_named) return topology_named ? "named, and the topology, too" : "named";
  return topology_named ? "chosen for the topology" : "left to HiPS";
}

/// make_design(), except that it lets the Error of a topology parser through.
Result<Design> design_or_throw(const CommunicatorOptions& options, const Config& config, Rank rank,
                               Rank size) {
  const auto chosen = [](const auto& option, const auto& variable, std::string otherwise) {
    return option ? *option : variable ? *variable : std::move(otherwise);
  };
  if (Status status = check_transport_choice(config.transport); !status.ok()) return fail(status);
  Design design;
  design.topology_named = options.topology || config.topology;
  const std::string pattern = chosen(options.pattern, config.pattern, "");
  const bool plan_named = options.algorithm || config.algorithm || !pattern.empty() || config.num_rings > 0 ||
                          config.num_leaders > 0;
  auto stored = stored_plan(config, size, plan_named);
  if (!stored) return fail(stored.error());
  if (design.topology_named || size > 1) {
    const bool stored_with_topology = *stored && !(*stored)->topology.empty();
    auto topology =
        fit_topology(chosen(options.topology, config.topology,
                            stored_with_topology ? (*stored)->topology : fmt::format("switch:{}", size)),
                     size);
    if (!topology) return fail(topology.error());
    design.topology = std::move(*topology);
  }

  PlanRequest request;
  request.algorithm = chosen(options.algorithm, config.algorithm, "hips");
  if (!pattern.empty()) {
    auto patterns = plan::parse_patterns(pattern);
    if (!patterns) return fail(with_origin(options.pattern ? "" : "HIPS_PATTERN", patterns.error()));
    request.patterns = std::move(*patterns);
  }
  request.num_rings = config.num_rings;
  request.num_leaders = config.num_leaders;
  design.named = design.topology_named || plan_named || *stored;
  const bool by_rank = config.reproducible == Reproducible::kAny;
  if (by_rank && plan_named)
    return fail(
        Code::kInvalidArgument,
        "HIPS_REPRODUCIBLE=any uses its own plan, which reduces in rank order: leave out the algorithm, "
        "patterns, rings and leaders, or set HIPS_REPRODUCIBLE=run");
  const std::string_view variable = !options.algorithm && config.algorithm ? "HIPS_ALGORITHM"
                                    : !options.pattern && config.pattern   ? "HIPS_PATTERN"
                                                                           : "";
  std::string selection = "by the model", for_recognised = "none";
  if (*stored) {
    Plan& plan = (*stored)->plan;
    plan::set_rails(design.topology, plan);
    if (Status status = plan::prove_stored((*stored)->name, plan, design.topology); !status.ok())
      return fail(std::move(status));
    design.choices.push_back(
        choice_of(std::make_shared<plan::FinishedBuilder>(std::move(plan)), rank, UINT64_MAX));
    design.choices.back().stored = true;
  } else if (size > 1 && by_rank) {
    auto order = make_rank_order(design.topology);
    if (!order) return fail(order.error());
    design.choices.push_back(choice_of(std::move(order->builder), rank, UINT64_MAX));
    design.cost_comparison = std::move(order->cost_comparison);
  } else if (size > 1 && !plan_named && config.select_table) {
    auto table = cost::SelectTable::read(*config.select_table);
    if (!table) return fail(table.error());
    if (!design.topology_named)
      for_recognised = fmt::format("{:016x}", digest_of({}, {{"table", table->text()}}));
    if (const auto* plans = table->find(design.topology.spec)) {
      auto choices = choices_of(design.topology, *plans, rank);
      if (!choices) return fail(choices.error());
      design.choices = std::move(*choices);
      selection = cost::to_string(*plans);
    }
  } else if (size > 1 && plan_named) {
    auto builder = plan::make_builder(design.topology, request);
    if (!builder) return fail(with_origin(variable, builder.error()));
    design.choices.push_back(choice_of(*std::move(builder), rank, UINT64_MAX));
  } else if (plan_named) {
    // A single rank needs no plan, but an unknown algorithm is an error there, too.
    const auto builder = plan::make_builder(parse_topology("switch:2"), {.algorithm = request.algorithm});
    if (!builder && builder.error().code == Code::kInvalidArgument)
      return fail(with_origin(variable, builder.error()));
  }
  design.terms = {
      {"job token", secret_text(config.job_token)},
      {"builder version", std::to_string(plan::kBuilderVersion)},
      {"number of ranks", std::to_string(size)},
      {"topology", design.topology.spec},
      {"algorithm", request.algorithm},
      {"pattern", pattern.empty() ? "default" : pattern},
      {"rings", std::to_string(config.num_rings)},
      {"leaders", std::to_string(config.num_leaders)},
      {"selection (HIPS_SELECT_TABLE)", selection},
      {"table for a topology that is recognised (HIPS_SELECT_TABLE)", for_recognised},
      {"plan (HIPS_PLAN_FILE)", *stored ? (*stored)->digest : "none"},
      {"reproducibility", to_string(config.reproducible)},
      {"transport", config.transport},
      {"credits", config.credits ? std::to_string(*config.credits) : "by transport"},
      {"segment bytes", config.segment_bytes ? std::to_string(*config.segment_bytes) : "by transport"},
      {"staging bytes", std::to_string(config.staging_bytes)},
      {"queue pairs per connection", std::to_string(config.rdma.pairs_per_connection)},
      {"rdma_cm", config.rdma.cm ? "on" : "off"},
      {"plan", plan_term(plan_named, design.topology_named)},
  };
  return design;
}

}  // namespace

void put_constants(ByteWriter& writer, const cost::Constants& constants) {
  for (const double one : {constants.hop_seconds, constants.message_seconds, constants.bytes_per_s})
    writer.put(one);
  writer.put(constants.num_nodes);
  writer.put_text(constants.spec);
  writer.put(static_cast<std::uint32_t>(constants.tried.size()));
  for (const cost::TriedTimes& one : constants.tried) {
    writer.put(one.small_seconds);
    writer.put(one.middle_seconds);
  }
}

cost::Constants get_constants(ByteReader& reader) {
  cost::Constants constants;
  for (double* one : {&constants.hop_seconds, &constants.message_seconds, &constants.bytes_per_s})
    *one = reader.get<double>();
  constants.num_nodes = reader.get<std::uint32_t>();
  constants.spec = reader.get_text();
  const auto count = reader.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    const auto small = reader.get<double>();
    constants.tried.push_back({small, reader.get<double>()});
  }
  return constants;
}

Blob encode(const Announcement& announcement) {
  ByteWriter writer;
  writer.put(announcement.version);
  writer.put_status(announcement.status);
  put_process(writer, announcement.process);
  writer.put(announcement.id);
  put_constants(writer, announcement.network.value_or(cost::Constants()));
  put_spares(writer, announcement.spares);
  put_terms(writer, announcement.terms);
  return writer.take();
}

Result<Design> make_design(const CommunicatorOptions& options, const Config& config, Rank rank, Rank size) {
  try {
    return design_or_throw(options, options.is_part ? config_of_part(config) : config, rank, size);
  } catch (const Error& error) {
    return fail(error.status());
  } catch (const std::bad_alloc&) {
    return fail(Code::kOutOfMemory, "out of memory while planning");
  }
}

Design with_wiring(Design design, const CommunicatorOptions& options, const Config& config, Rank rank,
                   const std::vector<ProcessInfo>& processes) {
  if (design.topology_named || config.plan_file) return design;
  auto wiring = wiring_of(config.transport, processes);
  if (!wiring) return design;
  CommunicatorOptions recognised = options;
  recognised.topology = wiring->topology.spec;
  auto made = make_design(recognised, config, rank, static_cast<Rank>(processes.size()));
  if (!made) {
    // On this rank alone.
    if (made.error().code == Code::kOutOfMemory || made.error().code == Code::kSystem)
      throw Error(made.error());
    // Patterns or an algorithm of the user may be for another topology.
    return design;
  }
  made->topology.relay_off = wiring->topology.relay_off;
  made->topology_named = false;
  made->named = design.named;
  made->terms = std::move(design.terms);
  made->network = design.network;
  made->wiring = std::move(wiring);
  return *std::move(made);
}

Result<std::vector<Design::Choice>> choose_plans(const Design& design, Rank rank, cost::Medium medium) {
  const auto& named = design.choices;
  if (!named.empty() && std::ranges::none_of(named, &Design::Choice::automatic)) return named;
  auto selection = design.network ? cost::select(design.topology, medium, *design.network)
                                  : cost::select(design.topology, medium);
  if (!selection) return fail(selection.error());
  std::vector<std::shared_ptr<const PlanBuilder>> builders;
  for (auto& candidate : selection->candidates) builders.push_back(std::move(candidate.builder));
  std::vector<Design::Choice> automatic;
  for (const auto& choice : selection->choices) {
    automatic.push_back(choice_of(builders[choice.candidate], rank, choice.up_to_bytes));
    automatic.back().automatic = true;
  }
  if (named.empty()) return automatic;
  std::vector<Design::Choice> choices;
  for (const Design::Choice& choice : named) {
    if (!choice.automatic) {
      choices.push_back(choice);
      continue;
    }
    const std::uint64_t above = choices.empty() ? 0 : choices.back().up_to_bytes;
    for (const Design::Choice& part : automatic) {
      if (part.up_to_bytes <= above) continue;
      choices.push_back(part);
      choices.back().up_to_bytes = std::min(part.up_to_bytes, choice.up_to_bytes);
      if (part.up_to_bytes >= choice.up_to_bytes) break;
    }
  }
  return choices;
}

Result<Agreed> compare(const std::vector<Blob>& blobs) {
  std::vector<Terms> versions, terms;
  std::vector<Status> statuses;
  std::vector<std::vector<SpareNote>> spares;
  Agreed agreed;
  for (const Blob& blob : blobs)
    versions.push_back({{"wire version", std::to_string(ByteReader(blob).get<std::uint32_t>())}});
  // Compare the versions first, because the rest may have a different format in another version.
  if (Status status = compare_terms(versions); !status.ok()) return fail(status);
  for (std::size_t r = 0; r < blobs.size(); ++r) {
    ByteReader reader(blobs[r]);
    (void)reader.get<std::uint32_t>();
    statuses.push_back(reader.get_status());
    agreed.processes.push_back(get_process(reader));
    const auto proposed = reader.get<std::uint64_t>();
    if (r == 0) agreed.id = proposed;
    auto network = get_constants(reader);
    if (network.num_nodes > (agreed.network ? agreed.network->num_nodes : 0))
      agreed.network = std::move(network);
    spares.push_back(get_spares(reader));
    terms.push_back(get_terms(reader));
    if (!reader.ok()) return fail(Code::kMismatch, fmt::format("rank {} sent an invalid announcement", r));
  }
  if (Status status = first_failure(statuses); !status.ok()) return fail(status);
  if (Status status = compare_terms(terms); !status.ok()) return fail(status);
  agreed.digest = digest_of(agreed.processes, terms.front());
  agreed.spare = common_spare(spares, agreed.digest);
  return agreed;
}

}  // namespace hips::comm

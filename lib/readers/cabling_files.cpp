#include "lib/readers/cabling_files.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/readers/job_reading.hpp"
#include "topology/cabling/containerlab.hpp"
#include "topology/cabling/dot.hpp"
#include "topology/cabling/ibnetdiscover.hpp"
#include "topology/cabling/lldp.hpp"
#include "topology/cabling/ns3_edges.hpp"
#include "topology/cabling/simgrid/simgrid.hpp"
#include "topology/clusters/slurm.hpp"
#include "topology/formats/yaml_tree.hpp"
#include "topology/wiring/kinds.hpp"
#include "topology/wiring/recognise.hpp"

namespace hips::topology {
namespace {

constexpr const char* kKnown =
    "what ibnetdiscover or lldpctl prints, a table of cables, Graphviz's DOT, a topology of containerlab, an edge list of ns-3 or a "
    "platform of SimGrid";

Result<Cabling> read_one_lldp(std::string_view name, std::string_view text) {
  const LldpText one{std::string(name), std::string(text)};
  return read_lldp({&one, 1});
}

Result<Cabling> read_known_list(std::string_view name, std::string_view text) {
  return read_cabling_list(name, text);
}

// Those that begin in a way of their own come first.
constexpr CablingFormat kFormats[] = {
    {"ibnetdiscover", is_ibnetdiscover, read_ibnetdiscover},
    {"lldp", is_lldp, read_one_lldp},
    {"containerlab", is_containerlab, read_containerlab},
    {"dot", is_dot, read_dot},
    {"ns3", is_ns3_edges, read_ns3_edges},
    {"simgrid", is_simgrid, read_simgrid},
    {"table", is_cabling_list, read_known_list},
};

/// The one that is asked for, or recognises the text.
const CablingFormat* format_of(std::string_view text, const CablingOptions& options) {
  const auto* const found = std::ranges::find_if(kFormats, [&](const CablingFormat& format) {
    return options.format.empty() ? format.recognises(text) : format.name == options.format;
  });
  return found == std::end(kFormats) ? nullptr : found;
}

/// The format of a text that is no table; empty if it may be one.
std::string_view other_format_of(std::string_view text) {
  if (is_slurm(text)) return "slurm";
  if (text.find("hips-topology:") != std::string_view::npos) return "hips";
  const CablingFormat* const format = format_of(text, {});
  return format == nullptr || format->name == "table" ? "" : format->name;
}

}  // namespace

std::span<const CablingFormat> cabling_formats() {
  return kFormats;
}

Result<TopologyFile> file_of_cables(std::string_view name, Result<Cabling> cabling,
                                    const CablingOptions& options) {
  if (!cabling) return fail(cabling.error());
  const NameSelection& selection = options.selection;
  if (!selection.hosts.empty() || !selection.exclude.empty() || !selection.switches.empty()) {
    cabling = select_nodes(*std::move(cabling), selection);
    if (!cabling) return fail(cabling.error());
  }
  cabling->tier_rates = options.tier_rates;
  if (job_of_reading().empty()) {
    auto cluster = topology_of(name, *std::move(cabling));
    if (!cluster) return fail(cluster.error());
    return file_of(*std::move(cluster));
  }
  std::vector<std::string> names;
  for (const CabledNode& node : cabling->nodes) names.push_back(node.name);
  if (auto known = check_job(name, names, kNotInFile); !known) return fail(known.error());
  auto cluster = topology_of(name, *cabling);
  if (!cluster) {
    decide_kinds(name, *cabling);
    std::string_view read = "the hosts of the job only";
    auto of_job = topology_of(name, select_job(*cabling, job_of_reading()));
    if (!of_job) {
      // Others may have to relay for the job.
      read = "what cables join with the hosts of the job";
      of_job = topology_of(name, select_network(*std::move(cabling), job_of_reading()));
    }
    if (!of_job) return fail(cluster.error());
    cluster = told_for_job(*std::move(of_job), cluster.error(), read);
  }
  if (auto joined = check_job(name, cluster->nodes, "is no server with a cable there; list its cables");
      !joined)
    return fail(joined.error());
  return file_of(*std::move(cluster));
}

Result<TopologyFile> read_cabling(std::string_view name, std::string_view text,
                                  const CablingOptions& options) {
  if (options.columns) {
    const std::string_view other = options.format.empty() ? other_format_of(text) : "";
    if (!other.empty())
      return fail(Code::kInvalidArgument,
                  fmt::format("--columns is for tables, and {} is of the format {}; leave --columns out",
                              name, other));
    return file_of_cables(name, read_cabling_list(name, text, options.columns), options);
  }
  const CablingFormat* const format = format_of(text, options);
  if (format == nullptr)
    return fail(Code::kInvalidArgument, fmt::format("{} is no list of cables; expected {}", name, kKnown));
  return file_of_cables(name, format->read(name, text), options);
}

Result<TopologyFile> read_cabling_folder(std::string_view name, std::span<const NamedText> texts,
                                         const CablingOptions& options) {
  if (options.columns)
    return fail(
        Code::kInvalidArgument,
        fmt::format("--columns is for tables, and {} is one of {} texts of hosts; leave --columns out",
                    texts.front().name, texts.size()));
  std::vector<LldpText> hosts;
  // The usual loop over hosts leaves one of a host that did not answer.
  std::vector<std::string> empty;
  for (const NamedText& one : texts) {
    if (one.text.find_first_not_of(" \t\r\n") == std::string::npos) {
      empty.push_back(one.name);
      continue;
    }
    if (!is_lldp(one.text))
      return fail(
          Code::kInvalidArgument,
          fmt::format("{} is not what lldpctl prints; give one file, or several or a folder with what "
                      "lldpctl -f json prints, one of each host",
                      one.name));
    hosts.push_back({one.name, one.text});
  }
  if (hosts.empty() && !empty.empty())
    return fail(Code::kInvalidArgument,
                fmt::format("{}: all files are empty; check the command that wrote them", name));
  auto cabling = read_lldp(hosts);
  if (cabling && !empty.empty())
    cabling->notes.push_back(
        fmt::format("{}: the file is empty{}; ignored", empty.front(),
                    empty.size() > 1 ? fmt::format(" (and {} more)", empty.size() - 1) : ""));
  return file_of_cables(name, std::move(cabling), options);
}

Result<TopologyFile> read_cabling_path(const std::string& path, const CablingOptions& options) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    if (!options.format.empty() && options.format != "lldp")
      return fail(
          Code::kInvalidArgument,
          fmt::format("{} is a folder, and cables of the format {} are one file", path, options.format));
    const auto texts = read_text_folder(path, kMostYamlBytes);
    if (!texts) return fail(texts.error());
    return read_cabling_folder(path, *texts, options);
  }
  const auto text = read_text_file(path, kMostYamlBytes);
  if (!text) return fail(text.error());
  return read_cabling(path, *text, options);
}

}  // namespace hips::topology

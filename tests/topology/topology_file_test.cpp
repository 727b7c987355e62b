#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/base/os/unique_fd.hpp"
#include "lib/cost/estimate.hpp"
#include "lib/plan/builder.hpp"
#include "tests/choices.hpp"
#include "tests/topology/samples.hpp"
#include "tests/topology/source_files.hpp"
#include "topology/families/family.hpp"
#include "topology/formats/parse.hpp"
#include "topology/formats/told_wiring.hpp"
#include "topology/formats/topology_file.hpp"
#include "topology/formats/yaml_tree.hpp"
#include "topology/levels.hpp"

namespace hips {
namespace {

using ::testing::HasSubstr;
using topology::parse_topology_file;
using topology::topology_file_text;
using topology::TopologyFile;

Topology read_or_fail(const std::string& text) {
  auto file = parse_topology_file("t.yaml", text);
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  return file ? file->topology : Topology{};
}

/// The topology without its spec, which names the file if it is from a file.
void expect_equal(TopologyFile a, TopologyFile b, const std::string& text) {
  a.topology.spec = b.topology.spec = "";
  EXPECT_EQ(a, b) << text;
}

TEST(TopologyFileTest, AFileKeepsTheTopologyOfAnySpec) {
  for (const std::string& spec : tests::sample_specs()) {
    TopologyFile file;
    file.topology = parse_topology(spec);
    for (const bool all_cables : {false, true}) {
      const std::string text = value_or_throw(topology_file_text(file, all_cables));
      const auto back = parse_topology_file("t.yaml", text);
      ASSERT_TRUE(back) << spec << ": " << back.error().message << "\n" << text;
      EXPECT_EQ(back->topology, file.topology) << text;
    }
  }
}

/// Names of switches, of which one may be assumed and one missing, and several cables between two of them.
void add_switches(std::mt19937_64& random, TopologyFile& file) {
  if (random() % 2 == 0) return;
  const Topology& topology = file.topology;
  for (std::int64_t i = 0; i < topology.num_switches; ++i)
    file.told.switch_names.push_back(i == 3 ? "" : fmt::format("sw: {}", i));
  if (topology.num_switches > 1 && random() % 2 == 0) file.told.assumed_switches.insert(1);
  if (topology.levels.empty() || topology.levels.back().kind != LevelKind::kTree) return;
  file.told.level_cables.assign(topology::network_levels(topology).size(), 1);
  file.told.level_cables.back() = 2;
}

/// A topology that no spec describes: rates by level, slow and dead cables, names, devices.
TopologyFile random_file(std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const auto& specs = tests::sample_specs();
  TopologyFile file;
  file.topology = parse_topology(specs[below(specs.size())]);
  Topology& topology = file.topology;
  static constexpr std::array kRates = {12.5e9, 1.25e9, 3.125e9, 0.3 * 0.125e9, 2.7182818284590452e9};
  static constexpr std::array kLatencies = {1000.0, 0.0, 37.5, 1234567.0, 999.999};
  for (Level& level : topology.levels) {
    if (level.kind == LevelKind::kNode) continue;
    level.bandwidth_bytes_per_s = kRates[below(kRates.size())];
    level.latency_ns = kLatencies[below(kLatencies.size())];
  }
  topology.relay_off = topology.servers_relay && below(2) == 0;
  if (below(2) == 0) {
    for (std::int64_t s = 0; s < topology.num_servers(); ++s)
      file.server_names.push_back(fmt::format("h{}-{}", s % 7, topology.num_servers() - s));
  }
  const auto devices = [&](const char* prefix) {
    std::vector<std::string> names;
    for (Rail rail = 0; rail < topology.num_rails; ++rail) names.push_back(fmt::format("{}{}", prefix, rail));
    return names;
  };
  add_switches(random, file);
  if (below(2) == 0) file.devices = devices("mlx5_");
  if (below(2) == 0) file.other_devices[0] = devices("rxe \"#");
  // Draw cables of the graph, so that all kinds of every family occur, and keep those that differ from their
  // level.
  const Graph graph = topology.graph();
  std::set<std::size_t> chosen;
  for (std::size_t i = below(5); i > 0; --i) chosen.insert(below(graph.links.size()));
  for (const std::size_t i : chosen) {
    const GraphLink& link = graph.links[i];
    LinkOverride odd;
    if (link.a < topology.num_servers()) {
      odd.server = link.a;
      odd.rail = link.a_port;
    } else {
      odd.lower = graph.nodes[static_cast<std::size_t>(link.a)].name;
      odd.upper = graph.nodes[static_cast<std::size_t>(link.b)].name;
    }
    odd.up = below(3) != 0;
    odd.bandwidth_bytes_per_s = odd.up ? link.bandwidth_bytes_per_s / 8 : link.bandwidth_bytes_per_s;
    if (below(2) == 0 && !odd.up) {
      file.told.cables[topology::key_of(graph, link)] = {};
    } else if (below(2) == 0 && odd.up && odd.server < 0) {
      const std::vector<double> cables = {link.bandwidth_bytes_per_s / 2, 0, link.bandwidth_bytes_per_s / 4};
      odd.bandwidth_bytes_per_s = cables[0] + cables[2];
      file.told.cables[topology::key_of(graph, link)] = cables;
    }
    topology.overrides.push_back(odd);
  }
  std::ranges::sort(topology.overrides, {}, [](const LinkOverride& link) {
    return std::tuple(link.server < 0, link.server, link.rail, link.lower, link.upper);
  });
  return file;
}

TEST(TopologyFileTest, LinksHaveTheNamesOfTheFilesSwitchesOrOfTheShape) {
  const std::string text =
      "hips-topology: 1\nshape: leafspine:2,2,1\nnotes: [a, \"b: c\"]\n"
      "levels: [{rate: 100Gb}, {rate: 400Gb, cables: 4}]\nswitches: {names: [r1, r2, core], assumed: [core]}\n"
      "links: [{server: 0, nic: 0, switch: r1, rate: 1Gb}, {server: 2, nic: 0, switch: leaf 1, state: missing},\n"
      "  {switches: [core, r1], cables: [100Gb, down]}, {switches: [leaf 1, spine 0], rate: 300Gb, cables: 3}]\n";
  const auto file = parse_topology_file("t.yaml", text);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_THAT(*file->notes, ::testing::ElementsAre("a", "b: c"));
  EXPECT_THAT(file->told.switch_names, ::testing::ElementsAre("r1", "r2", "core"));
  EXPECT_THAT(file->told.assumed_switches, ::testing::ElementsAre(2));
  EXPECT_THAT(file->told.level_cables, ::testing::ElementsAre(1, 4));
  const Graph graph = file->topology.graph();
  const auto cables = topology::cables_of_links(file->topology, graph, file->told);
  EXPECT_THAT(cables,
              ::testing::ElementsAre(std::vector{0.125e9}, std::vector{12.5e9}, std::vector<double>{},
                                     std::vector{12.5e9}, std::vector{12.5e9, 0.0}, std::vector(3, 12.5e9)));
  EXPECT_EQ(graph.links[4].bandwidth_bytes_per_s, 12.5e9);
  EXPECT_FALSE(graph.links[2].up);
  const auto written = value_or_throw(topology_file_text(*file, false));
  EXPECT_THAT(written, HasSubstr("  - {switches: [r1, core], cables: [100Gb, down]}\n"));
  EXPECT_THAT(written, HasSubstr("  - {switches: [r2, core], rate: 300Gb, cables: 3}\n"));
  EXPECT_THAT(written, HasSubstr("  - {server: 2, nic: 0, switch: r2, state: missing}\n"));
}

TEST(TopologyFileTest, CablesBetweenTheSameSwitchesOfAGraphAreOneLinkOfTheirRate) {
  const std::string graph =
      "hips-topology: 1\nshape: graph\nservers: {count: 2}\nswitches: {names: [a, b]}\ncables:\n"
      "  - {server: 0, nic: 0, switch: a}\n  - {server: 1, nic: 0, switch: b}\n";
  const auto file = parse_topology_file("t.yaml", graph + "  - {switches: [a, b], rate: 300Gb, cables: 3}\n");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->topology.num_links, 3);
  const auto cables = topology::cables_of_links(file->topology, file->topology.graph(), file->told);
  EXPECT_EQ(cables[2], std::vector(3, 12.5e9));
  EXPECT_THAT(value_or_throw(topology_file_text(*file, false)),
              HasSubstr("{switches: [a, b], rate: 300Gb, latency: 1us, cables: 3}"));
  for (const auto& [line, problem] : std::vector<std::pair<std::string, std::string>>{
           {"{switches: [a, b], state: missing}", "leave the cable out"},
           {"{server: 0, nic: 1, switch: b, cables: 2}", "list each cable of a server"},
           {"{switches: [a, b], cables: 2}\n  - {switches: [a, b], cables: 2}", "list their cables once"}}) {
    const auto bad = parse_topology_file("t.yaml", graph + "  - " + line + "\n");
    ASSERT_FALSE(bad) << line;
    EXPECT_THAT(bad.error().message, HasSubstr(problem));
  }
}

TEST(TopologyFileTest, AFileKeepsATopologyThatNoSpecDescribes) {
  std::mt19937_64 random(test::seed());
  for (int trial = 0; trial < 150; ++trial) {
    TopologyFile file = random_file(random);
    const std::string text = value_or_throw(topology_file_text(file, false));
    for (const bool all_cables : {false, true}) {
      const std::string written = value_or_throw(topology_file_text(file, all_cables));
      const auto back = parse_topology_file("t.yaml", written);
      ASSERT_TRUE(back) << back.error().message << "\n" << written;
      expect_equal(*back, file, written);
      // Writing what was read gives the same text, also for a topology whose spec names the file.
      EXPECT_EQ(value_or_throw(topology_file_text(*back, all_cables)), written);
      // The graph has the overrides, and no other cable changes.
      const Graph graph = back->topology.graph();
      const auto odd = std::ranges::count_if(graph.links, [](const GraphLink& link) { return !link.up; });
      EXPECT_EQ(odd, std::ranges::count(file.topology.overrides, false, &LinkOverride::up)) << written;
    }
  }
}

TEST(TopologyFileTest, NamesInAListMayHaveCharactersThatNoHostlistHas) {
  const auto file = parse_topology_file(
      "t.yaml", "hips-topology: 1\nshape: switch:3\nservers:\n  names: [\"server 0\", n1, \"n{2}\"]\n");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_THAT(file->server_names, ::testing::ElementsAre("server 0", "n1", "n{2}"));
  EXPECT_FALSE(
      parse_topology_file("t.yaml", "hips-topology: 1\nshape: switch:1\nservers: {names: \"a b\"}\n"));
}

// A cable to a server that is not in use is ignored at any rate.
TEST(TopologyFileTest, CablesThatLeaveAPartAreIgnored) {
  for (const auto& [shape, links] : std::vector<std::pair<std::string, std::string>>{
           {"torus:4[0-1]", "{server: 0, nic: 1, rate: 1Gb}"},
           {"torus:4[0-1]", "{server: 1, nic: 0, rate: 1Gb}"},
           {"torus:4x4[0,4]", "{server: 0, nic: 1, rate: 1Gb}, {server: 1, nic: 1, rate: 1Gb}"},
           {"torus:4x4[0-1,4]", "{server: 0, nic: 1, state: down}, {server: 0, nic: 3, rate: 1Gb}"},
           {"mesh:4x4[5]", "{server: 0, nic: 0, state: down}, {server: 0, nic: 1, rate: 1Gb}"},
       }) {
    const std::string text = fmt::format("hips-topology: 1\nshape: {}\nlinks: [{}]\n", shape, links);
    const auto file = parse_topology_file("t.yaml", text);
    ASSERT_TRUE(file) << text << file.error().message;
    EXPECT_EQ(file->topology, parse_topology(shape)) << text;
    for (const bool all_cables : {false, true}) {
      const std::string written = value_or_throw(topology_file_text(*file, all_cables));
      const auto back = parse_topology_file("t.yaml", written);
      ASSERT_TRUE(back) << back.error().message << "\n" << written;
      EXPECT_EQ(*back, *file) << written;
    }
  }
  // The entry for such a cable must still be correct and unique.
  const std::string head = "hips-topology: 1\nshape: torus:4[0-1]\nlinks: [{server: 0, nic: 1, ";
  EXPECT_THAT(parse_topology_file("t.yaml", head + "rate: fast}]").error().message,
              HasSubstr("rate is \"fast\""));
  EXPECT_THAT(parse_topology_file("t.yaml", head + "state: up}, {server: 0, nic: 1}]").error().message,
              HasSubstr("the link is listed twice"));
}

TEST(TopologyFileTest, EveryFamilyHasAReadableSample) {
  std::set<Family> families;
  int read_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_root() / "examples/topologies")) {
    const auto file = topology::read_topology_file(entry.path());
    ASSERT_TRUE(file) << file.error().message;
    families.insert(file->topology.family);
    ++read_files;
    const std::string text = value_or_throw(topology_file_text(*file, true));
    const auto back = parse_topology_file("t.yaml", text);
    ASSERT_TRUE(back) << back.error().message;
    expect_equal(*back, *file, text);
    // Each of them has a plan.
    EXPECT_TRUE(plan::make_builder(file->topology, {})) << entry.path();
  }
  // Graphs are no entry of families().
  EXPECT_TRUE(families.contains(Family::kGraph));
  EXPECT_EQ(families.size(), topology::families().size() + 1);
  EXPECT_GE(read_files, 7);
  const Topology rack =
      parse_topology((test::source_root() / "examples/topologies/rail-gpu-rack.yaml").string());
  EXPECT_EQ(rack.spec, "rail:4,8@400Gb/8");
  const Topology spine =
      parse_topology((test::source_root() / "examples/topologies/leaf-spine-48.yaml").string());
  EXPECT_EQ(spine.num_servers(), 48);
  // 4:1: eight NICs below a leaf, one cable of two NICs' rate above it.
  const auto tiers = topology::tiers(spine);
  EXPECT_DOUBLE_EQ(8 * topology::rail_bandwidths(spine)[0] / tiers[0].bandwidth_bytes_per_s, 4);
}

TEST(TopologyFileTest, ASpecNamesTheFileAndItsContent) {
  const std::string path = ::testing::TempDir() + "hips_topology_file_test.yaml";
  const auto write = [&](const std::string& text) { std::ofstream(path) << text; };
  const std::string slow = "hips-topology: 1\nshape: bcube:3,1\nlinks: [{server: 3, nic: 1, rate: 10Gb}]\n";
  write(slow);
  const Topology topology = parse_topology(path);
  EXPECT_THAT(topology.spec, ::testing::StartsWith("file:" + path + "#"));
  EXPECT_EQ(parse_topology(topology.spec), topology);
  EXPECT_EQ(parse_topology("file:" + path), topology);
  const Topology two = parse_topology(path + "/2");
  EXPECT_EQ(two.num_ranks(), 18);
  EXPECT_EQ(parse_topology(two.spec), two);
  EXPECT_EQ(parse_topology(topology.spec + "/2"), two);
  // The file changes.
  write(slow + "# changed\n");
  const auto changed = topology::parse(two.spec);
  ASSERT_FALSE(changed);
  EXPECT_THAT(changed.error().message, HasSubstr("the file has changed since this spec was made"));
  // A topology that a spec can describe gets this spec.
  write("hips-topology: 1\nshape: bcube:3,1\nrate: 25Gb\nranks-per-server: 2\n");
  EXPECT_EQ(parse_topology(path), parse_topology("bcube:3,1@25Gb/2"));
  EXPECT_THAT(topology::parse(path + "/2").error().message, HasSubstr("already has ranks-per-server: 2"));
  // The ranks in a file that no spec can describe are counted once.
  write(slow + "ranks-per-server: 2\n");
  const Topology own = parse_topology(path);
  EXPECT_EQ(own.num_ranks(), 18);
  EXPECT_EQ(parse_topology(own.spec), own);
  // The name of the file does not show where it ends.
  const std::string bare = path.substr(0, path.size() - 5);
  std::filesystem::rename(path, bare);
  EXPECT_EQ(parse_topology("file:" + bare).num_ranks(), 18);
  std::ofstream(bare) << slow;
  EXPECT_EQ(parse_topology("file:" + bare + "/3").num_ranks(), 27);
  EXPECT_EQ(parse_topology(parse_topology("file:" + bare + "/3").spec).num_ranks(), 27);
  std::filesystem::remove(bare);
  EXPECT_THAT(topology::parse(path).error().message, HasSubstr("cannot be read: No such file"));
  EXPECT_THAT(topology::parse("file:").error().message, HasSubstr("no path follows"));
  EXPECT_THAT(topology::parse("file:" + ::testing::TempDir() + "nothing").error().message,
              HasSubstr("cannot be read"));
}

TEST(TopologyFileTest, AFolderHasWhatEachHostHearsFromItsSwitches) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / fmt::format("lldp-{}", getpid());
  std::filesystem::create_directory(folder);
  EXPECT_THAT(topology::parse(folder.string()).error().message, HasSubstr("has no files"));
  for (const int host : {1, 2, 3})
    std::ofstream(folder / fmt::format("n{}.txt", host))
        << "lldp.eth0.via=LLDP\nlldp.eth0.chassis.mac=00:00:00:00:00:01\nlldp.eth0.chassis.name=leaf1\n"
        << "lldp.eth0.chassis.Bridge.enabled=on\nlldp.eth0.port.ifname=swp" << host << "\n";
  const auto read = topology::load_topology(folder.string());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->topology.spec, "switch:3");
  EXPECT_THAT(read->server_names, ::testing::ElementsAre("n1", "n2", "n3"));
  const auto twice = topology::load_topology("file:" + folder.string() + "/2");
  ASSERT_TRUE(twice) << twice.error().message;
  EXPECT_EQ(twice->topology.num_ranks(), 6);
  std::ofstream(folder / "notes.md") << "hello\n";
  EXPECT_THAT(topology::parse(folder.string()).error().message,
              HasSubstr("notes.md is not what lldpctl prints"));
  std::filesystem::remove_all(folder);
}

TEST(TopologyFileTest, CanBeWrittenThroughALinkAndIntoAPipe) {
  namespace fs = std::filesystem;
  const std::string path = ::testing::TempDir() + "hips_topology_file_pipe", link = path + ".link";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  fs::create_symlink(path, link);
  const UniqueFd reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  topology::TopologyFile file;
  file.topology = parse_topology("switch:4");
  for (const std::string& name : {path, link}) {
    ASSERT_TRUE(topology::write_topology_file(name, file)) << name;
    std::array<char, 1 << 12> text{};
    EXPECT_GT(::read(reader.get(), text.data(), text.size() - 1), 0);
    EXPECT_THAT(text.data(), ::testing::StartsWith("hips-topology: 1\nshape: \"switch:4\"\n"));
  }
  EXPECT_TRUE(fs::is_fifo(path));
  EXPECT_TRUE(fs::is_symlink(link));
  for (const std::string& name : {link, path}) fs::remove(name);
}

TEST(TopologyFileTest, AFileWithoutNamesKeepsTheSpecOfItsOriginal) {
  const std::string head = "hips-topology: 1\nshape: bcube:2,1\n";
  for (const char* ranks : {"", "ranks-per-server: 3\n"}) {
    const TopologyFile original = value_or_throw(parse_topology_file(
        "t.yaml",
        head + ranks +
            "servers: {names: 'n[0-2],x', devices: [a, b]}\nlinks: [{server: n2, nic: b, rate: 10Gb}]\n"));
    const std::string text = topology::nameless_topology_text(original);
    EXPECT_EQ(text.find("n2"), std::string::npos) << text;
    EXPECT_FALSE(topology::has_name_lists(text));
    const auto nameless = parse_topology_file("other.yaml", text);
    ASSERT_TRUE(nameless) << nameless.error().message;
    EXPECT_EQ(nameless->topology, original.topology);
    EXPECT_TRUE(nameless->server_names.empty());
  }
  for (const auto& [spec, is_right] : {std::pair("file:a.yaml#0123456789abcdef", true),
                                       {"file:a.yaml", false},
                                       {"bcube:2,1", false},
                                       {"file:a.yaml#0123456789abcdef/2", false},
                                       {"a.yaml", false}}) {
    const auto file = parse_topology_file(
        "b.yaml", head + "spec: '" + spec + "'\nlinks: [{server: 0, nic: 0, rate: 10Gb}]\n");
    EXPECT_EQ(file.has_value(), is_right) << spec;
    if (file) {
      EXPECT_EQ(file->topology.spec, spec);
    } else {
      EXPECT_THAT(file.error().message, HasSubstr("b.yaml: line 3: spec is"));
    }
  }
}

TEST(TopologyFileTest, ListsOfNamesAreDistinguishedFromNames) {
  const std::string head = "hips-topology: 1\nshape: switch:3\nservers: ";
  for (const char* servers : {"{count: 3}", "{names: [a, b-1, c.d]}"})
    EXPECT_FALSE(topology::has_name_lists(head + servers));
  for (const char* servers : {"{names: 'n[0-2]'}", "{names: 'a,b,c'}", "{names: [a, 'n[1-2]']}"})
    EXPECT_TRUE(topology::has_name_lists(head + servers)) << servers;
}

TEST(TopologyFileTest, TheSchemaAndTheReaderKnowTheSameKeys) {
  const auto schema =
      nlohmann::json::parse(test::read_file(test::source_root() / "docs/topology.schema.json"));
  const std::string head = "hips-topology: 1\nshape: switch:4\n";
  const auto known = [&](const std::string& text) {
    const auto file = parse_topology_file("t.yaml", text);
    EXPECT_FALSE(file);
    std::set<std::string> keys;
    if (file) return keys;
    std::string list = file.error().message;
    list = list.substr(list.find("expected ") + 9);
    for (std::size_t at = 0; at < list.size();) {
      const std::size_t end = std::min(list.find(", ", at), list.size());
      keys.insert(list.substr(at, end - at));
      at = end + 2;
    }
    return keys;
  };
  const auto keys_of = [](const nlohmann::json& object) {
    std::set<std::string> keys;
    for (const auto& [key, value] : object.at("properties").items()) keys.insert(key);
    return keys;
  };
  const auto& defs = schema.at("$defs");
  // Those of both shapes, and spec, which people do not write.
  std::set<std::string> of_files = known("zz: 1"), of_graphs = known("shape: graph\nzz: 1");
  of_files.merge(of_graphs);
  of_files.insert("spec");
  EXPECT_EQ(of_files, keys_of(schema));
  EXPECT_EQ(known(head + "levels: [{zz: 1}]"), keys_of(defs.at("level")));
  EXPECT_EQ(known(head + "servers: {zz: 1}"), keys_of(defs.at("servers")));
  EXPECT_EQ(known(head + "servers: {other-devices: [{zz: 1}]}"),
            keys_of(defs.at("servers").at("properties").at("other-devices").at("items")));
  const std::string graph = "hips-topology: 1\nshape: graph\nservers: {count: 2}\n";
  EXPECT_EQ(known(graph + "switches: {zz: 1}"), keys_of(defs.at("switches")));
  EXPECT_EQ(known(graph + "cables: [{zz: 1}]"), keys_of(defs.at("cable")));
  EXPECT_EQ(known(head + "links: [{zz: 1}]"), keys_of(defs.at("link")));
}

TEST(TopologyFileTest, DocsShowFilesThatAreRead) {
  const std::string page = test::read_file(test::source_root() / "docs/topologies.md");
  const auto shown_behind = [&](std::string_view heading) {
    const std::size_t begin = page.find("```yaml\n", page.find(heading)) + 8;
    return read_or_fail(page.substr(begin, page.find("```", begin) - begin));
  };
  EXPECT_EQ(shown_behind("## Discovered\n").num_ranks(), 4);
  const Topology shown = shown_behind("## The format\n");
  EXPECT_EQ(shown.num_ranks(), 18);
  EXPECT_EQ(shown.overrides.size(), 2U);
  EXPECT_EQ(shown_behind("## Graphs\n").num_links, 7);
  EXPECT_DOUBLE_EQ(shown.levels[1].bandwidth_bytes_per_s, 12.5e9);
  EXPECT_DOUBLE_EQ(shown.levels[2].bandwidth_bytes_per_s, 3.125e9);
}

TEST(TopologyFileTest, SlowLinksCostMoreAndPlansAvoidDeadOnes) {
  const std::string head = "hips-topology: 1\nshape: bcube:3,1\n";
  const auto seconds = [&](const Topology& topology) {
    const auto builder = value_or_throw(plan::make_builder(topology, {}));
    return cost::estimate_all(topology, *builder, {.count = 1 << 20}).bandwidth_seconds;
  };
  const double healthy = seconds(read_or_fail(head));
  // The lanes of a hierarchy would take four times as long as trees that avoid the slow NIC.
  const double slowed = seconds(read_or_fail(head + "links: [{server: 4, nic: 1, rate: 25Gb}]"));
  EXPECT_GT(slowed, healthy);
  EXPECT_LT(slowed, 1.1 * healthy);
  // A cable of a torus is slow at both ends; the file may name either.
  const std::string torus = "hips-topology: 1\nshape: torus:4x4\n";
  EXPECT_EQ(read_or_fail(torus + "links: [{server: 1, nic: 1, rate: 25Gb}]").overrides,
            read_or_fail(torus + "links: [{server: 0, nic: 0, rate: 25Gb, to: 1, to-nic: 1}]").overrides);
  const Topology one_dead = read_or_fail(head + "links: [{server: 4, nic: 1, state: down}]");
  EXPECT_LT(seconds(one_dead), 1.2 * healthy);
  const auto dead = plan::make_builder(one_dead, {.algorithm = "flat-ring"});
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().code, Code::kUnsupported);
  EXPECT_THAT(dead.error().message, HasSubstr("NIC 1 of server 4 (<11>) is down"));
  // A leaf with four spines still has the other cables.
  const std::string leaves = "hips-topology: 1\nshape: leafspine:4,4\n";
  const Topology three = read_or_fail(leaves + "links: [{switches: [leaf 1, spine 2], state: down}]");
  const auto flat = [](const Topology& topology) {
    const auto builder = value_or_throw(plan::make_builder(topology, {.algorithm = "flat-mesh"}));
    return cost::estimate_all(topology, *builder, {.count = 1 << 20}).busiest;
  };
  const Topology all = read_or_fail(leaves);
  EXPECT_THAT(flat(three).name, HasSubstr("leaf switch 1"));
  EXPECT_NEAR(flat(three).seconds * 3 * 12.5e9, static_cast<double>(flat(three).bytes), 1);
  EXPECT_LT(flat(all).seconds, flat(three).seconds);
}

TEST(TopologyFileTest, PlansUseNeighboursOnlyWithoutRelaying) {
  for (const std::string shape : {"bcube:3,1", "torus:4x4"}) {
    const Topology topology = read_or_fail("hips-topology: 1\nshape: " + shape + "\nrelay: false\n");
    EXPECT_TRUE(plan::make_builder(topology, {.algorithm = "flat-ring"}));
    const auto mesh = plan::make_builder(topology, {.algorithm = "flat-mesh"});
    ASSERT_FALSE(mesh);
    EXPECT_EQ(mesh.error().code, Code::kUnsupported);
    EXPECT_THAT(mesh.error().message, HasSubstr(shape == "bcube:3,1" ? "<00> and <11>" : "(0,0) and (2,0)"));
  }
}

TEST(TopologyFileTest, TheNumberOfNamesIsLimited) {
  const auto file = parse_topology_file(
      "f.yaml", "hips-topology: 1\nshape: switch:2147483647\nservers: {names: \"n[0-2147483646]\"}\n");
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message,
              HasSubstr("f.yaml: line 3: names: switch:2147483647 has 2147483647 servers; "
                        "servers can have names if there are at most 1048576"));
}

TEST(TopologyFileTest, ACableOfAPartMustLeadToAServerInUse) {
  const auto refused = [](const std::string& rest) {
    const auto file = parse_topology_file("t.yaml", "hips-topology: 1\n" + rest);
    EXPECT_FALSE(file) << rest;
    return file ? Status::success() : file.error();
  };
  for (const auto& [rest, says] : std::vector<std::pair<std::string, std::string>>{
           {"shape: torus:4[0-1]\nservers: {names: [a, b]}\n"
            "links: [{server: a, nic: 1, to: b, to-nic: 0}]\n",
            "t.yaml: line 4: NIC 1 of server \"a\" leads to NIC 0 of server \"b\", but in torus:4[0-1] it "
            "leads "
            "to "
            "a server that is not in use"},
           {"shape: torus:4[0-1]\nlinks: [{server: 0, nic: 1, to: 1, to-nic: 0, rate: 1Gb}]\n",
            "t.yaml: line 3: NIC 1 of server \"0\" leads to NIC 0 of server \"1\", but in torus:4[0-1] it "
            "leads "
            "to "
            "a server that is not in use"},
           {"shape: mesh:4x4[0-1]\nservers: {names: [a, b]}\n"
            "links: [{server: a, nic: 2, to: b, to-nic: 1}]\n",
            "t.yaml: line 4: NIC 2 of server \"a\" leads to NIC 1 of server \"b\", but in mesh:4x4[0-1] it "
            "leads "
            "to "
            "a server that is not in use"},
       }) {
    const Status status = refused(rest);
    EXPECT_EQ(status.code, Code::kInvalidArgument) << rest;
    EXPECT_EQ(status.message, says);
  }
  // A cable between two servers in use can be listed by either end.
  const std::string torus = "hips-topology: 1\nshape: torus:4[0-1]\n";
  EXPECT_EQ(read_or_fail(torus + "links: [{server: 1, nic: 1, to: 0, to-nic: 0, rate: 1Gb}]").overrides,
            read_or_fail(torus + "links: [{server: 0, nic: 0, rate: 1Gb}]").overrides);
}

}  // namespace
}  // namespace hips

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "topology/clusters/slurm.hpp"

namespace hips::topology {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// From the topology guide of Slurm 26.05.
constexpr const char* kRingsAndToruses = R"(- topology: rings
  ring:
    rings:
      - ring: ring0
        nodes: node[01-04]
      - {ring: ring1, nodes: [node08, "node[05-07]"], color: red}
- topology: topo-torus
  cluster_default: true
  torus3d:
    toruses:
      - name: pod1
        dims:
          x: 4
          y: 3
          z: 2
        nodes: node[01-24]
        placements:
          - dims: {x: 2, y: 2, z: 1}
- topology: regions
  torus3d:
    toruses:
      - name: pod1
        dims: {x: 3, y: 4, z: 1}
        regions:
          - anchor: {x: 0, y: 2, z: 0}
            dims: {x: 2, y: 2, z: 1}
            nodes: rack2-[1-4]
          - anchor: {x: 0, y: 0, z: 0}
            dims: {x: 3, y: 1, z: 1}
            nodes: rack1-[1-3]
)";

ClusterTopology read_unit(std::string_view which) {
  return value_or_throw(read_slurm_yaml("topology.yaml", kRingsAndToruses, {.which = std::string(which)}));
}

TEST(SlurmTorus, NodesAreInTheOrderOfTheirPlaces) {
  const ClusterTopology torus = read_unit("");
  EXPECT_EQ(torus.topology.spec, "torus:4x3x2");
  ASSERT_EQ(torus.nodes.size(), 24U);
  // x varies fastest: node06 is at (1,1,0).
  EXPECT_EQ(torus.nodes[5], "node06");
  EXPECT_EQ(torus.topology.address(5), "(1,1,0)");
  EXPECT_THAT(torus.notes, Contains(HasSubstr("\"placements\" does not describe the wiring; ignored")));
  EXPECT_THAT(torus.notes, Contains(HasSubstr("line 9: Slurm does not say which NIC leads where")).Times(0));
  EXPECT_THAT(torus.notes, Contains(HasSubstr("which NIC leads where; assuming NIC 0 for x+")));
  EXPECT_THAT(torus.notes, Contains(HasSubstr("assuming two cables, + and -, for a side of 2")));
}

TEST(SlurmTorus, ATorusWithEmptyPlacesIsAPart) {
  const ClusterTopology part = read_unit("regions");
  EXPECT_EQ(part.topology.spec, "torus:3x4[0-2,6-7,9-10]");
  EXPECT_THAT(part.nodes,
              ElementsAre("rack1-1", "rack1-2", "rack1-3", "rack2-1", "rack2-2", "rack2-3", "rack2-4"));
}

TEST(SlurmTorus, ARingIsATorusOfOneSide) {
  const ClusterTopology ring = read_unit("rings:ring1");
  EXPECT_EQ(ring.topology.spec, "torus:4");
  EXPECT_THAT(ring.nodes, ElementsAre("node08", "node05", "node06", "node07"));
  EXPECT_THAT(ring.notes, Contains("topology.yaml: line 6: \"color\" is unknown; ignored"));
  const char* conf = "# rings\nRingName=ring0 Nodes=node[01-08]\nringname=ring1 Nodes=node[09-16] Foo=1\n";
  const auto second = value_or_throw(read_slurm_topology("topology.conf", conf, {.which = "default:ring1"}));
  EXPECT_EQ(second.topology.spec, "torus:8");
  EXPECT_EQ(second.nodes.front(), "node09");
  EXPECT_EQ(value_or_throw(read_slurm_topology("f", conf, {.which = "ring0"})).nodes.front(), "node01");
  EXPECT_EQ(value_or_throw(read_slurm_topology("f", "RingName=r Nodes=a\n")).topology.spec, "switch:1");
  EXPECT_EQ(value_or_throw(read_slurm_topology("f", "RingName=r Nodes=a[1-3]\n", {.which = "default"}))
                .topology.spec,
            "torus:3");
}

TEST(SlurmTorus, OneOfSeveralMustBeChosen) {
  const auto both = read_slurm_yaml("f", kRingsAndToruses, {.which = "rings"});
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, Code::kUnsupported);
  EXPECT_THAT(both.error().message,
              HasSubstr("f: line 6: no cable joins the rings \"ring0\", \"ring1\"; "
                        "choose one by --slurm-topology ring0, of a topology.yaml TOPOLOGY:ring0"));
  EXPECT_THAT(read_slurm_yaml("f", kRingsAndToruses, {.which = "rings:x"}).error().message,
              HasSubstr("unknown ring \"x\"; expected one of \"ring0\", \"ring1\""));
  EXPECT_THAT(read_slurm_topology("f", "SwitchName=s Nodes=a\n", {.which = "x"}).error().message,
              HasSubstr("unknown topology \"x\""));
}

TEST(SlurmTorus, ErrorsOfATopologyConfNameLineAndRemedy) {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"RingName=r\n", "line 1: RingName=\"r\" has no Nodes; write them in the order of the ring"},
           {"RingName= Nodes=a\n", "nothing follows RingName="},
           {"RingName=r Nodes=a\nRingName=r Nodes=b\n",
            "line 2: ring \"r\" occurs twice, first in topology.conf: line 1"},
           {"RingName=r Nodes=a\nRingName=s Nodes=a\n", "line 2: nodes: \"a\" occurs twice in the topology"},
           {"RingName=r Nodes=a,a\n", "\"a\" occurs twice"},
           {"RingName=r Nodes=a[2-1]\n", "nodes: hostlist \"a[2-1]\": the range 2-1 descends"},
           {"RingName=r Switches=a\n", "the file has rings and switches"},
           {"RingName=r BlockName=b Nodes=a\n", "the file has rings and switches"},
           {"SwitchName=s Nodes=b\nRingName=r Nodes=a\n", "line 2: the file has rings and switches"},
           {"RingName=r Nodes=a\nSwitchName=s Nodes=b\n", "line 2: the file has rings and switches"},
           {"RingName=r Nodes=a[0-999999]b[0-999999]\n", "has 1000000000000 names"},
       }) {
    const auto read = read_slurm_topology("topology.conf", text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument) << text;
    EXPECT_THAT(read.error().message, StartsWith("topology.conf: line "));
    EXPECT_THAT(read.error().message, HasSubstr(words)) << text;
  }
}

TEST(SlurmTorus, ErrorsOfATopologyYamlNameLineAndRemedy) {
  const std::string ring = "- topology: t\n  ring:\n    rings:\n      - ";
  const std::string torus = "- topology: t\n  torus3d:\n    toruses:\n      - ";
  const std::string dims = "dims: {x: 2, y: 2, z: 1}";
  const std::string region = torus + "{name: a, " + dims + ", regions: [";
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"- topology: t\n  ring:\n", "line 2: ring has no list of rings; write \"rings:\" and below it"},
           {"- topology: t\n  ring: true\n", "ring has no list of rings"},
           {"- topology: t\n  ring: {rings: []}\n", "ring has no list of rings"},
           {"- topology: t\n  ring: {toruses: [a]}\n", "ring has no list of rings"},
           {ring + "a\n", "line 4: the entry has no ring; begin with \"- ring: NAME\""},
           {ring + "{nodes: a}\n", "the entry has no ring"},
           {ring + "{ring: a}\n", "line 4: the ring has no nodes; write nodes: and a hostlist"},
           {ring + "{ring: [a], nodes: b}\n", "ring is a list; write one value"},
           {ring + "{ring: '', nodes: b}\n", "the ring has an empty name"},
           {ring + "{ring: a, nodes: {b: c}}\n", "nodes is a mapping"},
           {ring + "{ring: a, nodes: ''}\n", "hostlist \"\": is empty"},
           {ring + "{ring: a, nodes: 'b[1'}\n", "nodes: hostlist \"b[1\""},
           {ring + "{ring: a, nodes: b}\n      - {ring: a, nodes: c}\n", "line 5: ring \"a\" occurs twice"},
           {ring + "{ring: a, nodes: b}\n      - {ring: c, nodes: b}\n", "line 5: nodes: \"b\" occurs twice"},
           {"- topology: t\n  torus3d:\n", "torus3d has no list of toruses"},
           {"- topology: t\n  torus3d: {rings: []}\n", "torus3d has no list of toruses"},
           {torus + "{" + dims + ", nodes: 'a[1-4]'}\n", "the entry has no name"},
           {torus + "{name: a, nodes: 'a[1-4]'}\n", "the torus has no dims; write dims: {x: 4, y: 4, z: 2}"},
           {torus + "{name: a, dims: [2, 2, 1], nodes: 'a[1-4]'}\n", "dims must be a mapping"},
           {torus + "{name: a, dims: {x: 2, y: 2}, nodes: 'a[1-4]'}\n",
            "dims has no z; write all of x, y and z"},
           {torus + "{name: a, dims: {x: 2, y: 2, z: 1, w: 1}, nodes: 'a[1-4]'}\n",
            "dims has the unknown key \"w\""},
           {torus + "{name: a, dims: {x: 0, y: 2, z: 1}, nodes: 'a[1-4]'}\n",
            "x is \"0\"; it must be a whole number"},
           {torus + "{name: a, dims: {x: 2.5, y: 2, z: 1}, nodes: 'a[1-4]'}\n", "x is \"2.5\""},
           {torus + "{name: a, dims: {x: 65536, y: 2, z: 1}, nodes: a}\n", "from 1 to 65535"},
           {torus + "{name: a, dims: {x: 65535, y: 65535, z: 65535}, nodes: a}\n", "(valid: up to 1048576)"},
           {torus + "{name: a, " + dims + "}\n", "the torus has neither nodes nor regions"},
           {torus + "{name: a, " + dims + ", nodes: a, regions: []}\n", "has both nodes and regions"},
           {torus + "{name: a, " + dims + ", nodes: 'a[1-3]'}\n", "nodes: 3 names for 4 places (2x2x1)"},
           {torus + "{name: a, " + dims + ", nodes: 'a[1-5]'}\n", "nodes: 5 names for 4 places"},
           {torus + "{name: a, " + dims + ", regions: a}\n", "regions must be a list"},
           {torus + "{name: a, " + dims + ", regions: []}\n", "regions is empty"},
           {region + "{dims: {x: 1, y: 1, z: 1}, nodes: a}]}\n", "the region has no anchor"},
           {region + "{anchor: {x: 0, y: 0, z: 0}, nodes: a}]}\n", "the region has no dims"},
           {region + "{anchor: {x: 0, y: 0, z: 0}, dims: {x: 1, y: 1, z: 1}}]}\n", "the region has no nodes"},
           {region + "{anchor: {x: -1, y: 0, z: 0}, dims: {x: 1, y: 1, z: 1}, nodes: a}]}\n", "x is \"-1\""},
           {region + "{anchor: {x: 1, y: 0, z: 0}, dims: {x: 2, y: 1, z: 1}, nodes: 'a[1-2]'}]}\n",
            "the region from 1 and 2 long in x exceeds the torus, which has 2 there; regions do not "
            "wrap"},
           {region + "{anchor: {x: 0, y: 0, z: 0}, dims: {x: 2, y: 1, z: 1}, nodes: 'a[1-2]'}, "
                     "{anchor: {x: 1, y: 0, z: 0}, dims: {x: 1, y: 1, z: 1}, nodes: b}]}\n",
            "\"a2\" and \"b\" are both at (1,0,0); regions must not overlap"},
       }) {
    const auto read = read_slurm_yaml("topology.yaml", text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument) << text;
    EXPECT_THAT(read.error().message, StartsWith("topology.yaml: line "));
    EXPECT_THAT(read.error().message, HasSubstr(words)) << text;
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace hips::topology

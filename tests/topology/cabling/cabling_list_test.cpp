#include "topology/cabling/cabling_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/choices.hpp"
#include "tests/topology/cabling/random_cabling.hpp"
#include "tests/topology/cabling/same_cabling.hpp"
#include "topology/cabling/rate_words.hpp"

namespace hips::topology {
namespace {

using test::lines_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Cabling read_list(std::string_view text) {
  return value_or_throw(read_cabling_list("cables.csv", text));
}

std::string list_error(std::string_view text) {
  const auto read = read_cabling_list("cables.csv", text);
  return read ? "accepted" : read.error().message;
}

struct ListForm {
  std::vector<std::string> header;  ///< a node, a port, b node, b port, and others
  bool has_rate = false;            ///< in the column that follows
};

/// The columns in a random order, cables from one end or from both.
std::string random_list(const Cabling& cabling, const ListForm& form, std::mt19937_64& random) {
  const char separator = ",;\t"[random() % 3];
  std::vector<std::size_t> order(form.header.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::shuffle(order, random);
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (const std::size_t column : order) {
      if (!text.empty()) text += separator;
      text += random() % 2 == 0 ? "\"" + cells[column] + "\"" : cells[column];
    }
    return text + (random() % 2 == 0 ? "\n" : "\r\n");
  };
  std::string text = random() % 2 == 0 ? "\xef\xbb\xbf" : "";
  text += line(form.header);
  for (const Cable& cable : cabling.cables) {
    std::vector<std::string> cells = {cabling.nodes[cable.a.node].name, cable.a.port,
                                      cabling.nodes[cable.b.node].name, cable.b.port};
    if (form.has_rate) cells.push_back(fmt::format("{}", cable.bandwidth_bytes_per_s * 8 / 1e6));
    cells.resize(form.header.size(), "x");
    text += line(cells);
    if (random() % 2 == 0) continue;
    std::swap(cells[0], cells[2]);
    std::swap(cells[1], cells[3]);
    text += line(cells);
  }
  return text;
}

TEST(CablingList, ReadsRandomListsOfEachForm) {
  const std::vector<ListForm> forms = {
      {{"side_a_device", "side_a_name", "side_b_device", "side_b_name", "label", "color"}},
      {{"Device A", "Termination A", "Device B", "Termination B", "ID", "Status"}},
      {{"Side A", "Termination A", "Side B", "Termination B", "Color"}},
      {{"Device A", "Interface A", "Device B", "Interface B", "Reachable"}},
      {{"Termination A Device", "Termination A Name", "Termination B Device", "Termination B Name"}},
      {{"StartDevice", "StartPort", "EndDevice", "EndPort", "BandWidth", "VlanID"}, true},
      {{"#StartDevice", "StartPort", "EndDevice", "EndPort", "Speed"}, true},
      {{"Node", "Node Interface", "Peer Node", "Peer Interface"}}};
  const std::uint64_t num_seeds = test::runs_a_sample() ? 100 : 500;
  for (std::uint64_t seed = 0; seed < num_seeds; ++seed) {
    std::mt19937_64 random(test::seed() + seed);
    const ListForm& form = forms[random() % forms.size()];
    Cabling fabric = test::random_fabric(random);
    // A list does not tell servers from switches.
    for (CabledNode& node : fabric.nodes) node.kind = CabledNode::Kind::kUnknown;
    for (Cable& cable : fabric.cables) {
      if (!form.has_rate) cable.bandwidth_bytes_per_s = 0;
    }
    const std::string text = random_list(fabric, form, random);
    ASSERT_TRUE(is_cabling_list(text)) << text;
    ASSERT_EQ(lines_of(read_list(text)), lines_of(fabric)) << text;
  }
}

TEST(CablingList, NotesColumnsThatItIgnoresOnce) {
  const Cabling cabling = read_list(
      "side_a_device,side_a_rack,side_a_name,side_b_device,side_b_rack,side_b_name\n"
      "a,r1,e1,b,r1,e2\na,r1,e3,b,r1,e4\n");
  EXPECT_EQ(cabling.cables.size(), 2U);
  EXPECT_THAT(cabling.notes, ElementsAre("cables.csv:1: columns are ignored: \"side_a_rack, side_b_rack\""));
}

TEST(CablingList, LeavesOutPowerAndConsoleCablesOfNetBox) {
  const std::vector<std::string> network = {"cable a[e1] b[e2] 0.000Gb 0ns up",
                                            "cable a[e3] p[7] 0.000Gb 0ns up", "node a 2", "node b 2",
                                            "node p 2"};
  // By the types of their ends, as the import and scripts name them, and as the pages do.
  for (
      const std::string header :
      {"side_a_device,side_a_type,side_a_name,side_b_device,side_b_type,side_b_name",
       "termination_a_device,termination_a_type,termination_a_name,termination_b_device,termination_b_type,termination_b_name",
       "Device A,Termination A type,Termination A,Device B,Termination B type,Termination B"}) {
    const Cabling cabling = read_list(
        header + "\na,dcim.interface,e1,b,dcim.interface,e2\na,dcim.powerport,PSU1,pdu,dcim.poweroutlet,1\n" +
        "cs,dcim.consoleserverport,1,a,dcim.consoleport,con\na,Interface,e3,p,front port,7\n" +
        "b,power port,PSU1,pdu,Power Outlet,2\nb,Console Port,con,cs,console server port,2\nb,power-port,PSU2,,dcim.powerfeed,f\n");
    EXPECT_EQ(lines_of(cabling), network) << header;
    EXPECT_THAT(cabling.notes,
                ElementsAre("cables.csv:3: cables are left out that are no network cables (3 power, 2 "
                            "console), such as a PSU1 to pdu 1 (5 in all)"));
  }
  // The export of a table has only the type of the cable.
  const std::string table = "Label,Device A,Termination A,Device B,Termination B,Status,Type\n";
  const Cabling cabling = read_list(table +
                                    ",a,e1,b,e2,Connected,CAT6\n,a,PSU1,pdu,1,Connected,Power\n"
                                    ",a,e3,p,7,Connected,DAC (Passive)\n,b,PSU1,pdu,2,Planned,Power\n");
  EXPECT_EQ(lines_of(cabling), network);
  EXPECT_THAT(cabling.notes,
              ElementsAre(HasSubstr("\"Label\""), HasSubstr("no network cables (1 power), such as a PSU1"),
                          HasSubstr("planned or decommissioning")));
  EXPECT_EQ(
      list_error(table + ",a,PSU1,pdu,1,Connected,Power\n"),
      "cables.csv:2: the file has no cables: cables are left out that are no network cables (1 power), such as "
      "a PSU1 to pdu 1; write a cable in each row below the header");
  EXPECT_EQ(
      list_error(table + ",a,PSU1,pdu,1,Connected,Power\n,a,e1,b,e2,Planned,CAT6\n"),
      "cables.csv:2: the file has no cables: cables are left out that are no network cables (1 power), such as "
      "a PSU1 to pdu 1; write a cable in each row below the header");
}

TEST(CablingList, LeavesOutCablesThatAreNotThere) {
  const std::string rows =
      "side_a_device,side_a_name,side_b_device,side_b_name,status\na,e1,b,e2,Connected\na,e3,b,e4,planned\n"
      "a,e5,b,e6,Decommissioning\nnew,e1,b,e7,planned\na,e8,b,e8,\n";
  const Cabling cabling = read_list(rows);
  EXPECT_THAT(lines_of(cabling), ElementsAre("cable a[e1] b[e2] 0.000Gb 0ns up",
                                             "cable a[e8] b[e8] 0.000Gb 0ns up", "node a 2", "node b 2"));
  EXPECT_THAT(
      cabling.notes,
      ElementsAre(
          "cables.csv:3: cables are left out that are planned or decommissioning, such as a e3 to b e4 "
          "(3 in all)"));
  EXPECT_EQ(value_or_throw(read_cabling_list("c", rows, *parse_list_columns("side_a_device,,side_b_device,")))
                .cables.size(),
            2U);
  EXPECT_EQ(
      list_error("Device A,Termination A,Device B,Termination B,Status\na,e1,b,e2,Planned\n"),
      "cables.csv:2: the file has no cables: cables are left out that are planned or decommissioning, such as "
      "a e1 to b e2; write a cable in each row below the header");
}

TEST(CablingList, BreakoutsOfNetBoxAreACableToEachDevice) {
  const Cabling cabling = read_list(
      "ID,Device A,Termination A,Device B,Termination B,Status,Rack A\n"
      "1,sw1,swp1,\"n1,n2\",\"eth0,eth1\",Connected,r1\n2,sw1,\"swp2,swp3\",n3,eth0,Connected,r1\n"
      "3,\"sw1,sw2\",\"swp4,swp5\",\"n4,n5\",eth0,Connected,r1\n");
  EXPECT_THAT(lines_of(cabling),
              ElementsAre("cable n1[] sw1[swp1] 0.000Gb 0ns up", "cable n2[] sw1[swp1] 0.000Gb 0ns up",
                          "cable n3[eth0] sw1[swp2,swp3] 0.000Gb 0ns up", "node n1 2", "node n2 2",
                          "node n3 2", "node sw1 2"));
  EXPECT_THAT(cabling.notes,
              ElementsAre("cables.csv:1: columns are ignored: \"ID, Rack A\"",
                          "cables.csv:4: cables with several devices at both ends are left out, such as "
                          "sw1,sw2 to n4,n5"));
}

TEST(CablingList, TakesKindsFromTypes) {
  const Cabling cabling = read_list(
      "Type,Node,Node Interface,Peer Type,Peer Node,Peer Interface\n"
      "l3leaf,leaf1,Ethernet1,spine,spine1,Ethernet1\nl3leaf,leaf1,Ethernet2,server,n1,eth0\n");
  EXPECT_THAT(lines_of(cabling), ElementsAre("cable leaf1[Ethernet1] spine1[Ethernet1] 0.000Gb 0ns up",
                                             "cable leaf1[Ethernet2] n1[eth0] 0.000Gb 0ns up", "node leaf1 1",
                                             "node n1 0", "node spine1 1"));
}

TEST(CablingList, ReadsAdaptersAndRacksOfUfm) {
  const Cabling cabling = read_list(
      "rack #,U height,#Fields:StartDevice,StartPort,StartDeviceLocation,EndDevice,EndPort,EndDeviceLocation,State\n"
      ",,sw1,Port 1,r1,n7 mlx5_0,Port 1,r1,Active\n,,sw1,Port 1,r2,n8 HCA-1,Port 2,r2,Active\n");
  EXPECT_THAT(lines_of(cabling), ElementsAre("cable n7[mlx5_0] r1/sw1[Port 1] 0.000Gb 0ns up",
                                             "cable n8[HCA-1 Port 2] r2/sw1[Port 1] 0.000Gb 0ns up",
                                             "node n7 0", "node n8 0", "node r1/sw1 2", "node r2/sw1 2"));
}

TEST(CablingList, TakesTheColumnsThatAreNamed) {
  const ListColumns columns = value_or_throw(parse_list_columns("From,,To,,Speed"));
  // Without ports a cable from a to b is the same as one from b to a; two from a to b are two.
  const Cabling cabling = value_or_throw(
      read_cabling_list("c", "to,from,speed\nb,a,100G\na,b,100G\nb,a,25GbE\nc,a,400 Gb/s\n", columns));
  EXPECT_THAT(lines_of(cabling),
              ElementsAre("cable a[] b[] 100.000Gb 0ns up", "cable a[] b[] 25.000Gb 0ns up",
                          "cable a[] c[] 400.000Gb 0ns up", "node a 2", "node b 2", "node c 2"));
  EXPECT_FALSE(parse_list_columns("a,b,c"));
  EXPECT_FALSE(parse_list_columns(",b,c,d"));
  const auto unknown = read_cabling_list("c", "to;from\nb;a\n", columns);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "c:1: the list has no column \"Speed\"; it has \"to, from\"");
}

TEST(CablingList, ReadsRatesAsPeopleWriteThem) {
  EXPECT_EQ(rate_of_words("100000"), 12.5e9);
  EXPECT_EQ(rate_of_words("100Gb"), 12.5e9);
  EXPECT_EQ(rate_of_words("100 Gbps"), 12.5e9);
  EXPECT_EQ(rate_of_words("EDR"), 12.5e9);
  EXPECT_EQ(rate_of_words("4xEDR"), 12.5e9);
  EXPECT_EQ(rate_of_words("0.8T"), 1e11);
  EXPECT_EQ(rate_of_words("400"), 50e9);
  EXPECT_EQ(rate_of_words("1000"), 125e6);
  EXPECT_EQ(rate_of_words("25GBASE-CR"), 3.125e9);
  EXPECT_EQ(rate_of_words("1000Base-T"), 125e6);
  EXPECT_EQ(rate_of_words("100BASE-TX"), 12.5e6);
  EXPECT_EQ(rate_of_words("auto 100full"), 12.5e6);
  for (const char* text : {"", "fast", "-1", "100 apples", "1e300", "nan", "inf"})
    EXPECT_EQ(rate_of_words(text), 0) << text;
}

TEST(CablingList, EndsBrokenListsWithOneLine) {
  EXPECT_THAT(
      list_error("\nfrom,to\na,b\n"),
      StartsWith("cables.csv:2: the header \"from, to\" is not known; the header must have side_a_device, "));
  EXPECT_TRUE(is_cabling_list("from,to,speed\nn0,leaf,100G\n"));
  EXPECT_FALSE(is_cabling_list("# Two racks, four spines\n# Written by ops, 2024\nhips-topology: 1\n"));
  EXPECT_FALSE(is_cabling_list("# Two racks, four spines\n# Written by ops, 2024\nSwitchName=a Nodes=b\n"));
  EXPECT_FALSE(is_cabling_list("hips-topology: 1\nspec: bcube:3,1\n"));
  EXPECT_FALSE(is_cabling_list("servers: {count: 3, nics: 1}\nswitches: {count: 3, ports: 1}\n"));
  EXPECT_THAT(list_error(""), StartsWith("cables.csv:1: the header \"\" is not known; "));
  EXPECT_EQ(list_error("StartDevice,StartPort,EndDevice,EndPort\na,1,b\n"),
            "cables.csv:2: the row has 3 cells; the header needs 4");
  EXPECT_EQ(list_error("StartDevice,StartPort,EndDevice,EndPort\n\"a,1,b,2\n"),
            "cables.csv:2: a \" is missing at the end of a cell in quotes; add it");
  EXPECT_EQ(list_error("StartDevice,StartPort,EndDevice,EndPort\n"),
            "cables.csv:1: the file has no cables; write a cable in each row below the header");
}

TEST(CablingList, NamesTheFirstOfWhatIsNoCable) {
  const std::string header = "StartDevice,StartPort,EndDevice,EndPort\n";
  EXPECT_EQ(
      list_error(header + "n0,e0,n0,1\nn1,,n1,\n"),
      "cables.csv:2: the file has no cables: cables from a node to itself are ignored, such as \"n0 e0\" to "
      "\"n0 1\" (2 in all); write a cable in each row below the header");
  EXPECT_EQ(
      list_error(header + ",,,\nn2,e0,,\n,,n3,e0\n"),
      "cables.csv:3: the file has no cables: rows without a device at one end are ignored, such as \"n2\" (2 in "
      "all); write a cable in each row below the header");
  const auto read = read_cabling_list("cables.csv", header + "n0,e0,s,1\nn1,e0,s,1\nn2,e0,,\n,,n3,e0\n");
  EXPECT_THAT(
      value_or_throw(read).notes,
      ElementsAre("cables.csv:3: ports have more than one cable, such as \"s 1\"",
                  "cables.csv:4: rows without a device at one end are ignored, such as \"n2\" (2 in all)"));
}

TEST(CablingList, CommentsMayStandBeforeTheHeader) {
  const Cabling list = value_or_throw(read_cabling_list(
      "c", "# exported on Monday\n\n# by hand, twice\nStartDevice,StartPort,EndDevice,EndPort\na,1,b,2\n"));
  ASSERT_EQ(list.cables.size(), 1U);
  EXPECT_EQ(list.cables[0].a.port, "1");
  EXPECT_TRUE(is_cabling_list("# by hand, twice\nStartDevice,StartPort,EndDevice,EndPort\na,1,b,2\n"));
}

TEST(CablingList, ByNumbersAHeaderIsNoCable) {
  const ListColumns columns = value_or_throw(parse_list_columns("1,2,3,4,5"));
  for (const std::string before : {"from,from port,to,to port\n", "Cables of hall 2\n", ""}) {
    const Cabling list =
        value_or_throw(read_cabling_list("c", before + "n1,e,sw,1\nn2,e,sw,2\nn3,e,sw,3,25G\n", columns));
    EXPECT_EQ(list.cables.size(), 3U) << before;
    EXPECT_DOUBLE_EQ(list.cables.back().bandwidth_bytes_per_s, 25e9 / 8) << before;
  }
}

TEST(CablingList, ReadsColumnsByNumbersWithoutAHeader) {
  const auto columns = parse_list_columns("2,3,5,6,7");
  ASSERT_TRUE(columns);
  const std::string rows =
      "R1,n1 mlx5_0,Port 1,R2,leaf1,1,100g-2\nR1,n2 mlx5_0,Port 1,R2,leaf1,2,forced 100gfull\n"
      "R1,n3 mlx5_0,Port 1,R2,leaf1,3,auto 25gfull\n";
  const auto read = read_cabling_list("ndt.csv", rows, *columns);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->cables.size(), 3U);
  EXPECT_EQ(read->nodes[0].name, "n1");
  EXPECT_EQ(read->cables[0].bandwidth_bytes_per_s, 100e9 / 8);
  EXPECT_EQ(read->cables[1].bandwidth_bytes_per_s, 100e9 / 8);
  EXPECT_EQ(read->cables[2].bandwidth_bytes_per_s, 25e9 / 8);
  // A known header is no cable.
  const auto headed = read_cabling_list(
      "ndt.csv", "Rack,StartDevice,StartPort,Rack,EndDevice,EndPort,Speed\n" + rows, *columns);
  ASSERT_TRUE(headed) << headed.error().message;
  EXPECT_EQ(headed->cables.size(), 3U);
  const auto few = read_cabling_list("ndt.csv", rows, *parse_list_columns("2,3,5,9"));
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().message, "ndt.csv:1: the list has no column 9; it has 7 columns");
}

}  // namespace
}  // namespace hips::topology

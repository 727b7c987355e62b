#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include <hips/topology.hpp>

#include "tools/lab/guest/guest.hpp"
#include "tools/lab/guest/guests.hpp"
#include "tools/lab/network/network.hpp"
#include "tools/lab/network/shaping.hpp"
#include "tools/lab/process/child.hpp"
#include "tools/lab/process/frames.hpp"
#include "tools/lab/process/start_request.hpp"
#include "tools/lab/server_setup.hpp"

namespace hips::lab {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(Frames, AreFoundHoweverTheStreamIsCut) {
  std::string wire;
  append_frame(wire, FrameKind::kStart, 7, "a program");
  append_frame(wire, FrameKind::kExit, 0x01020304, "");
  append_frame(wire, FrameKind::kOutput, 9, std::string(100'000, 'x'));
  for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, std::size_t{4096}, wire.size()}) {
    AgentFrameReader reader;
    std::vector<AgentFrame> frames;
    for (std::size_t at = 0; at < wire.size(); at += piece) {
      reader.add(std::string_view(wire).substr(at, piece));
      for (auto frame = reader.next(); frame && *frame; frame = reader.next()) frames.push_back(**frame);
    }
    ASSERT_EQ(frames.size(), 3u);
    EXPECT_EQ(frames[0].kind, FrameKind::kStart);
    EXPECT_EQ(frames[0].process, 7u);
    EXPECT_EQ(frames[0].payload, "a program");
    EXPECT_EQ(frames[1].process, 0x01020304u);
    EXPECT_EQ(frames[2].payload.size(), 100'000u);
  }
}

TEST(Frames, AStreamOfSomethingElseIsAnError) {
  AgentFrameReader reader;
  reader.add("GET / HTTP/1.1\r\n");
  EXPECT_FALSE(reader.next().has_value());
  std::string huge;
  append_frame(huge, FrameKind::kOutput, 1, "");
  huge[8] = '\x7f';  // the highest byte of the size
  AgentFrameReader other;
  other.add(huge);
  EXPECT_FALSE(other.next().has_value());
}

TEST(StartRequest, ComesBackFromJson) {
  const StartRequest request{{"sh", "-c", "echo \"x\" 'y'\n"}, {{"HIPS_RANK", "3"}}, "/tmp/a b", true};
  const auto back = parse_start_request(to_json(request));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->argv, request.argv);
  EXPECT_EQ(back->env, request.env);
  EXPECT_EQ(back->folder, request.folder);
  EXPECT_TRUE(back->shared);
}

TEST(StartRequest, AnythingElseIsAnError) {
  for (const char* text :
       {"", "{", "[]", "{\"argv\": []}", "{\"argv\": [], \"env\": {}, \"folder\": \"\", \"shared\": 0}",
        "{\"argv\": [1], \"env\": {}, \"folder\": \"\", \"shared\": true}",
        "{\"argv\": [], \"env\": {}, \"folder\": \"\", \"shared\": true}"}) {
    EXPECT_FALSE(parse_start_request(text).has_value()) << text;
  }
}

TEST(Shaping, TakesWhatTcTakesAndNamesTheRest) {
  for (const char* rate : {"4mbit", "2.5gbit", "800kbit"})
    EXPECT_TRUE(check_shaping({.rate = rate, .loss = {}}).ok());
  for (const char* rate : {"fast", "4", "0mbit", "4 mbit", "4mbit; reboot"}) {
    EXPECT_THAT(check_shaping({.rate = rate, .loss = {}}).message, HasSubstr("write --rate 4mbit")) << rate;
  }
  for (const char* delay : {"2ms", "100us", "0.5ms", "1s"}) EXPECT_TRUE(check_shaping({.delay = delay}).ok());
  for (const char* delay : {"2", "-1ms", "slow", "2ms; reboot"}) {
    EXPECT_THAT(check_shaping({.delay = delay}).message, HasSubstr("write --delay 2ms")) << delay;
  }
  for (const char* loss : {"1%", "0.1%", "99%"}) EXPECT_TRUE(check_shaping({.rate = {}, .loss = loss}).ok());
  for (const char* loss : {"1", "100%", "-1%", "some"}) {
    EXPECT_THAT(check_shaping({.rate = {}, .loss = loss}).message, HasSubstr("write --loss 1%")) << loss;
  }
}

TEST(Network, ARateIsSetOnTheLabsSideOfEveryNicAndOnBothEndsOfATrunk) {
  const Wiring wiring = value_or_throw(wire(parse_topology("fattree:2")));
  const auto commands = network_commands(wiring, 2, {.rate = "4mbit", .loss = "1%"});
  for (const Port& port : wiring.ports)
    EXPECT_THAT(commands.tc, HasSubstr("dev " + port.tap + " root tbf rate 4mbit"));
  for (const Trunk& trunk : wiring.trunks) {
    EXPECT_THAT(commands.tc, HasSubstr("dev " + trunk.a_end + " root tbf"));
    EXPECT_THAT(commands.tc, HasSubstr("dev " + trunk.b_end + " root tbf"));
  }
  // Each packet is lost once at most: where its guest sends it.
  EXPECT_THAT(commands.tc, Not(HasSubstr("netem")));
  EXPECT_EQ(network_commands(wiring, 2, {}).tc, "");
}

TEST(Network, NoEndIsUpBeforeItHasStoppedFloodingWhereSwitchesHaveFixedTables) {
  const Wiring wiring = value_or_throw(wire(parse_topology("fattree:4")));
  const std::string ip = network_commands(wiring, 16, {}).ip;
  std::vector<std::string> ends;
  for (const Port& port : wiring.ports) ends.push_back(port.tap);
  for (const Trunk& trunk : wiring.trunks) ends.insert(ends.end(), {trunk.a_end, trunk.b_end});
  for (const std::string& end : ends) {
    const auto stops = ip.find("link set " + end +
                               " type bridge_slave learning off flood off mcast_flood off bcast_flood off\n");
    const std::regex goes_up("link set " + end + " .*\\bup\n");
    std::smatch up;
    ASSERT_TRUE(std::regex_search(ip, up, goes_up)) << end;
    EXPECT_LT(stops, static_cast<std::size_t>(up.position())) << end;
  }
}

TEST(GuestScript, NamesNicsAfterTheTopologyAndShapesWhatTheyLetOut) {
  const Wiring wiring = value_or_throw(wire(parse_topology("bcube:2,1")));
  const std::string script = guest_script({.num_guests = 4, .slots = 2, .writable = {"/a 'b'"}}, wiring,
                                          {.rate = "4mbit", .loss = "1%"}, 3);
  for (const Port& port : wiring.ports_of(3)) {
    const std::string nic = "nic" + std::to_string(port.rail);
    EXPECT_THAT(script, HasSubstr(port.mac + ") name=" + nic));
    EXPECT_THAT(script, HasSubstr("addr add " + port.ip + "/24 dev " + nic));
    EXPECT_THAT(script, HasSubstr("link add rxe" + std::to_string(port.rail) + " type rxe netdev " + nic));
    EXPECT_THAT(script, HasSubstr("dev " + nic + " root handle 1: netem limit 100000 loss 1%"));
    EXPECT_THAT(script, HasSubstr("dev " + nic + " parent 1:1 handle 2: tbf rate 4mbit"));
  }
  EXPECT_THAT(script, HasSubstr("node0 slots=2\nnode1 slots=2\n"));
  EXPECT_THAT(script, HasSubstr("'/a '\\''b'\\'''"));
}

TEST(GuestScript, NeighboursAreKnownBeforehandWhereSwitchesFloodNothing) {
  const Wiring tree = value_or_throw(wire(parse_topology("fattree:4")));
  const std::string script = guest_script({.num_guests = 16, .slots = 1, .writable = {}}, tree, {}, 0);
  EXPECT_THAT(script, HasSubstr("neigh add 10.100.0.16 lladdr 02:48:50:00:0f:00 nud permanent dev nic0"));
  EXPECT_THAT(script, HasSubstr("neigh add fe80::48:50ff:fe00:f00 lladdr 02:48:50:00:0f:00"));
  const Wiring cube = value_or_throw(wire(parse_topology("bcube:2,1")));
  EXPECT_THAT(guest_script({.num_guests = 4, .slots = 1, .writable = {}}, cube, {}, 0),
              Not(HasSubstr("neigh add")));
}

TEST(Network, NicsOfNamespacesArePairsWithAnEndInEachServer) {
  const Wiring wiring = value_or_throw(wire(parse_topology("bcube:2,1")));
  const std::vector<pid_t> servers{11, 12, 13, 14};
  const auto commands = network_commands(wiring, 4, {}, servers);
  for (const Port& port : wiring.ports) {
    EXPECT_THAT(commands.ip,
                HasSubstr("link add " + port.tap + " type veth peer name nic" + std::to_string(port.rail) +
                          " address " + port.mac + " mtu 9000 netns " +
                          std::to_string(servers[static_cast<std::size_t>(port.server)]) + "\n"));
  }
  EXPECT_THAT(commands.ip, Not(HasSubstr("tuntap")));
}

TEST(NamespaceScript, RoutesLeadOverServersWhereNoSwitchDoes) {
  // Server 0 of BCube(3,1) shares a switch with 1, 2 (rail 0), 3 and 6 (rail 1). Its neighbours' far NICs and all NICs of
  // the others are two cables away, over the NIC with the address's own number.
  const Wiring cube = value_or_throw(wire(parse_topology("bcube:3,1")));
  const std::string script =
      namespace_script({.num_guests = 9, .slots = 1, .writable = {}}, cube, {}, 0, "/bin/hips");
  std::map<std::string, const Port*> by_ip;
  for (const Port& port : cube.ports) by_ip[port.ip] = &port;
  std::size_t num_routes = 0;
  const std::regex route("route add (\\S+) via (\\S+) dev nic(\\d)");
  for (std::sregex_iterator it(script.begin(), script.end(), route), end; it != end; ++it, ++num_routes) {
    const Port &to = *by_ip.at((*it)[1]), &via = *by_ip.at((*it)[2]);
    const auto own = cube.ports_of(0)[static_cast<std::size_t>(std::stoi((*it)[3]))];
    EXPECT_EQ(via.segment, own.segment) << (*it)[0];
    const auto onward = cube.ports_of(via.server);
    EXPECT_TRUE(via.server == to.server ||
                std::any_of(onward.begin(), onward.end(),
                            [&](const Port& port) {
                              const auto last = cube.ports_of(to.server);
                              return std::any_of(last.begin(), last.end(), [&](const Port& there) {
                                return there.segment == port.segment;
                              });
                            }))
        << (*it)[0];
  }
  // 16 addresses of others; 4 are in the own two segments.
  EXPECT_EQ(num_routes, 12U);
  const Wiring rails = value_or_throw(wire(parse_topology("rail:4,2")));
  EXPECT_THAT(namespace_script({.num_guests = 4, .slots = 1, .writable = {}}, rails, {}, 0, "/bin/hips"),
              Not(HasSubstr("route add")));
}

TEST(EmulatorCommand, PathsMayHoldAnything) {
  GuestOptions options;
  options.emulator = "qemu";
  options.agent = "/opt/my programs/hips";
  options.writable = {"/data,set"};
  options.nics = {{.tap = "s0n1", .mac = "02:48:50:00:00:01", .mtu = 9000}};
  const auto command = emulator_command(options, 5);
  EXPECT_THAT(command, Contains(HasSubstr("hips.agent=/opt/my\\0040programs/hips")));
  EXPECT_THAT(command, Contains(HasSubstr("path=/data,,set,")));
  EXPECT_THAT(command, Contains(HasSubstr("ifname=s0n1")));
  EXPECT_THAT(command, Contains(HasSubstr("mac=02:48:50:00:00:01,host_mtu=9000")));
}

TEST(Child, GivesOutputErrorAndExitOfAProgramThatReadsItsInput) {
  ChildOptions options;
  options.argv = {"sh", "-c", "cat; echo oops >&2; exit 3"};
  const std::string input(300'000, 'i');
  const auto done = run_child(options, input);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->out, input);
  EXPECT_EQ(done->err, "oops\n");
  EXPECT_EQ(exit_code_of(done->wait_status), 3);
  EXPECT_EQ(describe_exit(done->wait_status), "exited with code 3");
}

TEST(Child, AProgramThatIsNotThereExitsWith127AndASignalIsNamed) {
  ChildOptions missing;
  missing.argv = {"no-such-program"};
  const auto done = run_child(missing);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(exit_code_of(done->wait_status), 127);
  EXPECT_EQ(done->err, "no-such-program: No such file or directory\n");

  ChildOptions killed;
  killed.argv = {"sh", "-c", "kill -9 $$"};
  const auto dead = run_child(killed);
  ASSERT_TRUE(dead.has_value());
  EXPECT_EQ(exit_code_of(dead->wait_status), 137);
  EXPECT_THAT(describe_exit(dead->wait_status), HasSubstr("signal 9"));
}

TEST(Child, AProgramThatLeavesItsInputUnreadIsToldAsItEnded) {
  ChildOptions options;
  options.argv = {"false"};
  const auto done = run_child(options, std::string(std::size_t{1} << 20, 'x'));
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(exit_code_of(done->wait_status), 1);
}

TEST(Child, AFolderOfAProgramsNameIsNotTheProgram) {
  const std::string folder = testing::TempDir() + "hips-path-test";
  std::filesystem::create_directories(folder + "/sh");
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder + ":" + path).c_str(), 1);
  EXPECT_THAT(find_on_path("sh").value_or(""), Not(HasSubstr(folder)));
  setenv("PATH", path.c_str(), 1);
  std::filesystem::remove_all(folder);
}

TEST(Guests, OneThatHangsWhileItBootsIsBootedAnew) {
  // An agent that says nothing at its first start.
  const std::string folder = testing::TempDir() + "hips-hanging-guest";
  std::filesystem::create_directories(folder);
  const std::string agent = folder + "/agent";
  std::ofstream(agent) << "#!/bin/sh\n"
                       << "if [ -e " << folder << "/hung ]; then exec " << std::getenv("HIPS_TOOL")
                       << " \"$@\"; fi\n"
                       << "touch " << folder << "/hung; exec sleep 1000\n";
  std::filesystem::permissions(agent, std::filesystem::perms::owner_all);
  GuestOptions options;
  options.accelerator = "host";
  options.agent = agent;
  Guests guests(-1);
  const Status booted = guests.boot({options}, std::chrono::seconds(5));
  EXPECT_TRUE(booted.ok()) << booted.message;
  Job job{0, {}};
  job.request.argv = {"true"};
  const auto outcomes = guests.run(
      {job}, [](auto...) {}, Guests::Clock::now() + std::chrono::minutes(3));
  ASSERT_TRUE(outcomes.has_value());
  EXPECT_TRUE(outcomes->front().ok());
  std::filesystem::remove_all(folder);
}

TEST(DeviceList, IsInRailOrder) {
  EXPECT_EQ(device_list({0, 1}), "rxe0:1,rxe1:1");
  EXPECT_EQ(device_list({0, 0, 1, 1}), "rxe0:1,rxe0:1,rxe1:1,rxe1:1");
  EXPECT_EQ(device_list({9, 10}), "=rxe9:1,rxe10:1");
}

}  // namespace
}  // namespace hips::lab

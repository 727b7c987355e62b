#include <pybind11/stl.h>

#include <fmt/format.h>

#include "lib/base/result.hpp"
#include "lib/cost/bound.hpp"
#include "python/hips/src/plans/bindings.hpp"
#include "tools/hips/picture/svg.hpp"
#include "topology/names.hpp"

namespace py = pybind11;

namespace hips::python {
namespace {

Rank checked(const Topology& topology, Rank rank) {
  if (rank < 0 || rank >= topology.num_ranks())
    throw py::index_error(fmt::format("hips: rank {} is out of range [0, {}]", rank, topology.num_ranks() - 1));
  return rank;
}

/// What a property of a Topology is, by a function of the C++ one.
template <typename Function>
auto of_topology(Function function) {
  return [function](const topology::TopologyFile& self) { return function(self.topology); };
}

}  // namespace

void bind_topology(py::module_& module) {
  py::class_<Level>(module, "Level")
      .def_readonly("name", &Level::name)
      .def_readonly("radix", &Level::radix)
      .def_property_readonly("kind", [](const Level& level) { return to_string(level.kind); })
      .def_readonly("nics", &Level::rails)
      .def_readonly("bandwidth_bytes_per_s", &Level::bandwidth_bytes_per_s)
      .def_readonly("latency_ns", &Level::latency_ns);
  py::class_<Hop>(module, "Hop")
      .def_readonly("source", &Hop::from)
      .def_readonly("target", &Hop::to)
      .def_readonly("source_nic", &Hop::out)
      .def_readonly("target_nic", &Hop::in)
      .def_readonly("level", &Hop::level);
  py::class_<topology::TopologyFile, std::shared_ptr<topology::TopologyFile>>(module, "Topology")
      .def(py::init([](const std::string& spec) { return std::const_pointer_cast<topology::TopologyFile>(load_topology(spec)); }))
      .def_property_readonly("spec", of_topology([](const Topology& topology) { return topology.spec; }))
      .def_property_readonly("name", of_topology([](const Topology& topology) { return topology.name; }))
      .def_property_readonly("num_ranks", of_topology([](const Topology& topology) { return topology.num_ranks(); }))
      .def_property_readonly("num_servers", of_topology([](const Topology& topology) { return topology.num_servers(); }))
      .def_property_readonly("ranks_per_server", of_topology([](const Topology& topology) { return topology.ranks_per_server; }))
      .def_property_readonly("num_nics", of_topology([](const Topology& topology) { return topology.num_rails; }))
      .def_property_readonly("num_switches", of_topology([](const Topology& topology) { return topology.num_switches; }))
      .def_property_readonly("num_cables", of_topology([](const Topology& topology) { return topology.num_links; }))
      .def_property_readonly("servers_relay", of_topology([](const Topology& topology) { return topology.servers_relay; }))
      .def_property_readonly("levels", of_topology([](const Topology& topology) { return topology.levels; }))
      .def_readonly("server_names", &topology::TopologyFile::server_names)
      .def("address", [](const topology::TopologyFile& self, Rank rank) { return self.topology.address(checked(self.topology, rank)); })
      .def("neighbours", [](const topology::TopologyFile& self, Rank rank) { return self.topology.neighbours(checked(self.topology, rank)); })
      .def("route",
           [](const topology::TopologyFile& self, Rank source, Rank target) {
             return self.topology.route(checked(self.topology, source), checked(self.topology, target));
           })
      .def("bound",
           [](const topology::TopologyFile& self, std::uint64_t bytes) {
             const cost::Bound bound = cost::bound(self.topology);
             return bound.cuts.empty() ? 0.0 : bound.seconds(static_cast<double>(bytes));
           })
      .def("svg", [](const topology::TopologyFile& self) { return value_or_throw(picture::topology_svg(self)); })
      .def("yaml", [](const topology::TopologyFile& self, bool all_cables) { return value_or_throw(topology::topology_file_text(self, all_cables)); })
      .def("equals", [](const topology::TopologyFile& self, const topology::TopologyFile& other) { return self == other; });
}

}  // namespace hips::python

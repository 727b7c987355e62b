// The Python module hips._comm: communicators on the C API. python/hips/communicator.py is what users see.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "python/hips/src/comm/communicator.hpp"
#include "python/hips/src/comm/memory.hpp"
#include "python/hips/src/comm/model.hpp"
#include "python/hips/src/comm/request.hpp"
#include "python/hips/src/comm/table.hpp"

PYBIND11_MODULE(_comm, module) {
  namespace py = pybind11;
  using namespace hips::python;  // NOLINT: only here

  py::enum_<hips_op_t>(module, "Op", "What reduces the elements of all ranks.")
      .value("SUM", HIPS_SUM)
      .value("PROD", HIPS_PROD)
      .value("MIN", HIPS_MIN)
      .value("MAX", HIPS_MAX)
      .value("AVG", HIPS_AVG)
      .value("BAND", HIPS_BAND)
      .value("BOR", HIPS_BOR)
      .value("BXOR", HIPS_BXOR)
      .value("LAND", HIPS_LAND)
      .value("LOR", HIPS_LOR)
      .value("LXOR", HIPS_LXOR);
  py::enum_<Kind>(module, "Kind")
      .value("ALLREDUCE", Kind::kAllreduce)
      .value("REDUCE", Kind::kReduce)
      .value("BCAST", Kind::kBcast)
      .value("ALLGATHER", Kind::kAllgather)
      .value("REDUCE_SCATTER", Kind::kReduceScatter)
      .value("GATHER", Kind::kGather)
      .value("SCATTER", Kind::kScatter)
      .value("ALLTOALL", Kind::kAlltoall)
      .value("BARRIER", Kind::kBarrier);
  py::class_<Request>(module, "Request")
      .def("start", &Request::start)
      .def("test", &Request::test)
      .def("wait", &Request::wait)
      .def("abandon", &Request::abandon)
      .def_property_readonly("result", &Request::result);
  const auto options = [](py::object in, py::object out, hips_op_t op, int root) {
    return CallOptions{std::move(in), std::move(out), op, root};
  };
  py::class_<Comm>(module, "Comm")
      .def(py::init([](std::string topology, std::string algorithm, std::string pattern, std::string name, std::int64_t timeout_ms, int rank,
                       int size, py::object allgather) {
        return std::make_unique<Comm>(Settings{std::move(topology), std::move(algorithm), std::move(pattern), std::move(name), timeout_ms,
                                               rank, size, std::move(allgather)});
      }))
      .def("close", &Comm::close)
      .def_property_readonly("rank", &Comm::rank)
      .def_property_readonly("size", &Comm::size)
      .def("describe", &Comm::describe)
      .def("split", &Comm::split)
      .def("duplicate", &Comm::duplicate)
      .def("shrink", &Comm::shrink)
      .def("abort", &Comm::abort)
      .def("run", [options](Comm& self, Kind kind, py::object in, py::object out, hips_op_t op,
                            int root) { self.run(kind, options(std::move(in), std::move(out), op, root)); })
      .def("start", [options](Comm& self, Kind kind, py::object in, py::object out, hips_op_t op,
                              int root) { return self.start(kind, options(std::move(in), std::move(out), op, root)); })
      .def("prepare", [options](Comm& self, Kind kind, py::object in, py::object out, hips_op_t op,
                                int root) { return self.prepare(kind, options(std::move(in), std::move(out), op, root)); })
      .def("allreduce_coalesced", &Comm::allreduce_coalesced)
      .def("start_allreduce_coalesced", &Comm::start_allreduce_coalesced);
  py::enum_<Access>(module, "Access")
      .value("PULL", Access::kPull)
      .value("PUSH", Access::kPush)
      .value("SET", Access::kSet)
      .value("LOCALIZE", Access::kLocalize);
  py::class_<RowsByKey>(module, "Table")
      .def(py::init<const Comm&, std::uint64_t, const py::object&, hips_op_t, std::uint64_t, std::uint64_t, std::uint64_t>())
      .def("recover", &RowsByKey::recover)
      .def("close", &RowsByKey::close)
      .def("advance_clock", &RowsByKey::advance_clock)
      .def("intent", &RowsByKey::intent)
      .def("abort", &RowsByKey::abort)
      .def("run", &RowsByKey::run)
      .def("start", &RowsByKey::start)
      .def("pull_if_local", &RowsByKey::pull_if_local);
  py::class_<SharedValues>(module, "Model")
      .def(py::init<const Comm&, const py::object&, std::uint32_t, std::uint64_t, bool, double>())
      .def("recover", &SharedValues::recover)
      .def("close", &SharedValues::close)
      .def("abort", &SharedValues::abort)
      .def("num_shards", &SharedValues::num_shards)
      .def("shard", &SharedValues::shard)
      .def("run", &SharedValues::run)
      .def("start", &SharedValues::start);
  py::class_<Memory>(module, "Memory", py::buffer_protocol()).def(py::init<std::size_t>()).def_buffer(&Memory::view);
  module.def("wait_all", &Request::wait_all);
  module.def("wait_any", &Request::wait_any);
  module.def("version", hips_version);
}

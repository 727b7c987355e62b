#include <pybind11/stl.h>

#include "lib/base/collective.hpp"
#include "python/hips/src/plans/bindings.hpp"

namespace py = pybind11;

namespace hips::python {
namespace {

const char* text_of(StepOp op) {
  return op == StepOp::kSend ? "send" : op == StepOp::kReduce ? "reduce" : "copy";
}
const char* text_of(Phase phase) {
  return phase == Phase::kScatter ? "scatter" : "gather";
}
const char* text_of(Pattern pattern) {
  return pattern == Pattern::kMesh ? "mesh" : pattern == Pattern::kRing ? "ring" : "ps";
}
py::tuple tuple_of(const BufferRange& range) {
  const char* const name = range.buffer == Buffer::kInput ? "input" : range.buffer == Buffer::kOutput ? "output" : "scratch";
  return py::make_tuple(name, range.blocks.first, range.blocks.count);
}

/// A step with the keys that it has in a plan's JSON.
py::dict dict_of(const Program& program, const Step& step) {
  py::list sources;
  for (const Source& source : program.sources_of(step)) {
    if (source.kind == Source::Kind::kLocal)
      sources.append(tuple_of(source.local));
    else
      sources.append(py::dict(py::arg("peer") = source.peer, py::arg("rail") = source.rail));
  }
  py::dict entry(py::arg("op") = text_of(step.op), py::arg("phase") = text_of(step.phase), py::arg("lane") = step.lane,
                 py::arg("stage") = step.stage, py::arg("level") = step.level, py::arg("round") = step.round,
                 py::arg("dst") = tuple_of(step.dst), py::arg("srcs") = sources);
  if (step.op == StepOp::kSend) {
    entry["peer"] = step.peer;
    entry["rail"] = step.rail;
  }
  const auto after = program.after(step);
  entry["after"] = std::vector<StepId>(after.begin(), after.end());
  return entry;
}

py::list steps_of(const Program& program) {
  py::list steps;
  for (const Step& step : program.steps) steps.append(dict_of(program, step));
  return steps;
}

/// The lanes: the share of the vector, and (phase, level, pattern) of each stage.
py::list lanes_of(const PlanShape& shape) {
  py::list lanes;
  for (const LaneInfo& lane : shape.lanes) {
    py::list stages;
    for (const StageInfo& stage : lane.stages) stages.append(py::make_tuple(text_of(stage.phase), stage.level, text_of(stage.pattern)));
    lanes.append(py::make_tuple(lane.blocks.first, lane.blocks.count, stages));
  }
  return lanes;
}

Collective collective_of(const std::string& name) {
  for (int value = 0; value < kNumCollectives; ++value) {
    const auto collective = static_cast<Collective>(value);
    if (name == to_string(collective)) return collective;
  }
  throw py::value_error("hips: check: unknown collective \"" + name + "\"; expected \"allreduce\", \"reduce_scatter\", \"allgather\", ...");
}

}  // namespace

void bind_plan(py::module_& module) {
  py::class_<cost::Cost>(module, "Cost")
      .def_property_readonly("seconds", &cost::Cost::seconds)
      .def_readonly("latency_seconds", &cost::Cost::latency_seconds)
      .def_readonly("bandwidth_seconds", &cost::Cost::bandwidth_seconds)
      .def_readonly("barrier_seconds", &cost::Cost::barrier_seconds)
      .def_readonly("bound_seconds", &cost::Cost::bound_seconds)
      .def_readonly("ratio", &cost::Cost::ratio)
      .def_readonly("num_steps", &cost::Cost::num_steps)
      .def_property_readonly("bytes", [](const cost::Cost& cost) { return cost.volume.bytes(); })
      .def_property_readonly("busiest", [](const cost::Cost& cost) { return cost.busiest.name; })
      .def_property_readonly("busiest_bytes", [](const cost::Cost& cost) { return cost.busiest.bytes; });
  py::class_<plan::Finding>(module, "Finding")
      .def_property_readonly("is_error", [](const plan::Finding& finding) { return plan::severity_of(finding.kind) == plan::Severity::kError; })
      .def_property_readonly("kind", [](const plan::Finding& finding) { return plan::to_string(finding.kind); })
      .def_readonly("text", &plan::Finding::text)
      .def_readonly("example", &plan::Finding::example)
      .def_property_readonly("rank", [](const plan::Finding& finding) { return finding.where.rank; })
      .def_property_readonly("step", [](const plan::Finding& finding) { return finding.where.step; });
  py::class_<plan::CheckReport>(module, "Report")
      .def_property_readonly("proved", &plan::CheckReport::ok)
      .def_readonly("findings", &plan::CheckReport::findings)
      .def_property_readonly("num_errors", &plan::CheckReport::num_errors)
      .def_readonly("num_ranks", &plan::CheckReport::num_ranks)
      .def_readonly("num_blocks", &plan::CheckReport::num_blocks)
      .def_readonly("num_steps", &plan::CheckReport::num_steps)
      .def_readonly("num_messages", &plan::CheckReport::num_messages);
  py::class_<PlanObject>(module, "Plan")
      .def_static("make",
                  [](const std::shared_ptr<topology::TopologyFile>& topology, const std::string& algorithm, const std::string& pattern,
                     std::int32_t leaders, std::int32_t rings,
                     std::uint64_t bytes) { return PlanObject::make(topology, {algorithm, pattern, leaders, rings}, bytes); })
      .def_static("read", [](const std::string& path, const std::shared_ptr<topology::TopologyFile>& topology) { return PlanObject::read(path, topology); })
      .def_property_readonly("topology", [](const PlanObject& self) { return std::const_pointer_cast<topology::TopologyFile>(self.topology()); })
      .def_property_readonly("algorithm", [](const PlanObject& self) { return self.shape().algorithm; })
      .def_property_readonly("description", [](const PlanObject& self) { return self.shape().description; })
      .def_property_readonly("num_ranks", [](const PlanObject& self) { return self.shape().num_ranks; })
      .def_property_readonly("num_steps", [](const PlanObject& self) { return self.shape().num_steps; })
      .def_property_readonly("neighbours_only", [](const PlanObject& self) { return self.shape().neighbours_only; })
      .def_property_readonly("lanes", [](const PlanObject& self) { return lanes_of(self.shape()); })
      .def_property_readonly("num_blocks", [](const PlanObject& self) { return self.shape().blocks.num_blocks; })
      .def_property_readonly("selected", &PlanObject::selected)
      .def("program", [](const PlanObject& self, Rank rank) { return steps_of(self.program(rank)); })
      .def("text", &PlanObject::text)
      .def("cost", &PlanObject::cost)
      .def("check",
           [](const PlanObject& self, std::optional<std::int64_t> count, std::int32_t credits, std::int32_t segments,
              const std::string& collective, Rank root) {
             const plan::CheckOptions options{
                 .collective = collective_of(collective), .root = root, .count = count, .segments = segments, .credits = credits};
             const py::gil_scoped_release released;
             return self.check(options);
           })
      .def("json", &PlanObject::json)
      .def("html", &PlanObject::html);
}

}  // namespace hips::python

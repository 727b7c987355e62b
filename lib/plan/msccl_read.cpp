#include "lib/plan/msccl_read.hpp"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/plan/flat.hpp"
#include "lib/plan/msccl_algorithm.hpp"
#include "lib/plan/xml_tree.hpp"
#include "topology/walk.hpp"

namespace hips::plan {
namespace {

constexpr std::int64_t kMostGpus = 1 << 16, kMostChunks = 1 << 20, kMostChannels = 1 << 10;
/// Steps times their chunks, which are looked at one by one.
constexpr std::int64_t kMostTouched = std::int64_t{1} << 26;

class MscclReader {
 public:
  Result<Plan> read(const XmlElement& algo) {
    if (auto head = read_head(algo); !head) return fail(head.error());
    for (const XmlElement& gpu : algo.children) {
      if (auto read = read_gpu(gpu); !read) return fail(read.error());
    }
    if (static_cast<std::int64_t>(algorithm_.gpus.size()) != num_gpus_)
      return bad(algo, fmt::format("has {} gpu elements; ngpus is {}", algorithm_.gpus.size(), num_gpus_));
    for (MscclGpu& gpu : algorithm_.gpus) {
      if (auto sorted = sort(algo, gpu); !sorted) return fail(sorted.error());
    }
    return plan_of(algorithm_);
  }

 private:
  static tl::unexpected<Status> bad(const XmlElement& element, std::string_view what) {
    return fail(Code::kInvalidArgument,
                fmt::format("msccl: line {}: {} {}", element.line, element.name, what));
  }

  static Result<std::int64_t> number(const XmlElement& element, const char* key, std::int64_t least,
                                     std::int64_t most) {
    const std::string* text = element.attribute(key);
    if (text == nullptr) return bad(element, fmt::format("lacks {}=\"...\"", key));
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc() || end != text->data() + text->size() || value < least || value > most) {
      return bad(element,
                 fmt::format("has {}=\"{}\"; it must be {} to {}", key, text->substr(0, 40), least, most));
    }
    return value;
  }

  Result<void> read_head(const XmlElement& algo) {
    if (algo.name != "algo") return bad(algo, "is not how an algorithm begins, which is <algo ...>");
    const std::string* coll = algo.attribute("coll");
    if (coll == nullptr || *coll != "allreduce") {
      return fail(Code::kUnsupported,
                  fmt::format("msccl: line {}: coll is \"{}\"; plans are read of allreduce", algo.line,
                              coll == nullptr ? "" : coll->substr(0, 40)));
    }
    const auto gpus = number(algo, "ngpus", 1, kMostGpus);
    if (!gpus) return fail(gpus.error());
    const auto chunks = number(algo, "nchunksperloop", 1, kMostChunks);
    if (!chunks) return fail(chunks.error());
    if (const std::string* name = algo.attribute("name")) {
      for (const char c : name->substr(0, 80)) algorithm_.name += c < ' ' || c > '~' ? '?' : c;
    }
    num_gpus_ = *gpus;
    algorithm_.num_chunks = *chunks;
    if (algo.attribute("inplace") != nullptr) {
      const auto in_place = number(algo, "inplace", 0, 1);
      if (!in_place) return fail(in_place.error());
      algorithm_.in_place = *in_place == 1;
    }
    return {};
  }

  Result<void> read_gpu(const XmlElement& element) {
    if (element.name != "gpu") return bad(element, "stands where gpu should");
    const auto id = number(element, "id", 0, num_gpus_ - 1);
    if (!id) return fail(id.error());
    if (*id != static_cast<std::int64_t>(algorithm_.gpus.size()))
      return bad(element,
                 fmt::format("has id={}, after {} others; they stand in order", *id, algorithm_.gpus.size()));
    MscclGpu gpu;
    for (const XmlElement& tb : element.children) {
      if (auto read = read_block(tb, gpu); !read) return read;
    }
    algorithm_.gpus.push_back(std::move(gpu));
    return {};
  }

  Result<void> read_block(const XmlElement& element, MscclGpu& gpu) {
    if (element.name != "tb") return bad(element, "stands where tb should");
    const auto id = number(element, "id", 0, 1 << 20);
    const auto send = number(element, "send", -1, num_gpus_ - 1);
    const auto recv = number(element, "recv", -1, num_gpus_ - 1);
    const auto channel = number(element, "chan", 0, kMostChannels - 1);
    for (const auto* each : {&id, &send, &recv, &channel}) {
      if (!*each) return fail(each->error());
    }
    if (*id != static_cast<std::int64_t>(gpu.blocks.size()))
      return bad(element,
                 fmt::format("has id={}, after {} others; they stand in order", *id, gpu.blocks.size()));
    MscclBlock block{
        static_cast<Rank>(*send), static_cast<Rank>(*recv), static_cast<std::int32_t>(*channel), {}};
    const auto self = static_cast<Rank>(algorithm_.gpus.size());
    if (block.send == self || block.recv == self)
      return bad(element, fmt::format("sends or receives to gpu {} itself", self));
    algorithm_.num_channels = std::max(algorithm_.num_channels, block.lane + 1);
    for (const XmlElement& step : element.children) {
      if (auto read = read_step(step, block); !read) return read;
    }
    gpu.blocks.push_back(std::move(block));
    return {};
  }

  Result<BufferRange> read_range(const XmlElement& element, const char* buffer_key, const char* offset_key,
                                 std::int64_t count) const {
    const std::string* name = element.attribute(buffer_key);
    if (name == nullptr || (*name != "i" && *name != "o" && *name != "s"))
      return bad(element, fmt::format("has {}=\"{}\"; it must be i, o or s", buffer_key,
                                      name == nullptr ? "" : name->substr(0, 40)));
    const auto offset = number(element, offset_key, 0, algorithm_.num_chunks - count);
    if (!offset) return fail(offset.error());
    if (*name == "s") {
      return fail(
          Code::kUnsupported,
          fmt::format("msccl: line {}: {} is s; chunks stay in place here, and scratch has other places",
                      element.line, buffer_key));
    }
    return BufferRange{*name == "i" && !algorithm_.in_place ? Buffer::kInput : Buffer::kOutput,
                       {*offset, count}};
  }

  Result<void> read_step(const XmlElement& element, MscclBlock& block) {
    if (element.name != "step") return bad(element, "stands where step should");
    const auto place = number(element, "s", 0, INT32_MAX);
    if (!place) return fail(place.error());
    if (*place != static_cast<std::int64_t>(block.steps.size()))
      return bad(element,
                 fmt::format("has s={}, after {} others; they stand in order", *place, block.steps.size()));
    const std::string* type = element.attribute("type");
    const std::string kind = type == nullptr ? "" : type->substr(0, 40);
    MscclStep step;
    step.line = element.line;
    if (kind == "s") {
      step.sends = true;
    } else if (kind == "r" || kind == "rcs") {
      step.receives = step.stores = true;
      step.sends = kind == "rcs";
    } else if (kind == "rrc" || kind == "rrcs" || kind == "rrs") {
      step.receives = step.reduces = true;
      step.stores = kind != "rrs";
      step.sends = kind != "rrc";
    } else if (kind == "cpy") {
      step.copies = step.stores = true;
    } else if (kind != "nop") {
      if (kind == "re")
        return fail(
            Code::kUnsupported,
            fmt::format("msccl: line {}: type is re; local sums of other chunks are not read", element.line));
      return bad(element,
                 fmt::format("has type=\"{}\"; it must be s, r, rcs, rrs, rrc, rrcs, cpy or nop", kind));
    }
    if (step.sends && block.send < 0)
      return bad(element, fmt::format("has type=\"{}\", but its tb has send=-1", kind));
    if (step.receives && block.recv < 0)
      return bad(element, fmt::format("has type=\"{}\", but its tb has recv=-1", kind));
    if (kind != "nop") {
      const auto count = number(element, "cnt", 1, algorithm_.num_chunks);
      if (!count) return fail(count.error());
      touched_ += *count;
      if (touched_ > kMostTouched)
        return bad(element, "is beyond what is read: too many steps of too many chunks");
      const auto from = read_range(element, "srcbuf", "srcoff", *count);
      const auto to = read_range(element, "dstbuf", "dstoff", *count);
      if (!from) return fail(from.error());
      if (!to) return fail(to.error());
      if (from->blocks != to->blocks) {
        return fail(Code::kUnsupported,
                    fmt::format("msccl: line {}: chunk {} goes to chunk {}; they stay in place here",
                                element.line, from->blocks.first, to->blocks.first));
      }
      step.chunks = from->blocks;
      step.from = from->buffer;
      if (step.stores && !algorithm_.in_place && to->buffer == Buffer::kInput)
        return fail(
            Code::kUnsupported,
            fmt::format("msccl: line {}: an input is overwritten, and inplace is not 1", element.line));
    }
    const auto dep_block = number(element, "depid", -1, INT32_MAX);
    const auto dep_step = number(element, "deps", -1, INT32_MAX);
    if (!dep_block) return fail(dep_block.error());
    if (!dep_step) return fail(dep_step.error());
    step.dep_block = static_cast<std::int32_t>(*dep_block);
    step.dep_step = static_cast<std::int32_t>(*dep_step);
    block.steps.push_back(std::move(step));
    return {};
  }

  /// An order of a GPU's steps in which each comes after those it waits for, in its block and in others.
  Result<void> sort(const XmlElement& algo, MscclGpu& gpu) const {
    std::vector<std::size_t> done(gpu.blocks.size(), 0);
    std::size_t left = 0;
    for (const MscclBlock& block : gpu.blocks) {
      left += block.steps.size();
      for (const MscclStep& step : block.steps) {
        if (step.dep_block < 0) continue;
        const auto dep = static_cast<std::size_t>(step.dep_block);
        if (dep >= gpu.blocks.size() || step.dep_step < 0 ||
            static_cast<std::size_t>(step.dep_step) >= gpu.blocks[dep].steps.size()) {
          return fail(Code::kInvalidArgument,
                      fmt::format("msccl: line {}: step waits for step {} of tb {}, which is not there",
                                  step.line, step.dep_step, step.dep_block));
        }
      }
    }
    for (bool moved = true; moved && left > 0;) {
      moved = false;
      for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
        const auto& steps = gpu.blocks[b].steps;
        while (done[b] < steps.size()) {
          const MscclStep& step = steps[done[b]];
          if (step.dep_block >= 0 && static_cast<std::size_t>(step.dep_block) != b &&
              done[static_cast<std::size_t>(step.dep_block)] <= static_cast<std::size_t>(step.dep_step))
            break;
          gpu.order.emplace_back(static_cast<std::int32_t>(b), static_cast<std::int32_t>(done[b]++));
          moved = true;
          --left;
        }
      }
    }
    if (left > 0) return bad(algo, fmt::format("has {} steps of one gpu that wait for each other", left));
    return {};
  }

  MscclAlgorithm algorithm_;
  std::int64_t num_gpus_ = 0, touched_ = 0;
};

}  // namespace

bool is_msccl(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '<';
}

Result<Plan> read_msccl(std::string_view text) {
  const auto root = read_xml(text);
  if (!root) return fail(root.error().code, "msccl: " + root.error().message);
  return MscclReader().read(*root);
}

void set_rails(const Topology& topology, Plan& plan) {
  if (topology.num_ranks() != plan.shape.num_ranks) return;
  const std::int64_t local = topology.ranks_per_server;
  bool one_hop = true;
  // Any two servers of a rack reach each other by each of their NICs.
  const bool rack = !topology.servers_relay && topology.num_rails > 1;
  const auto rail_of = [&](Rank from, Rank to, std::int32_t lane, bool out) {
    if (from / local == to / local) return kNoRail;
    if (rack) return static_cast<Rail>(lane % topology.num_rails);
    return out ? routed_link(topology, from, to).out : routed_link(topology, to, from).in;
  };
  const auto count_hops = [&](Rank from, Rank to) {
    std::int64_t hops = 0;
    topology::walk(topology, from, to, kNoRail, [&](const Hop&) { ++hops; });
    one_hop = one_hop && hops <= 1;
  };
  for (Program& program : plan.programs) {
    for (Step& step : program.steps) {
      if (step.op == StepOp::kSend) {
        if (step.peer < 0 || step.peer >= plan.shape.num_ranks) return;
        count_hops(program.rank, step.peer);
        if (step.rail == kNoRail) step.rail = rail_of(program.rank, step.peer, step.lane, true);
      }
      for (std::int32_t i = 0; i < step.num_sources; ++i) {
        Source& source = program.sources[step.first_source + i];
        if (source.kind == Source::Kind::kMessage && source.rail == kNoRail)
          source.rail = rail_of(source.peer, program.rank, step.lane, false);
      }
    }
  }
  plan.shape.neighbours_only = one_hop;
}

}  // namespace hips::plan

#include "lib/plan/formats/msccl/read_msccl.hpp"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "lib/base/xml/xml_tree.hpp"
#include "lib/plan/formats/msccl/msccl_algorithm.hpp"

namespace hips::plan {
namespace {

constexpr std::int64_t kMostGpus = 1 << 16, kMostChunks = 1 << 20, kMostChannels = 1 << 10;
/// Steps times their chunks, which are visited one by one.
constexpr std::int64_t kMostVisited = std::int64_t{1} << 26;

class MscclReader {
 public:
  Result<Plan> read(const XmlElement& algo) {
    if (auto head = read_head(algo); !head) return fail(head.error());
    for (const XmlElement& gpu : algo.children) {
      if (auto read = read_gpu(gpu); !read) return fail(read.error());
    }
    if (static_cast<std::int64_t>(algorithm_.gpus.size()) != num_gpus_)
      return bad(algo,
                 fmt::format("has {} gpu elements, but ngpus is {}", algorithm_.gpus.size(), num_gpus_));
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
    if (text == nullptr) return bad(element, fmt::format("misses the attribute {}", key));
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (error != std::errc() || end != text->data() + text->size() || value < least || value > most) {
      return bad(element, fmt::format("has invalid {}=\"{}\" (valid: {} to {})", key, text->substr(0, 40),
                                      least, most));
    }
    return value;
  }

  Result<void> read_head(const XmlElement& algo) {
    if (algo.name != "algo") return bad(algo, "found; expected algo");
    const std::string* coll = algo.attribute("coll");
    if (coll == nullptr || *coll != "allreduce") {
      return fail(Code::kUnsupported,
                  fmt::format("msccl: line {}: unsupported coll \"{}\"; expected allreduce", algo.line,
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
    if (element.name != "gpu") return bad(element, "found; expected gpu");
    const auto id = number(element, "id", 0, num_gpus_ - 1);
    if (!id) return fail(id.error());
    if (*id != static_cast<std::int64_t>(algorithm_.gpus.size()))
      return bad(element,
                 fmt::format("has id={}; expected {}, as gpus are in order", *id, algorithm_.gpus.size()));
    MscclGpu gpu;
    for (const XmlElement& tb : element.children) {
      if (auto read = read_block(tb, gpu); !read) return read;
    }
    algorithm_.gpus.push_back(std::move(gpu));
    return {};
  }

  Result<void> read_block(const XmlElement& element, MscclGpu& gpu) {
    if (element.name != "tb") return bad(element, "found; expected tb");
    const auto id = number(element, "id", 0, 1 << 20);
    const auto send = number(element, "send", -1, num_gpus_ - 1);
    const auto recv = number(element, "recv", -1, num_gpus_ - 1);
    const auto channel = number(element, "chan", 0, kMostChannels - 1);
    for (const auto* each : {&id, &send, &recv, &channel}) {
      if (!*each) return fail(each->error());
    }
    if (*id != static_cast<std::int64_t>(gpu.blocks.size()))
      return bad(element, fmt::format("has id={}; expected {}, as thread blocks are in order", *id,
                                      gpu.blocks.size()));
    MscclBlock block{
        static_cast<Rank>(*send), static_cast<Rank>(*recv), static_cast<std::int32_t>(*channel), {}};
    const auto self = static_cast<Rank>(algorithm_.gpus.size());
    if (block.send == self || block.recv == self)
      return bad(element, fmt::format("sends to or receives from its own gpu {}", self));
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
      return bad(element, fmt::format("has invalid {}=\"{}\"; expected i, o or s", buffer_key,
                                      name == nullptr ? "" : name->substr(0, 40)));
    const auto offset = number(element, offset_key, 0, algorithm_.num_chunks - count);
    if (!offset) return fail(offset.error());
    if (*name == "s") {
      return fail(
          Code::kUnsupported,
          fmt::format("msccl: line {}: unsupported {}=\"s\": chunks must stay at their place of the vector",
                      element.line, buffer_key));
    }
    return BufferRange{*name == "i" && !algorithm_.in_place ? Buffer::kInput : Buffer::kOutput,
                       {*offset, count}};
  }

  /// Sets what a step does from its type.
  static Result<void> read_type(const XmlElement& element, const MscclBlock& block, const std::string& type,
                                MscclStep& step) {
    if (type == "s") {
      step.sends = true;
    } else if (type == "r" || type == "rcs") {
      step.receives = step.stores = true;
      step.sends = type == "rcs";
    } else if (type == "rrc" || type == "rrcs" || type == "rrs") {
      step.receives = step.reduces = true;
      step.stores = type != "rrs";
      step.sends = type != "rrc";
    } else if (type == "cpy") {
      step.copies = step.stores = true;
    } else if (type == "re") {
      return fail(
          Code::kUnsupported,
          fmt::format("msccl: line {}: unsupported type \"re\", a sum of local chunks", element.line));
    } else if (type != "nop") {
      return bad(
          element,
          fmt::format("has invalid type=\"{}\"; expected s, r, rcs, rrs, rrc, rrcs, cpy or nop", type));
    }
    if (step.sends && block.send < 0)
      return bad(element, fmt::format("has type=\"{}\", but its tb has send=-1", type));
    if (step.receives && block.recv < 0)
      return bad(element, fmt::format("has type=\"{}\", but its tb has recv=-1", type));
    return {};
  }

  /// Sets the chunks of a step, which must stay at their place.
  Result<void> read_chunks(const XmlElement& element, MscclStep& step) {
    const auto count = number(element, "cnt", 1, algorithm_.num_chunks);
    if (!count) return fail(count.error());
    visited_ += *count;
    if (visited_ > kMostVisited)
      return bad(element, fmt::format("exceeds the limit of {} chunks in all steps", kMostVisited));
    const auto from = read_range(element, "srcbuf", "srcoff", *count);
    const auto to = read_range(element, "dstbuf", "dstoff", *count);
    if (!from) return fail(from.error());
    if (!to) return fail(to.error());
    if (from->blocks != to->blocks) {
      return fail(Code::kUnsupported,
                  fmt::format("msccl: line {}: chunk {} moves to chunk {}; chunks must stay at their place",
                              element.line, from->blocks.first, to->blocks.first));
    }
    step.chunks = from->blocks;
    step.from = from->buffer;
    if (step.stores && !algorithm_.in_place && to->buffer == Buffer::kInput)
      return fail(
          Code::kUnsupported,
          fmt::format("msccl: line {}: the step writes the input, but inplace is not 1", element.line));
    return {};
  }

  Result<void> read_step(const XmlElement& element, MscclBlock& block) {
    if (element.name != "step") return bad(element, "found; expected step");
    const auto place = number(element, "s", 0, INT32_MAX);
    if (!place) return fail(place.error());
    if (*place != static_cast<std::int64_t>(block.steps.size()))
      return bad(element,
                 fmt::format("has s={}; expected {}, as steps are in order", *place, block.steps.size()));
    const std::string* text = element.attribute("type");
    const std::string type = text == nullptr ? "" : text->substr(0, 40);
    MscclStep step;
    step.line = element.line;
    if (auto read = read_type(element, block, type, step); !read) return read;
    if (type != "nop") {
      if (auto read = read_chunks(element, step); !read) return read;
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

  /// Finds an order of a GPU's steps in which each comes after those that it waits for.
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
                      fmt::format("msccl: line {}: step waits for step {} of tb {}, which does not exist",
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
    if (left > 0) return bad(algo, fmt::format("has {} steps of one gpu that wait for one another", left));
    return {};
  }

  MscclAlgorithm algorithm_;
  std::int64_t num_gpus_ = 0, visited_ = 0;
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

}  // namespace hips::plan

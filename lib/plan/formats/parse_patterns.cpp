#include <charconv>

#include <fmt/format.h>

#include "lib/plan/builder.hpp"

namespace hips::plan {
namespace {

struct OnePattern {
  Pattern pattern = Pattern::kMesh;
  std::int32_t num_leaders = 0;
};

Result<OnePattern> parse_one(std::string_view word, std::string_view whole) {
  if (word == "mesh") return OnePattern{Pattern::kMesh, 0};
  if (word == "ring") return OnePattern{Pattern::kRing, 0};
  if (word == "ps") return OnePattern{Pattern::kPs, 1};
  if (word.starts_with("ps:")) {
    const std::string_view number = word.substr(3);
    std::int32_t leaders = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), leaders);
    if (error == std::errc{} && end == number.data() + number.size() && leaders >= 1) {
      return OnePattern{Pattern::kPs, leaders};
    }
    return fail(
        Code::kInvalidArgument,
        fmt::format("pattern: \"{}\" in \"{}\": invalid number of leaders \"{}\" (valid: ps:1 to ps:<radix>)",
                    word, whole, number));
  }
  return fail(Code::kInvalidArgument,
              fmt::format("unknown pattern \"{}\" in \"{}\"; expected mesh, ring or ps:P, one "
                          "for all levels or one per level, as in mesh,ring",
                          word, whole));
}

Result<LevelPattern> parse_level(std::string_view word, std::string_view whole) {
  const std::size_t slash = word.find('/');
  const Result<OnePattern> scatter = parse_one(word.substr(0, slash), whole);
  if (!scatter) return fail(scatter.error());
  if (slash == std::string_view::npos)
    return LevelPattern{scatter->pattern, scatter->pattern, scatter->num_leaders};
  const Result<OnePattern> gather = parse_one(word.substr(slash + 1), whole);
  if (!gather) return fail(gather.error());
  // If fewer members lead than there are, the leaders own all pieces, so both phases need the same leaders.
  if ((scatter->pattern == Pattern::kPs || gather->pattern == Pattern::kPs) &&
      (scatter->pattern != gather->pattern || scatter->num_leaders != gather->num_leaders)) {
    return fail(Code::kInvalidArgument,
                fmt::format("pattern: \"{}\" in \"{}\": ps covers both phases of its level; write ps:P alone",
                            word, whole));
  }
  return LevelPattern{scatter->pattern, gather->pattern, scatter->num_leaders};
}

}  // namespace

Result<std::vector<LevelPattern>> parse_patterns(std::string_view text) {
  std::vector<LevelPattern> patterns;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    Result<LevelPattern> level = parse_level(rest.substr(0, comma), text);
    if (!level) return fail(std::move(level).error());
    patterns.push_back(*level);
    if (comma == std::string_view::npos) return patterns;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace hips::plan

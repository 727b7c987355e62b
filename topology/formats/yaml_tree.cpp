#include "topology/formats/yaml_tree.hpp"

#include <yaml.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "topology/spec.hpp"

// libyaml is written in C and linked statically. The interposer is loaded into programs with other C++
// runtimes, so it must not bring libraries that throw or that the program may have in another version.

namespace hips::topology {
namespace {

/// A mapping or sequence that has begun. Nodes below it are added to it when they end, so that no pointer
/// into a growing vector is kept.
struct OpenNode {
  YamlNode node;
  bool has_key = false;  ///< of a mapping: the next value's key has been read
  std::string key;
  std::size_t key_line = 0;
  std::unordered_set<std::string> keys;
};

class YamlParser {
 public:
  YamlParser(std::string_view name, std::string_view text) : name_(name) {
    yaml_parser_initialize(&parser_);
    // The library takes bytes as unsigned char.
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~YamlParser() { yaml_parser_delete(&parser_); }
  YamlParser(const YamlParser&) = delete;
  YamlParser& operator=(const YamlParser&) = delete;

  Result<YamlNode> read() {
    for (;;) {
      yaml_event_t event;
      if (yaml_parser_parse(&parser_, &event) == 0) return syntax_error();
      const yaml_event_type_t type = event.type;
      auto taken = take(event);
      yaml_event_delete(&event);
      if (!taken) return fail(taken.error());
      if (type == YAML_STREAM_END_EVENT) break;
    }
    if (!root_) return bad(1, "the file is empty; `hips topo -t bcube:3,1 --format yaml` writes one");
    return *std::move(root_);
  }

 private:
  [[nodiscard]] tl::unexpected<Status> bad(std::size_t line, std::string_view problem) const {
    return fail(Code::kInvalidArgument, fmt::format("{}: line {}: {}", name_, line, problem));
  }

  [[nodiscard]] tl::unexpected<Status> syntax_error() const {
    const char* problem = parser_.problem != nullptr ? parser_.problem : "out of memory";
    const std::size_t line =
        parser_.error == YAML_READER_ERROR ? parser_.mark.line + 1 : parser_.problem_mark.line + 1;
    return bad(line, fmt::format("invalid YAML: {}; docs/topologies.md shows the format", problem));
  }

  Result<void> take(const yaml_event_t& event) {
    const std::size_t line = event.start_mark.line + 1;
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        if (root_) return bad(line, "a second document begins; a file must have one");
        return {};
      case YAML_ALIAS_EVENT:
        return bad(line, "aliases (*name) are not supported; write the value itself");
      case YAML_SCALAR_EVENT: {
        const auto& scalar = event.data.scalar;
        if (auto plain = reject_extras(line, scalar.anchor, scalar.tag); !plain) return plain;
        YamlNode node;
        node.line = line;
        node.scalar.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
        if (!open_.empty() && open_.back().node.kind == YamlNode::Kind::kMapping && !open_.back().has_key)
          return take_key(line, std::move(node.scalar));
        return add(std::move(node));
      }
      case YAML_SEQUENCE_START_EVENT:
        return begin(line, YamlNode::Kind::kSequence, event.data.sequence_start.anchor,
                     event.data.sequence_start.tag);
      case YAML_MAPPING_START_EVENT:
        return begin(line, YamlNode::Kind::kMapping, event.data.mapping_start.anchor,
                     event.data.mapping_start.tag);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT: {
        YamlNode node = std::move(open_.back().node);
        open_.pop_back();
        return add(std::move(node));
      }
      default:
        return {};
    }
  }

  Result<void> reject_extras(std::size_t line, const yaml_char_t* anchor, const yaml_char_t* tag) const {
    if (anchor != nullptr) return bad(line, "anchors (&name) are not supported; leave it out");
    if (tag != nullptr) return bad(line, "tags (!name) are not supported; leave it out");
    return {};
  }

  Result<void> take_key(std::size_t line, std::string key) {
    OpenNode& mapping = open_.back();
    if (!mapping.keys.insert(key).second)
      return bad(line, fmt::format("{} occurs twice; write it once", in_quotes(key)));
    mapping.key = std::move(key);
    mapping.key_line = line;
    mapping.has_key = true;
    return {};
  }

  Result<void> begin(std::size_t line, YamlNode::Kind kind, const yaml_char_t* anchor,
                     const yaml_char_t* tag) {
    if (auto plain = reject_extras(line, anchor, tag); !plain) return plain;
    if (!open_.empty() && open_.back().node.kind == YamlNode::Kind::kMapping && !open_.back().has_key)
      return bad(line, "a list or a mapping cannot be a key; write KEY: VALUE");
    if (open_.size() >= kMostYamlDepth)
      return bad(line, fmt::format("values are nested more than {} deep, the limit", kMostYamlDepth));
    OpenNode opened;
    opened.node.kind = kind;
    opened.node.line = line;
    open_.push_back(std::move(opened));
    return {};
  }

  Result<void> add(YamlNode node) {
    if (++num_nodes_ > kMostYamlNodes)
      return bad(node.line,
                 fmt::format("more than {} values; leave out links that do not differ from their level",
                             kMostYamlNodes));
    if (open_.empty()) {
      root_ = std::move(node);
      return {};
    }
    OpenNode& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::kMapping) {
      node.key = std::move(parent.key);
      node.line = parent.key_line;
      parent.has_key = false;
    }
    parent.node.items.push_back(std::move(node));
    return {};
  }

  std::string name_;
  yaml_parser_t parser_{};
  std::vector<OpenNode> open_;
  std::optional<YamlNode> root_;
  std::size_t num_nodes_ = 0;
};

}  // namespace

Result<YamlNode> read_yaml(std::string_view name, std::string_view text) {
  if (text.size() > kMostYamlBytes) {
    return fail(Code::kInvalidArgument, fmt::format("{}: the file has {} bytes (valid: up to {})", name,
                                                    text.size(), kMostYamlBytes));
  }
  return YamlParser(name, text).read();
}

std::string yaml_scalar(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.' || c == '-' || c == ' ' || c == '/';
  };
  const bool safe = !text.empty() && std::ranges::all_of(text, plain) && text.front() != '-' &&
                    text.front() != ' ' && text.back() != ' ';
  if (safe) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace hips::topology

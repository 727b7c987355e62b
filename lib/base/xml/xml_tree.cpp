#include "lib/base/xml/xml_tree.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include <pugixml.hpp>

#include <fmt/format.h>

namespace hips {
namespace {

// Escapes are not resolved: values with them are rejected. Text outside of elements becomes nodes, so that it is, too.
constexpr unsigned kOptions = pugi::parse_cdata | pugi::parse_doctype | pugi::parse_fragment;

std::string_view words_of(pugi::xml_parse_status status) {
  switch (status) {
    case pugi::status_bad_comment:
      return "has no end -->";
    case pugi::status_bad_pi:
      return "has no end ?>";
    case pugi::status_bad_doctype:
      return "has no end >, or is not before the only element";
    case pugi::status_bad_cdata:
      return "has no end ]]>";
    case pugi::status_bad_start_element:
    case pugi::status_bad_attribute:
      return "found; expected an attribute with a value in quotes, or the end of the element";
    case pugi::status_end_element_mismatch:
    case pugi::status_bad_end_element:
      return "found; expected the end of the element that is open there";
    case pugi::status_out_of_memory:
      return "is where memory ran out";
    default:
      return "found; expected an element, such as \"<name\"";
  }
}

/// What begins what a status is about, where parsing stopped at its end.
std::string_view begin_of(pugi::xml_parse_status status) {
  switch (status) {
    case pugi::status_bad_comment:
      return "<!--";
    case pugi::status_bad_pi:
      return "<?";
    case pugi::status_bad_doctype:
      return "<!DOCTYPE";
    case pugi::status_bad_cdata:
      return "<![CDATA[";
    default:
      return "";
  }
}

bool is_plain_xml_name(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-.:").find(c) != std::string_view::npos;
  });
}

/// Has a document type declarations of its own, in brackets that are not in quotes?
bool has_declarations(std::string_view type) {
  char quote = 0;
  for (const char c : type) {
    if (quote == 0 && c == '[') return true;
    if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
    else if (c == quote)
      quote = 0;
  }
  return false;
}

/// Makes XmlElements of what pugixml parsed, and rejects what files that we read do not use.
class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : text_(text) {}

  Result<XmlElement> read() {
    if (const std::size_t zero = text_.find('\0'); zero != std::string_view::npos)
      return wrong(zero, "is a byte 0; give a text");
    // Each element has one or two brackets, each attribute a sign.
    const auto count = [&](char c) { return static_cast<std::size_t>(std::ranges::count(text_, c)); };
    if (count('<') > 2 * kMostXmlElements || count('=') > 8 * kMostXmlElements) return too_many();
    const pugi::xml_parse_result parsed =
        document_.load_buffer(text_.data(), text_.size(), kOptions, pugi::encoding_utf8);
    if (!parsed) {
      if (depth_of_last() > kMostXmlDepth) return too_deep(text_.size());
      return wrong(where(parsed), words_of(parsed.status));
    }
    XmlElement root;
    bool has_root = false, has_type = false;
    for (const pugi::xml_node node : document_) {
      if (node.type() == pugi::node_doctype && !has_type && !has_root) {
        has_type = true;
        if (has_declarations(node.value()))
          return wrong(
              at(node),
              "is a document type with declarations of its own, which are not supported; remove them");
      } else if (node.type() == pugi::node_element && !has_root) {
        has_root = true;
        if (auto made = make(node, root, 1); !made) return fail(made.error());
      } else {
        return wrong(at(node), has_root ? "found after the end of the only element"
                                        : "found; expected an element, such as \"<name\"");
      }
    }
    if (!has_root) return wrong(text_.size(), words_of(pugi::status_no_document_element));
    return root;
  }

 private:
  [[nodiscard]] tl::unexpected<Status> wrong(std::size_t offset, std::string_view what) {
    std::string seen;
    for (const char c : text_.substr(std::min(offset, text_.size()), 24)) {
      if (c == '\n') break;
      seen += c < ' ' || c > '~' ? '?' : c;
    }
    return fail(Code::kInvalidArgument,
                fmt::format("line {}: \"{}\" {}", line_of(offset), seen.empty() ? "the end" : seen, what));
  }
  [[nodiscard]] tl::unexpected<Status> too_deep(std::size_t offset) {
    return wrong(offset, fmt::format("is nested more than {} deep", kMostXmlDepth));
  }
  [[nodiscard]] tl::unexpected<Status> too_many() {
    return wrong(0, fmt::format("begins a text of more than {} elements, or {} attributes", kMostXmlElements,
                                8 * kMostXmlElements));
  }

  /// Where what is wrong begins.
  [[nodiscard]] std::size_t where(const pugi::xml_parse_result& parsed) const {
    const auto offset = static_cast<std::size_t>(parsed.offset);
    const std::size_t begin = text_.rfind(begin_of(parsed.status), offset);
    return begin_of(parsed.status).empty() || begin == std::string_view::npos ? offset : begin;
  }
  /// Where a node begins.
  [[nodiscard]] std::size_t at(pugi::xml_node node) const {
    const auto offset = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, node.offset_debug()));
    std::size_t begin = text_.rfind('<', offset);
    if (node.type() == pugi::node_pcdata) begin = text_.find_first_not_of(" \t\r\n", offset);
    return begin == std::string_view::npos ? offset : begin;
  }
  /// Elements are asked for in their order, so all lines are counted once.
  std::size_t line_of(std::size_t offset) {
    offset = std::min(offset, text_.size());
    if (offset < counted_) counted_ = 0, line_ = 1;
    line_ += static_cast<std::size_t>(std::ranges::count(text_.substr(counted_, offset - counted_), '\n'));
    counted_ = offset;
    return line_;
  }
  /// How deep the element is nested at which parsing ended.
  [[nodiscard]] std::size_t depth_of_last() const {
    std::size_t depth = 0;
    for (pugi::xml_node node = document_.last_child(); node && depth <= kMostXmlDepth;
         node = node.last_child())
      ++depth;
    return depth;
  }

  Result<void> make(pugi::xml_node node, XmlElement& element, std::size_t depth) {
    if (depth > kMostXmlDepth) return too_deep(at(node));
    if (++elements_ > kMostXmlElements) return too_many();
    if (!is_plain_xml_name(node.name())) return wrong(at(node), words_of(pugi::status_no_document_element));
    element.name = node.name();
    element.line = line_of(at(node));
    for (const pugi::xml_attribute attribute : node.attributes()) {
      if (!is_plain_xml_name(attribute.name())) return wrong(at(node), words_of(pugi::status_bad_attribute));
      if (element.attributes.size() == kMostXmlAttributes)
        return wrong(at(node), fmt::format("has more than {} attributes", kMostXmlAttributes));
      if (element.attribute(attribute.name()) != nullptr)
        return wrong(at(node), fmt::format("has the attribute {} twice", attribute.name()));
      if (std::string_view(attribute.value()).find_first_of("<&") != std::string_view::npos)
        return wrong(at(node),
                     fmt::format("has a value of {} with an entity or a \"<\", which are not supported",
                                 attribute.name()));
      element.attributes.emplace_back(attribute.name(), attribute.value());
    }
    element.children.reserve(static_cast<std::size_t>(std::distance(node.begin(), node.end())));
    for (const pugi::xml_node child : node) {
      if (child.type() != pugi::node_element)
        return wrong(at(child), words_of(pugi::status_no_document_element));
      if (auto made = make(child, element.children.emplace_back(), depth + 1); !made) return made;
    }
    return {};
  }

  std::string_view text_;
  pugi::xml_document document_;
  std::size_t counted_ = 0, line_ = 1, elements_ = 0;
};

}  // namespace

const std::string* XmlElement::attribute(std::string_view key) const {
  for (const auto& [each, value] : attributes) {
    if (each == key) return &value;
  }
  return nullptr;
}

Result<XmlElement> read_xml(std::string_view text) {
  return XmlReader(text).read();
}

}  // namespace hips

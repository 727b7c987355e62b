#include "lib/base/xml/xml_tree.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hips {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == ':';
}

class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : text_(text) {}

  Result<XmlElement> read() {
    XmlElement root;
    if (auto skipped = skip_misc(); !skipped) return fail(skipped.error());
    if (next_is("<!DOCTYPE")) {
      if (auto skipped = skip_document_type(); !skipped) return fail(skipped.error());
      if (auto skipped = skip_misc(); !skipped) return fail(skipped.error());
    }
    if (auto element = read_element(root, 0); !element) return fail(element.error());
    if (auto skipped = skip_misc(); !skipped) return fail(skipped.error());
    if (at_ < text_.size()) return wrong("after the end of the only element");
    return root;
  }

 private:
  [[nodiscard]] tl::unexpected<Status> wrong(std::string_view what) const {
    std::string seen;
    for (const char c : text_.substr(std::min(at_, text_.size()), 24)) {
      if (c == '\n') break;
      seen += c < ' ' || c > '~' ? '?' : c;
    }
    return fail(Code::kInvalidArgument,
                fmt::format("line {}: \"{}\" {}", line_, seen.empty() ? "the end" : seen, what));
  }
  [[nodiscard]] bool next_is(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void skip(std::size_t count) {
    for (; count > 0; --count, ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
  }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) skip(1);
  }
  std::string_view read_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  /// Skips white space, comments and declarations.
  Result<void> skip_misc() {
    for (;;) {
      skip_space();
      std::string_view end;
      if (next_is("<!--")) {
        end = "-->";
      } else if (next_is("<?")) {
        end = "?>";
      } else {
        return {};
      }
      const std::size_t found = text_.find(end, at_ + 2);
      if (found == std::string_view::npos) return wrong(fmt::format("has no end {}", end));
      skip(found + end.size() - at_);
    }
  }

  /// Skips <!DOCTYPE platform SYSTEM "http://...">; what it names is not fetched.
  Result<void> skip_document_type() {
    char quote = 0;
    for (std::size_t end = at_; end < text_.size(); ++end) {
      const char c = text_[end];
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '[') {
        return wrong("is a document type with declarations of its own, which are not supported; remove them");
      } else if (c == '>') {
        skip(end + 1 - at_);
        return {};
      }
    }
    return wrong("has no end >");
  }

  Result<void> read_attribute(XmlElement& element) {
    const std::string_view key = read_name();
    if (key.empty()) return wrong("found; expected an attribute or the end of the element");
    if (element.attribute(key) != nullptr)
      return wrong(fmt::format("follows the attribute {}, which occurs twice", key));
    skip_space();
    if (!next_is("=")) return wrong(fmt::format("found; expected {}=\"...\"", key));
    skip(1);
    skip_space();
    if (!next_is("\"") && !next_is("'")) return wrong("found; expected a value in quotes");
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return wrong("is a value without a closing quote");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    if (value.find_first_of("<&") != std::string_view::npos)
      return wrong("is a value with an entity or a \"<\", which are not supported");
    element.attributes.emplace_back(key, value);
    skip(end + 1 - at_);
    return {};
  }

  Result<void> read_element(XmlElement& element, std::size_t depth) {
    if (depth == kMostXmlDepth) return wrong(fmt::format("is nested more than {} deep", kMostXmlDepth));
    if (++elements_ > kMostXmlElements)
      return wrong(fmt::format("is one more than {} elements", kMostXmlElements));
    if (!next_is("<")) return wrong("found; expected an element, such as \"<name\"");
    element.line = line_;
    skip(1);
    element.name = std::string(read_name());
    if (element.name.empty()) return wrong("found; expected the name of an element");
    for (;;) {
      skip_space();
      if (next_is("/>")) {
        skip(2);
        return {};
      }
      if (next_is(">")) {
        skip(1);
        break;
      }
      if (auto attribute = read_attribute(element); !attribute) return attribute;
    }
    for (;;) {
      if (auto skipped = skip_misc(); !skipped) return skipped;
      if (next_is("</")) break;
      if (auto child = read_element(element.children.emplace_back(), depth + 1); !child) return child;
    }
    skip(2);
    if (const std::string_view name = read_name(); name != element.name)
      return wrong(fmt::format("follows </{}; expected </{}> for line {}", name, element.name, element.line));
    skip_space();
    if (!next_is(">")) return wrong("found; expected \">\"");
    skip(1);
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0, line_ = 1, elements_ = 0;
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

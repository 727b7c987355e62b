#include "topology/formats/server_names.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "topology/spec.hpp"

namespace hips::topology {
namespace {

std::optional<NameListReader>& name_list_reader() {
  static std::optional<NameListReader> reader;
  return reader;
}

Status no_reader(std::string_view text) {
  if (text.find_first_of("[],") == std::string_view::npos) {
    return Status::error(
        Code::kInvalidArgument,
        fmt::format("{} is not a name; names have letters, digits and any of .-_:/@+", in_quotes(text)));
  }
  return Status::error(
      Code::kInvalidArgument,
      fmt::format("{} is a list of names, which the preloaded library does not read; start the program with "
                  "hips run, or write one name per entry",
                  in_quotes(text)));
}

}  // namespace

bool is_name_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c != '\0' && std::string_view(".-_:/@+").find(c) != std::string_view::npos);
}

bool is_plain_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameLength && std::ranges::all_of(text, is_name_character);
}

std::string_view short_name(std::string_view host) {
  const bool is_address = host.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_address ? host : host.substr(0, host.find('.'));
}

HostNames::HostNames(std::span<const std::string> hosts) : whole_(hosts.begin(), hosts.end()) {
  for (const std::string& host : hosts)
    if (short_name(host) != host) short_.emplace(short_name(host));
}

bool HostNames::has(std::string_view host) const {
  const std::string whole(host), shorter(short_name(host));
  if (whole_.contains(whole)) return true;
  return shorter == whole ? short_.contains(whole) : whole_.contains(shorter);
}

void set_name_list_reader(const NameListReader& reader) {
  name_list_reader() = reader;
}

Result<std::uint64_t> count_names(std::string_view text) {
  if (is_plain_name(text)) return 1;
  const auto& reader = name_list_reader();
  if (!reader) return fail(no_reader(text));
  return reader->count(text);
}

Result<std::vector<std::string>> expand_names(std::string_view text, std::uint64_t most) {
  if (is_plain_name(text) && most >= 1) return std::vector<std::string>{std::string(text)};
  const auto& reader = name_list_reader();
  if (!reader) return fail(no_reader(text));
  return reader->expand(text, most);
}

}  // namespace hips::topology

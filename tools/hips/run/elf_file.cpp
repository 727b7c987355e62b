#include "tools/hips/run/elf_file.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>

namespace hips::cli {
namespace {

/// Texts and tables of headers are far shorter in any program; a broken file may name any number of bytes.
constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;

std::string read_at(std::ifstream& file, std::uint64_t place, std::uint64_t bytes) {
  std::string read(std::min(bytes, kMostBytes), '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(place));
  file.read(read.data(), static_cast<std::streamsize>(read.size()));
  read.resize(static_cast<std::size_t>(file.gcount()));
  return read;
}

/// The entries of a table; of one that is cut off those that are whole.
template <typename Entry>
std::vector<Entry> entries_of(const std::string& bytes) {
  std::vector<Entry> entries(bytes.size() / sizeof(Entry));
  if (!entries.empty()) std::memcpy(entries.data(), bytes.data(), entries.size() * sizeof(Entry));
  return entries;
}

template <typename Segment, typename Dynamic>
std::vector<std::string> needed_by(std::ifstream& file, const std::vector<Segment>& segments,
                                   const std::vector<Dynamic>& entries) {
  std::uint64_t names_at = 0, names_bytes = 0;
  for (const Dynamic& entry : entries) {
    if (entry.d_tag == DT_STRTAB) names_at = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) names_bytes = entry.d_un.d_val;
  }
  const auto holds_names = [&](const Segment& one) {
    return one.p_type == PT_LOAD && names_at >= one.p_vaddr && names_at - one.p_vaddr < one.p_filesz;
  };
  const auto segment = std::ranges::find_if(segments, holds_names);
  if (segment == segments.end()) return {};
  const std::string names = read_at(file, names_at - segment->p_vaddr + segment->p_offset, names_bytes);
  std::vector<std::string> needed;
  for (const Dynamic& entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED && entry.d_un.d_val < names.size())
      needed.emplace_back(names.c_str() + entry.d_un.d_val);
  }
  return needed;
}

template <typename Header, typename Segment, typename Dynamic>
ElfFile read_headers(std::ifstream& file) {
  ElfFile elf;
  const auto headers = entries_of<Header>(read_at(file, 0, sizeof(Header)));
  if (headers.empty() || headers.front().e_phentsize != sizeof(Segment)) return elf;
  const auto segments = entries_of<Segment>(
      read_at(file, headers.front().e_phoff, std::uint64_t{headers.front().e_phnum} * sizeof(Segment)));
  for (const Segment& segment : segments) {
    if (segment.p_type == PT_INTERP)
      elf.interpreter = read_at(file, segment.p_offset, segment.p_filesz).c_str();  // up to its NUL
    if (segment.p_type == PT_DYNAMIC)
      elf.needed =
          needed_by(file, segments, entries_of<Dynamic>(read_at(file, segment.p_offset, segment.p_filesz)));
  }
  return elf;
}

}  // namespace

std::optional<ElfFile> read_elf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string identity = read_at(file, 0, EI_NIDENT);
  if (identity.size() < EI_NIDENT || !identity.starts_with(ELFMAG)) return std::nullopt;
  return identity[EI_CLASS] == ELFCLASS64 ? read_headers<Elf64_Ehdr, Elf64_Phdr, Elf64_Dyn>(file)
                                          : read_headers<Elf32_Ehdr, Elf32_Phdr, Elf32_Dyn>(file);
}

}  // namespace hips::cli

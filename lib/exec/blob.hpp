#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace hips::exec {

/// Writes trivially copyable values one after the other. All ranks of a job have the same byte order and the
/// same struct layouts; the agreement hash checks that.
class BlobWriter {
 public:
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
  }
  void put_bytes(std::span<const std::byte> bytes) {
    put(static_cast<std::uint32_t>(bytes.size()));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads what BlobWriter wrote. It never reads beyond the end: if the blob is too short, ok() becomes false
/// and the values are zero.
class BlobReader {
 public:
  explicit BlobReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  requires std::is_trivially_copyable_v<T> T get() {
    T value{};
    if (rest_.size() < sizeof(T)) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  std::span<const std::byte> get_bytes() {
    const auto size = get<std::uint32_t>();
    if (!ok_ || rest_.size() < size) {
      ok_ = false;
      return {};
    }
    const auto bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }
  [[nodiscard]] bool ok() const { return ok_; }
  /// Whether all has been read.
  [[nodiscard]] bool empty() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace hips::exec

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <hips/status.hpp>

#include "lib/base/exchange.hpp"
#include "lib/base/wire_version.hpp"

namespace hips::comm {

using hips::kWireVersion;
/// "HiPS", the first bytes of every connection.
inline constexpr std::uint32_t kWireMagic = 0x53506948;

using hips::Blob;

/// Appends values in native byte order. All nodes of a job share one byte order, because user data is sent
/// unconverted, too.
class ByteWriter {
 public:
  template <typename T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void put(T value) { append(&value, sizeof value); }
  void put_bytes(std::span<const std::byte> bytes) {
    put(static_cast<std::uint32_t>(bytes.size()));
    append(bytes.data(), bytes.size());
  }
  void put_text(std::string_view text) { put_bytes(std::as_bytes(std::span(text.data(), text.size()))); }
  void put_status(const Status& status) {
    put(status.code);
    put(status.scope);
    put(status.rank);
    put(status.rail);
    put(status.sys_errno);
    put(status.call);
    put_text(status.message);
  }
  [[nodiscard]] const Blob& blob() const { return blob_; }
  [[nodiscard]] Blob take() { return std::move(blob_); }

 private:
  void append(const void* data, std::size_t bytes) {
    if (bytes == 0) return;
    const std::size_t old = blob_.size();
    blob_.resize(old + bytes);
    std::memcpy(blob_.data() + old, data, bytes);
  }

  Blob blob_;
};

/// Reads values from received bytes. A read past the end returns zeros and makes ok() false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) T get() {
    T value{};
    if (bytes_.size() < sizeof value) {
      ok_ = false;
      bytes_ = {};
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  /// An enumerator from 0 to `last`. Any other value makes ok() false.
  template <typename T>
  requires std::is_enum_v<T> T get_up_to(T last) {
    const T value = get<T>();
    if (value >= T{} && value <= last) return value;
    ok_ = false;
    return T{};
  }
  std::span<const std::byte> get_bytes() {
    const auto size = get<std::uint32_t>();
    if (bytes_.size() < size) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const auto bytes = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return bytes;
  }
  std::string get_text() {
    const auto bytes = get_bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  Status get_status() {
    Status status;
    status.code = get_up_to(Code::kInternal);
    status.scope = get_up_to(Scope::kProcess);
    status.rank = get<Rank>();
    status.rail = get<Rail>();
    status.sys_errno = get<int>();
    status.call = get<std::uint64_t>();
    status.message = get_text();
    return status;
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::span<const std::byte> rest() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

inline void put_peer_blobs(ByteWriter& writer, const std::vector<PeerBlob>& blobs) {
  writer.put(static_cast<std::uint32_t>(blobs.size()));
  for (const PeerBlob& one : blobs) {
    writer.put(one.peer);
    writer.put_bytes(one.blob);
  }
}
inline std::vector<PeerBlob> get_peer_blobs(ByteReader& reader) {
  std::vector<PeerBlob> blobs;
  const auto count = reader.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    const Rank peer = reader.get<Rank>();
    const auto bytes = reader.get_bytes();
    blobs.push_back({peer, {bytes.begin(), bytes.end()}});
  }
  return blobs;
}

/// Begins with what goes to all ranks, which begins with the version; the rest and its length follow.
inline Blob encode_outbound(const Outbound& outgoing) {
  ByteWriter of_peers;
  if (!outgoing.to_peers.empty()) put_peer_blobs(of_peers, outgoing.to_peers);
  Blob blob = outgoing.to_all;
  blob.insert(blob.end(), of_peers.blob().begin(), of_peers.blob().end());
  const auto length = static_cast<std::uint32_t>(of_peers.blob().size());
  const auto tail = std::as_bytes(std::span(&length, 1));
  blob.insert(blob.end(), tail.begin(), tail.end());
  return blob;
}
/// None if the bytes are no encoded Outbound.
inline std::optional<Outbound> decode_outbound(std::span<const std::byte> bytes) {
  std::uint32_t length = 0;
  if (bytes.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, bytes.data() + bytes.size() - sizeof length, sizeof length);
  bytes = bytes.first(bytes.size() - sizeof length);
  if (bytes.size() < length) return std::nullopt;
  ByteReader of_peers(bytes.last(length));
  bytes = bytes.first(bytes.size() - length);
  Outbound outgoing{{bytes.begin(), bytes.end()}, {}};
  if (length > 0) outgoing.to_peers = get_peer_blobs(of_peers);
  if (!of_peers.ok()) return std::nullopt;
  return outgoing;
}

}  // namespace hips::comm

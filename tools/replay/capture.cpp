// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/capture.h"

#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

namespace stp::replay {
namespace {

// Limit for the times in a file, which may be hostile: sums and differences of a few such times do
// not overflow.
constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max() / 4;

std::int64_t nanoseconds(const timeval& time) {
  std::int64_t scaled = 0, sum = 0;
  if (__builtin_mul_overflow(std::int64_t{time.tv_sec}, std::int64_t{kSecond}, &scaled) ||
      __builtin_add_overflow(scaled, std::int64_t{time.tv_usec}, &sum))
    return time.tv_sec < 0 ? -kLatest : kLatest;
  return std::clamp(sum, -kLatest, kLatest);
}

}  // namespace

void Capture::Close::operator()(pcap* file) const {
  pcap_close(file);
}

std::optional<Capture> Capture::open(const std::string& path, std::string& error) {
  auto* const stream = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (stream == nullptr) {
    error = path + ": " + std::strerror(errno);
    return std::nullopt;
  }
  return read(stream, path, error);
}

std::optional<Capture> Capture::read(std::FILE* stream, const std::string& name,
                                     std::string& error) {
  std::array<char, PCAP_ERRBUF_SIZE> why{};
  auto* const file =
      pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, why.data());
  if (file == nullptr) {
    if (stream != stdin) std::fclose(stream);
    error = name + ": not a capture that can be read: " + why.data();
    return std::nullopt;
  }
  Capture capture(file, name);
  if (const auto type = pcap_datalink(file); type != DLT_EN10MB) {
    const auto* const text = pcap_datalink_val_to_name(type);
    error = name + ": the frames are of link type " + (text ? text : std::to_string(type)) +
            ", and STP runs on Ethernet; capture on one Ethernet interface instead of \"any\"";
    return std::nullopt;
  }
  return capture;
}

bool Capture::next(CapturedFrame& out) {
  pcap_pkthdr* head = nullptr;
  const unsigned char* bytes = nullptr;
  const auto result = pcap_next_ex(file_.get(), &head, &bytes);
  if (result != 1) {
    if (result == PCAP_ERROR) error_ = explain(pcap_geterr(file_.get()));
    return false;
  }
  out.number = ++count_;
  out.time = nanoseconds(head->ts);
  out.bytes = {reinterpret_cast<const std::byte*>(bytes), head->caplen};
  out.wire_length = std::max<std::size_t>(head->len, head->caplen);
  return true;
}

std::string Capture::explain(const std::string& cause) const {
  auto text = name_ + ": after frame " + std::to_string(count_) + ": " + cause;
  // libpcap gives up on a file whose interfaces are of several kinds.
  if (cause.find("different from the type of the first interface") != std::string::npos)
    text += "; libpcap reads no such file: capture the Ethernet interface alone, not with others";
  return text;
}

}  // namespace stp::replay

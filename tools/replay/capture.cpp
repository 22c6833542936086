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

constexpr std::int64_t kLatestSecond = kLatest / std::int64_t{kSecond};
constexpr int kPcapng = 0x0a;  // the first byte of each such file

// What a compressed file begins with, and the program that unpacks it.
struct Packed {
  int first;
  const char* program;
};
constexpr std::array kPacked{Packed{0x1f, "zcat"}, Packed{0x28, "zstdcat"}, Packed{0xfd, "xzcat"},
                             Packed{'B', "bzcat"}, Packed{0x04, "lz4cat"}};

// The length of the check sequence of each frame, in a pcap file whose header tells of it.
unsigned fcs_of(pcap_t* file) {
  constexpr unsigned kIsGiven = 0x04000000, kShift = 28, kWord = 2;
  const auto type = static_cast<unsigned>(pcap_datalink_ext(file));
  return (type & kIsGiven) != 0 ? (type >> kShift) * kWord : 0;
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
  const auto first = std::fgetc(stream);
  std::ungetc(first, stream);
  std::uint64_t dropped = 0;
  std::unique_ptr<PcapngStream> pcapng;
  if (first == kPcapng) {
    dropped = count_dropped(stream);
    pcapng = std::make_unique<PcapngStream>(stream);
    stream = pcapng->open();
  }
  std::array<char, PCAP_ERRBUF_SIZE> why{};
  auto* const file = stream == nullptr ? nullptr
                                       : pcap_fopen_offline_with_tstamp_precision(
                                             stream, PCAP_TSTAMP_PRECISION_NANO, why.data());
  if (file == nullptr) {
    if (stream != nullptr && stream != stdin) std::fclose(stream);
    error = name + ": not a capture that can be read: " + why.data();
    for (const auto& packed : kPacked)
      if (first == packed.first)
        error = name + ": looks like a compressed file; unpack it: " + packed.program +
                (name == "-" ? "" : " <" + name) + " | stp-replay check -";
    return std::nullopt;
  }
  Capture capture(std::move(pcapng), file, name);
  capture.dropped_ = dropped;
  capture.fcs_ = fcs_of(file);
  if (const auto type = pcap_datalink(file); type != DLT_EN10MB) {
    const auto* const text = pcap_datalink_val_to_name(type);
    error = name + ": the frames are of link type " + (text ? text : std::to_string(type)) +
            ", and STP runs on Ethernet; capture on one Ethernet interface instead of \"any\"";
    return std::nullopt;
  }
  return capture;
}

std::uint64_t Capture::dropped() const {
  return std::max(dropped_, stream_ ? stream_->dropped() : 0);
}

// Times of this century need no epoch of their own.
std::int64_t Capture::time_of(std::int64_t seconds, std::int64_t nanoseconds) {
  // The format pcap has 32 bits without a sign, which libpcap reads with one.
  constexpr std::int64_t kWrap = std::int64_t{1} << 32;
  if (!stream_ && seconds < 0 && seconds >= -kWrap) seconds += kWrap;
  if (count_ == 0 && (seconds > kLatestSecond || seconds < -kLatestSecond)) epoch_ = seconds;
  std::int64_t since = 0, scaled = 0, sum = 0;
  if (__builtin_sub_overflow(seconds, epoch_, &since) ||
      __builtin_mul_overflow(since, std::int64_t{kSecond}, &scaled) ||
      __builtin_add_overflow(scaled, nanoseconds, &sum))
    return seconds < epoch_ ? -kLatest : kLatest;
  return std::clamp(sum, -kLatest, kLatest);
}

bool Capture::next(CapturedFrame& out) {
  pcap_pkthdr* head = nullptr;
  const unsigned char* bytes = nullptr;
  const auto result = pcap_next_ex(file_.get(), &head, &bytes);
  if (result != 1) {
    if (result == PCAP_ERROR) error_ = explain(pcap_geterr(file_.get()));
    return false;
  }
  const auto told = stream_ ? stream_->next() : PcapngStream::Packet{.fcs = fcs_};
  out.time = time_of(head->ts.tv_sec, head->ts.tv_usec);
  out.epoch = epoch_;
  out.dropped = told.dropped;
  out.over_udp = told.over_udp;
  out.number = ++count_;
  out.wire_length = std::max<std::size_t>(head->len, head->caplen);
  if (out.wire_length > told.fcs) out.wire_length -= told.fcs;
  out.bytes = {reinterpret_cast<const std::byte*>(bytes),
               std::min<std::size_t>(head->caplen, out.wire_length)};
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

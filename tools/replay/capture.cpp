// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/capture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pcap/pcap.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/crc.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>

#include "stp/wire/big_endian.h"
#include "stp/wire/layout.h"
#include "tools/replay/joined.h"

namespace stp::replay {

namespace {

// Block types, options and sizes of the pcapng format.
constexpr std::uint32_t kSection = 0x0a0d0d0a, kMagic = 0x1a2b3c4d;
constexpr std::uint32_t kInterface = 1, kOldPacket = 2, kSimplePacket = 3, kStatistics = 5,
                        kPacket = 6;
constexpr std::size_t kHead = 8, kTail = 4;  // type and length; length once more
constexpr std::size_t kLongestBlock = std::size_t{16} << 20;
constexpr std::uint16_t kInterfaceName = 2, kFcsLength = 13;  // of an interface
constexpr std::uint16_t kPacketFlags = 2, kDropCount = 4;     // of a packet
constexpr std::uint16_t kInterfaceDrop = 5, kSystemDrop = 7;  // of statistics
constexpr std::size_t kMostInterfaces = 4096;
constexpr unsigned kBitsOfByte = 8;
constexpr std::string_view kUdpLink = "udp:";

// The format once gave the length of an FCS in bits, and now in bytes.
unsigned fcs_bytes(unsigned length) {
  constexpr unsigned kLongest = 16;
  return length > kLongest ? length / kBitsOfByte : length;
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t both = 0;
  return __builtin_add_overflow(a, b, &both) ? ~std::uint64_t{0} : both;
}

}  // namespace

PcapngStream::PcapngStream(std::FILE* file) : file_(file) {}

PcapngStream::~PcapngStream() {
  if (file_ != stdin) std::fclose(file_);
}

std::FILE* PcapngStream::open() {
  cookie_io_functions_t calls{};
  calls.read = [](void* self, char* out, std::size_t size) {
    return static_cast<ssize_t>(static_cast<PcapngStream*>(self)->read(out, size));
  };
  return ::fopencookie(this, "rb", calls);
}

std::size_t PcapngStream::read(char* out, std::size_t size) {
  if (taken_ == block_.size() && !next_block()) return 0;
  const auto now = std::min(size, block_.size() - taken_);
  std::memcpy(out, block_.data() + taken_, now);
  taken_ += now;
  return now;
}

PcapngStream::Packet PcapngStream::next() {
  if (packets_.empty()) return {};
  const auto packet = packets_.front();
  packets_.pop_front();
  return packet;
}

// Both counts of an interface tell of the same frames.
std::uint64_t PcapngStream::dropped() const {
  auto all = dropped_before_;
  for (const auto& interface : interfaces_)
    all = sum(all, std::max(interface.before_packets, interface.in_all));
  return all;
}

bool PcapngStream::read_rest(std::size_t size) {
  const auto held = block_.size();
  block_.resize(size);
  const auto got = std::fread(block_.data() + held, 1, size - held, file_);
  block_.resize(held + got);
  return held + got == size;
}

bool PcapngStream::next_block() {
  constexpr std::size_t kPiece = 4096;
  taken_ = 0;
  block_.clear();
  if (passes_) {
    read_rest(kPiece);
    return !block_.empty();
  }
  if (!read_rest(kHead)) return !block_.empty();
  auto type = load32(0);
  if (type == kSection) {  // reads the same in both orders
    if (!read_rest(kHead + sizeof kMagic)) return true;
    std::uint32_t magic = 0;
    std::memcpy(&magic, block_.data() + kHead, sizeof magic);
    swapped_ = magic != kMagic;
    dropped_before_ = dropped();
    interfaces_.clear();
  }
  const auto length = load32(sizeof type);
  if (length < block_.size() + kTail || length % 4 != 0 || length > kLongestBlock) {
    passes_ = true;
    return true;
  }
  if (read_rest(length)) look_at_block(type);
  return true;
}

void PcapngStream::look_at_block(std::uint32_t type) {
  constexpr std::size_t kInterfaceSize = kHead + 8, kSnapLengthAt = kHead + 4;
  constexpr std::size_t kPacketSize = kHead + 20, kCapturedAt = kHead + 12;
  constexpr std::size_t kStatisticsSize = kHead + 12;
  const auto holds = [this](std::size_t size) { return block_.size() >= size + kTail; };
  if (type == kInterface && holds(kInterfaceSize)) {
    std::memset(block_.data() + kSnapLengthAt, 0, sizeof(std::uint32_t));  // 0: no limit
    if (interfaces_.size() == kMostInterfaces) return;
    auto& interface = interfaces_.emplace_back();
    if (const auto at = find_option(kInterfaceSize, kFcsLength, 1); at != 0)
      interface.fcs = fcs_bytes(static_cast<unsigned char>(block_[at]));
    // stpd names the link.
    if (const auto at = find_option(kInterfaceSize, kInterfaceName, kUdpLink.size()); at != 0)
      interface.over_udp = std::string_view(&block_[at], kUdpLink.size()) == kUdpLink;
  } else if (type == kPacket && holds(kPacketSize)) {
    constexpr unsigned kFcsShift = 5, kFcsMask = 15;
    const auto captured = std::size_t{load32(kCapturedAt)};
    const auto options = kPacketSize + ((captured + 3) & ~std::size_t{3});
    unsigned fcs = 0;
    std::uint64_t dropped = 0;
    if (const auto at = find_option(options, kPacketFlags, sizeof(std::uint32_t)); at != 0)
      fcs = load32(at) >> kFcsShift & kFcsMask;
    if (const auto at = find_option(options, kDropCount, sizeof(std::uint64_t)); at != 0)
      dropped = load64(at);
    add_packet(load32(kHead), fcs, dropped);
  } else if (type == kOldPacket && holds(kPacketSize)) {
    constexpr std::uint16_t kNotKnown = 0xffff;
    const auto dropped = load16(kHead + 2);
    add_packet(load16(kHead), 0, dropped == kNotKnown ? 0U : dropped);
  } else if (type == kSimplePacket) {
    add_packet(0, 0, 0);
  } else if (type == kStatistics && holds(kStatisticsSize)) {
    const auto number = load32(kHead);
    if (number >= interfaces_.size()) return;
    std::uint64_t all = 0;
    for (const auto code : {kInterfaceDrop, kSystemDrop})
      if (const auto at = find_option(kStatisticsSize, code, sizeof(std::uint64_t)); at != 0)
        all = sum(all, load64(at));
    interfaces_[number].in_all = std::max(interfaces_[number].in_all, all);
  }
}

void PcapngStream::add_packet(std::uint32_t interface, unsigned fcs, std::uint64_t dropped) {
  auto& packet = packets_.emplace_back();
  packet.dropped = dropped;
  packet.fcs = fcs;
  if (interface >= interfaces_.size()) return;
  auto& of = interfaces_[interface];
  if (fcs == 0) packet.fcs = of.fcs;
  packet.over_udp = of.over_udp;
  of.before_packets = sum(of.before_packets, dropped);
}

std::size_t PcapngStream::find_option(std::size_t options, std::uint16_t code,
                                      std::size_t length) const {
  constexpr std::size_t kOptionHead = 4;
  const auto end = block_.size() - kTail;
  for (auto at = options; at + kOptionHead <= end;) {
    const std::size_t held = load16(at + 2);
    if (load16(at) == 0) return 0;
    if (load16(at) == code && held >= length && at + kOptionHead + held <= end)
      return at + kOptionHead;
    at += kOptionHead + ((held + 3) & ~std::size_t{3});
  }
  return 0;
}

std::uint16_t PcapngStream::load16(std::size_t at) const {
  std::uint16_t value = 0;
  std::memcpy(&value, block_.data() + at, sizeof value);
  return swapped_ ? __builtin_bswap16(value) : value;
}
std::uint32_t PcapngStream::load32(std::size_t at) const {
  std::uint32_t value = 0;
  std::memcpy(&value, block_.data() + at, sizeof value);
  return swapped_ ? __builtin_bswap32(value) : value;
}
std::uint64_t PcapngStream::load64(std::size_t at) const {
  std::uint64_t value = 0;
  std::memcpy(&value, block_.data() + at, sizeof value);
  return swapped_ ? __builtin_bswap64(value) : value;
}

// Reads all of it, as the options of a packet stand behind its bytes.
std::uint64_t count_dropped(std::FILE* file) {
  struct stat status {};
  const auto number = ::fileno(file);
  const auto begin = std::ftell(file);
  if (number < 0 || begin < 0 || ::fstat(number, &status) != 0 || !S_ISREG(status.st_mode))
    return 0;
  auto* const again = ::fdopen(::dup(number), "rb");  // shares its place with `file`
  if (again == nullptr) return 0;
  PcapngStream stream(again);
  if (auto* const through = std::fseek(again, begin, SEEK_SET) == 0 ? stream.open() : nullptr) {
    std::array<char, 65'536> piece{};
    while (std::fread(piece.data(), 1, piece.size(), through) != 0)
      while (stream.has_next()) stream.next();
    std::fclose(through);
  }
  std::fseek(file, begin, SEEK_SET);
  return stream.dropped();
}

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

Capture::Capture(std::unique_ptr<PcapngStream> stream, pcap* file, std::string name)
    : stream_(std::move(stream)),
      file_(file),
      name_(std::move(name)),
      joined_(std::make_unique<JoinedDatagrams>()) {}
Capture::~Capture() = default;
Capture::Capture(Capture&&) noexcept = default;
Capture& Capture::operator=(Capture&&) noexcept = default;

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
    capture.packets_ = IpPackets::of(type);
    if (capture.packets_) return capture;
    const auto* const text = pcap_datalink_val_to_name(type);
    error = name + ": the frames are of link type " + (text ? text : std::to_string(type)) +
            ", and STP runs on Ethernet and on IP; capture on an interface with one of these";
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

std::size_t CheckSequences::place_of_sender(Bytes frame) {
  constexpr std::size_t kSource = 6, kEnd = 12;  // behind the address of the receiver
  auto place = std::byte{0};
  for (std::size_t i = kSource; i < std::min(frame.size(), kEnd); ++i) place ^= frame[i];
  return std::to_integer<std::size_t>(place);
}

bool CheckSequences::would_end(Bytes frame) const {
  const auto& sender = of_senders_[place_of_sender(frame)];
  return (sender.looks == 0 ? all_ : sender).all_end();
}

bool CheckSequences::end(Bytes frame) {
  auto& sender = of_senders_[place_of_sender(frame)];
  if (frame.size() <= kSize || (!all_.found && sender.looks == kLooks)) return false;
  sender.looks = std::min(sender.looks + 1, kLooks);
  const auto length = frame.size() - kSize;
  boost::crc_32_type crc;
  crc.process_bytes(frame.data(), length);
  // Sent from its lowest byte on.
  std::uint32_t last = 0;
  for (std::size_t i = kSize; i-- > 0;)
    last = last << 8 | std::to_integer<std::uint32_t>(frame[length + i]);
  const bool is_crc = crc.checksum() == last;
  for (auto* const frames : {&all_, &sender}) (is_crc ? frames->found : frames->missing) = true;
  return is_crc;
}

bool Capture::next(CapturedFrame& out) {
  if (joined_->next(out)) return true;
  if (!read_frame(out)) return false;
  joined_->look(out);
  return true;
}

bool Capture::read_frame(CapturedFrame& out) {
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
  out.udp_ports = udp_ports_;
  out.perhaps_joined = false;
  out.number = ++count_;
  out.wire_length = std::max<std::size_t>(head->len, head->caplen);
  if (out.wire_length > told.fcs) out.wire_length -= told.fcs;
  out.bytes = {reinterpret_cast<const std::byte*>(bytes),
               std::min<std::size_t>(head->caplen, out.wire_length)};
  if (packets_ && !packets_->wrap(out)) {
    error_ = explain(
        "STP on Ethernet, without the addresses of its stations; capture on one "
        "Ethernet interface instead of \"any\"");
    return false;
  }
  if (packets_ || told.fcs != 0) return true;
  // Of a frame that was cut it cannot be known: it is like those before.
  const bool ends =
      out.cut() ? out.wire_length > CheckSequences::kSize && check_sequences_.would_end(out.bytes)
                : check_sequences_.end(out.bytes);
  if (!ends) return true;
  out.wire_length -= CheckSequences::kSize;
  out.bytes = out.bytes.first(std::min(out.bytes.size(), out.wire_length));
  return true;
}

std::string Capture::explain(const std::string& cause) const {
  auto text = name_ + ": after frame " + std::to_string(count_) + ": " + cause;
  // libpcap gives up on a file whose interfaces are of several kinds.
  if (cause.find("different from the type of the first interface") != std::string::npos)
    text += "; libpcap reads no such file: capture the Ethernet interface alone, not with others";
  return text;
}

namespace {

constexpr std::uint16_t kIpv4Type = 0x0800, kIpv6Type = 0x86dd;
constexpr std::uint8_t kUdpProtocol = 17;
constexpr std::size_t kIpv4Head = 20, kIpv6Head = 40, kUdpHead = 8, kMacs = 12;

struct Packet {
  Bytes source, destination;  // addresses
  std::uint8_t protocol;
  std::size_t length;  // of what follows the IP header
  Bytes rest;          // that, as far as it was captured
};

bool may_have_stp(std::byte protocol) {
  return protocol == std::byte{kUdpProtocol} || protocol == std::byte{wire::kIpProtocol};
}

Packet packet(Bytes source, Bytes destination, std::byte protocol, std::size_t length, Bytes rest) {
  return {source, destination, std::to_integer<std::uint8_t>(protocol), length,
          rest.first(std::min(rest.size(), length))};
}

std::optional<Packet> ipv4_in(Bytes ip) {
  if (ip.size() < kIpv4Head) return std::nullopt;
  const auto first = std::to_integer<unsigned>(ip[0]);
  const std::size_t head = (first & 0xf) * std::size_t{4};
  // More fragments, or an offset.
  const bool fragment = (wire::load16(ip.data() + 6) & 0x3fff) != 0;
  const std::size_t length = wire::load16(ip.data() + 2);
  if (first >> 4 != 4 || head < kIpv4Head || head > ip.size() || length < head || fragment ||
      !may_have_stp(ip[9]))
    return std::nullopt;
  return packet(ip.subspan(12, 4), ip.subspan(16, 4), ip[9], length - head, ip.subspan(head));
}

std::optional<Packet> ipv6_in(Bytes ip) {
  if (ip.size() < kIpv6Head || std::to_integer<unsigned>(ip[0]) >> 4 != 6 || !may_have_stp(ip[6]))
    return std::nullopt;
  return packet(ip.subspan(8, 16), ip.subspan(24, 16), ip[6], wire::load16(ip.data() + 4),
                ip.subspan(kIpv6Head));
}

std::optional<Packet> packet_in(Bytes frame) {
  if (frame.size() < kMacs + 2) return std::nullopt;
  auto type = wire::load16(frame.data() + kMacs);
  auto rest = frame.subspan(kMacs + 2);
  if (type == wire::kVlanEtherType && rest.size() >= wire::kVlanSize) {
    type = wire::load16(rest.data() + 2);
    rest = rest.subspan(wire::kVlanSize);
  }
  if (type == kIpv4Type) return ipv4_in(rest);
  if (type == kIpv6Type) return ipv6_in(rest);
  return std::nullopt;
}

bool of_stp(const CapturedFrame& frame, std::uint16_t from, std::uint16_t to) {
  const auto ours = [&](std::uint16_t port) {
    return port == wire::kUdpPort ||
           std::ranges::find(frame.udp_ports, port) != frame.udp_ports.end();
  };
  return frame.over_udp || ours(from) || ours(to);
}

// nullopt: it is not STP's, or nothing of it was captured.
// protocol: 13.1, 13.2, 13.15
std::optional<Datagram> datagram_of(const Packet& packet, const CapturedFrame& frame) {
  if (packet.protocol == wire::kIpProtocol) return Datagram{0, 0, packet.length, packet.rest};
  if (packet.rest.size() < kUdpHead) return std::nullopt;
  const auto* const udp = packet.rest.data();
  const auto from = wire::load16(udp), to = wire::load16(udp + 2);
  const std::size_t length = wire::load16(udp + 4);
  if (!of_stp(frame, from, to) || length < kUdpHead) return std::nullopt;
  return Datagram{from, to, length - kUdpHead,
                  packet.rest.first(std::min(packet.rest.size(), length)).subspan(kUdpHead)};
}

}  // namespace

MacAddr name_of_end(Bytes address, std::uint16_t port) {
  constexpr std::uint64_t kIpv4Names = 0x0204'0000'0000, kPrime = 0x100'0000'01b3;
  if (address.size() == 4 && (port == wire::kUdpPort || port == 0))
    return MacAddr::from_u64(kIpv4Names | wire::load32(address.data()));
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325 ^ port;
  for (const auto octet : address) hash = (hash ^ std::to_integer<std::uint64_t>(octet)) * kPrime;
  MacAddr name = MacAddr::from_u64(hash ^ hash >> 32);
  name.octets[0] = static_cast<std::uint8_t>((name.octets[0] & 0xfc) | 0x82);
  return name;
}

std::optional<Datagram> find_datagram(const CapturedFrame& frame) {
  const auto packet = packet_in(frame.bytes);
  return packet ? datagram_of(*packet, frame) : std::nullopt;
}

std::optional<CapturedFrame> datagram_in(const CapturedFrame& frame,
                                         std::vector<std::byte>& buffer) {
  const auto packet = packet_in(frame.bytes);
  const auto found = packet ? datagram_of(*packet, frame) : std::nullopt;
  if (!found) return std::nullopt;
  buffer.clear();
  for (const auto& name :
       {name_of_end(packet->destination, found->to), name_of_end(packet->source, found->from)})
    for (const auto octet : name.octets) buffer.push_back(std::byte{octet});
  buffer.push_back(std::byte{wire::kEtherType >> 8});
  buffer.push_back(std::byte{wire::kEtherType & 0xff});
  buffer.insert(buffer.end(), found->data.begin(), found->data.end());
  auto out = frame;
  out.bytes = buffer;
  out.wire_length = wire::kEthernetSize + found->length;
  out.ends = DatagramEnds{packet->source, packet->destination, found->from, found->to};
  return out;
}

std::string end_text(Bytes address, std::uint16_t port) {
  const bool four = address.size() == 4;
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(four ? AF_INET : AF_INET6, address.data(), text.data(), text.size());
  const std::string host = text.data();
  return (four ? host : "[" + host + "]") + (port == 0 ? "" : "/" + std::to_string(port));
}

std::optional<MacAddr> parse_end(const std::string& text) {
  const auto slash = std::min(text.find('/'), text.size());
  std::uint16_t port = 0;
  if (slash != text.size()) {
    const auto* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data() + slash + 1, end, port);
    if (problem != std::errc{} || stop != end || port == 0) return std::nullopt;
  }
  const auto host = text.substr(0, slash);
  const bool six = host.starts_with('[') && host.ends_with(']');
  std::array<std::byte, sizeof(in6_addr)> address{};
  if (::inet_pton(six ? AF_INET6 : AF_INET, (six ? host.substr(1, host.size() - 2) : host).c_str(),
                  address.data()) != 1)
    return std::nullopt;
  return name_of_end(Bytes(address).first(six ? sizeof(in6_addr) : sizeof(in_addr)), port);
}

namespace {

// The longest possible frame. Limits the memory for frames that a hostile file claims to be longer.
constexpr std::size_t kLongestFrame =
    wire::kMaxHeadSize + (std::size_t{1} << wire::kMaxMaxStu) + wire::kAppendSize;

// The types of tags of providers (802.1ad, and one that is older).
constexpr std::uint16_t kProviderTag = 0x88a8, kOldProviderTag = 0x9100;
constexpr std::size_t kAddresses = 2 * sizeof(MacAddr::octets);

}  // namespace

const char* Decoded::error() const {
  if (cut_short) return "cut";
  return reason == DropReason::kNone ? nullptr : name_of(reason);
}

// The Node's parser decides about the form. This adds what the Node does not need.
void Decoder::decode_whole(Bytes bytes, Decoded& out) const {
  out.reason = wire::parse(bytes, wire::kMaxMaxStu, out.frame);
  wire::LinkHeader link;
  Bytes payload;
  const auto wrapped = wire::unwrap(bytes, link, payload);
  out.has_link = wrapped == DropReason::kNone || wrapped == DropReason::kBadSource;
  // A frame that ends too early has its addresses, though a Node does not look at them.
  if (wrapped == DropReason::kTruncated && bytes.size() >= wire::kEthernetSize) {
    static_cast<wire::LinkHeader&>(out.frame) = link;
    out.has_link = true;
  }
  if (wrapped != DropReason::kNone || payload.size() < wire::kHeaderSize) return;
  out.has_header = true;
  if (out.frame.header.cksum == 0) return;
  out.cksum = out.reason == DropReason::kBadChecksum ? Cksum::kBad
              : out.reason == DropReason::kNone      ? Cksum::kGood
                                                     : Cksum::kUnknown;
}

// A Node takes frames with at most one tag. Of two, the outer one is the provider's: without it,
// the frame is what the stations exchange.
CapturedFrame Decoder::without_outer_tag(const CapturedFrame& captured, Decoded& out) {
  const auto bytes = captured.bytes;
  if (bytes.size() < kAddresses + wire::kVlanSize + 2) return captured;
  const auto type = wire::load16(bytes.data() + kAddresses);
  const auto next = wire::load16(bytes.data() + kAddresses + wire::kVlanSize);
  const bool provider = type == kProviderTag || type == kOldProviderTag;
  if (!provider && (type != wire::kVlanEtherType || next != wire::kVlanEtherType)) return captured;
  out.outer_vlan = wire::load16(bytes.data() + kAddresses + 2);
  untagged_.assign(bytes.begin(), bytes.begin() + kAddresses);
  untagged_.insert(untagged_.end(), bytes.begin() + kAddresses + wire::kVlanSize, bytes.end());
  auto inner = captured;
  inner.bytes = untagged_;
  inner.wire_length -= wire::kVlanSize;
  return inner;
}

Decoded Decoder::decode(const CapturedFrame& as_captured) {
  Decoded out;
  const auto untagged = without_outer_tag(as_captured, out);
  const auto captured = datagram_in(untagged, datagram_).value_or(untagged);
  out.number = captured.number;
  out.time = captured.time;
  out.epoch = captured.epoch;
  out.wire_length = as_captured.wire_length;
  out.cut = captured.cut();
  out.ends = captured.ends;
  out.perhaps_joined = captured.perhaps_joined;
  if (!out.cut) {
    decode_whole(captured.bytes, out);
    return out;
  }
  // Fills the missing bytes with zeros, so that all lengths are those on the wire.
  whole_.assign(std::min(captured.wire_length, kLongestFrame), std::byte{0});
  const auto held = std::min(captured.bytes.size(), whole_.size());
  std::copy_n(captured.bytes.begin(), held, whole_.begin());
  wire::LinkHeader link;
  Bytes payload;
  const auto wrapped = wire::unwrap(whole_, link, payload);
  const auto header_end = link.size() + wire::kHeaderSize;
  if (held < wire::kEthernetSize || (wrapped == DropReason::kNone && held < header_end)) {
    out.cut_short = true;
    if (held >= wire::kEthernetSize) {
      static_cast<wire::LinkHeader&>(out.frame) = link;
      out.has_link = true;
    }
    return out;
  }
  out.payload_held = held - std::min(held, header_end);
  // The checksum cannot be verified, because bytes are missing.
  std::uint16_t cksum = 0;
  if (wrapped == DropReason::kNone) {
    auto* const at = whole_.data() + link.size() + wire::at::kCksum;
    cksum = wire::load16(at);
    wire::store16(at, 0);
  }
  decode_whole(whole_, out);
  out.frame.header.cksum = cksum;
  if (cksum != 0) out.cksum = Cksum::kUnknown;
  return out;
}

}  // namespace stp::replay

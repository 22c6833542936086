// SPDX-License-Identifier: BSD-3-Clause
// Reads the frames of a capture file with libpcap (pcap or pcapng, of either byte order and any
// time resolution), and decodes them, also of STP in a datagram of UDP.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stp/types.h"
#include "stp/wire/frame.h"

struct pcap;

namespace stp::replay {

// A pcapng file on its way to libpcap, which does not tell of everything in it and refuses some:
// this reads how many frames the capturing program dropped and how long the frame check sequences
// are, and gives all interfaces one snap length. What is no pcapng passes unchanged.
class PcapngStream {
 public:
  // What libpcap does not tell of a packet.
  struct Packet {
    unsigned fcs = 0;           // bytes of frame check sequence at its end
    std::uint64_t dropped = 0;  // frames that were dropped before it, as far as the file says
    bool over_udp = false;      // of an interface that is a link over UDP of ours
  };

  // Takes `file` over, unless it is stdin.
  explicit PcapngStream(std::FILE* file);
  ~PcapngStream();
  PcapngStream(const PcapngStream&) = delete;
  PcapngStream& operator=(const PcapngStream&) = delete;

  // The stream for libpcap, which closes it, or nullptr. It must not outlive this object.
  std::FILE* open();
  // About the next packet that libpcap has returned.
  Packet next();
  [[nodiscard]] bool has_next() const { return !packets_.empty(); }
  // Frames that were dropped, of which the file has told so far.
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  struct Interface {
    unsigned fcs = 0;
    std::uint64_t before_packets = 0;  // dropped, as its packets say
    std::uint64_t in_all = 0;          // as its statistics say
    bool over_udp = false;
  };

  std::size_t read(char* out, std::size_t size);
  bool next_block();
  bool read_rest(std::size_t size);
  void look_at_block(std::uint32_t type);
  void add_packet(std::uint32_t interface, unsigned fcs, std::uint64_t dropped);
  [[nodiscard]] std::uint16_t load16(std::size_t at) const;
  [[nodiscard]] std::uint32_t load32(std::size_t at) const;
  [[nodiscard]] std::uint64_t load64(std::size_t at) const;
  // The place and length of an option of the present block, or 0 if it has none.
  [[nodiscard]] std::size_t find_option(std::size_t options, std::uint16_t code,
                                        std::size_t length) const;

  std::FILE* const file_;
  std::vector<char> block_;  // what libpcap gets next, from taken_ on
  std::size_t taken_ = 0;
  bool passes_ = false;   // something is wrong with the blocks: libpcap shall say what
  bool swapped_ = false;  // the section is in the other byte order
  std::vector<Interface> interfaces_;
  std::uint64_t dropped_before_ = 0;  // in earlier sections
  std::deque<Packet> packets_;
};

// How many frames were dropped, as a whole pcapng file says. 0 if it says nothing, or cannot be
// read twice (a pipe). Leaves the file at its beginning.
std::uint64_t count_dropped(std::FILE* file);

// Between which addresses and UDP ports a datagram went.
struct DatagramEnds {
  Bytes source, destination;  // 4 or 16 bytes, of the captured frame
  std::uint16_t from = 0, to = 0;
};

struct CapturedFrame {
  std::uint64_t number = 0;     // from 1, as Wireshark counts
  std::int64_t time = 0;        // nanoseconds since 1970, or since `epoch`
  Bytes bytes;                  // what the file holds; valid until the next frame is read
  std::size_t wire_length = 0;  // of the whole frame: more than bytes.size() if it was cut
  // Seconds since 1970 of time 0: not 0 for a file whose clock is decades ahead. The same for all
  // frames of a file.
  std::int64_t epoch = 0;
  std::uint64_t dropped = 0;  // by the capturing program before this frame, as far as the file says
  bool over_udp = false;      // captured by stpd at a link over UDP: of STP with any UDP port
  std::span<const std::uint16_t> udp_ports = {};  // of STP, too
  std::optional<DatagramEnds> ends = {};          // of the datagram that this was taken from
  bool perhaps_joined = false;  // it may be several datagrams, of which only the first is known

  [[nodiscard]] bool cut() const { return bytes.size() < wire_length; }
};

// Finds the check sequence (FCS) at the end of each frame in a file that does not tell of it: the
// CRC of what stands before it, which no other four bytes are but once in four thousand million
// frames. What the capturing host sends has none, because its NIC appends it later; so each sender
// is looked at for itself.
class CheckSequences {
 public:
  static constexpr std::size_t kSize = 4;
  // Whether this whole frame ends so. As long as none did, of each sender the first kLooks frames
  // are looked at, and no others.
  bool end(Bytes frame);
  [[nodiscard]] bool found() const { return all_.found; }
  // Whether this frame, which was cut, ends so, as far as whole ones tell.
  [[nodiscard]] bool would_end(Bytes frame) const;

 private:
  static constexpr unsigned kLooks = 256;
  struct Frames {
    [[nodiscard]] bool all_end() const { return found && !missing; }

    unsigned looks = 0;
    bool found = false, missing = false;  // at the end of one
  };
  static std::size_t place_of_sender(Bytes frame);

  Frames all_;
  std::array<Frames, 256> of_senders_;  // some senders may share a place
};

// Packets of IP without an Ethernet header, as captures of a tunnel (WireGuard, tun) have them, or
// of all interfaces at once ("any"). Each gets one that names no station: those of IP have
// addresses.
class IpPackets {
 public:
  // Of files with that link type (DLT_...). nullopt: it has no packets of IP, or not so.
  static std::optional<IpPackets> of(int type);
  // The result is valid until the next call. False: it is STP on Ethernet, whose addresses are not
  // there.
  bool wrap(CapturedFrame& frame);

 private:
  IpPackets(std::size_t head, std::optional<std::size_t> type_at)
      : head_(head), type_at_(type_at) {}
  [[nodiscard]] std::uint16_t type_of(Bytes bytes) const;

  std::size_t head_;                    // what stands before a packet
  std::optional<std::size_t> type_at_;  // where that has the EtherType; nullopt: nowhere
  std::vector<std::byte> wrapped_;
};

class JoinedDatagrams;

class Capture {
 public:
  // Opens a file; "-" is standard input. Returns nullopt if it fails: `error` names the file, the
  // cause and, if there is one, the remedy.
  static std::optional<Capture> open(const std::string& path, std::string& error);
  // Takes the stream over; `name` is for messages.
  static std::optional<Capture> read(std::FILE* stream, const std::string& name,
                                     std::string& error);

  ~Capture();
  Capture(Capture&&) noexcept;
  Capture& operator=(Capture&&) noexcept;

  // Datagrams of UDP from or to these ports are of STP, too.
  void set_udp_ports(std::vector<std::uint16_t> ports) { udp_ports_ = std::move(ports); }

  // Returns false at the end, or after an error: error() says how far the file could be read.
  // Datagrams that the file shows as one come apart, with one number.
  bool next(CapturedFrame& out);
  [[nodiscard]] const std::string& error() const { return error_; }
  // How many frames the capturing program dropped, as far as the file has said. For a file that can
  // be read twice, known from the beginning.
  [[nodiscard]] std::uint64_t dropped() const;
  // Whether frames until now ended with check sequences that the file does not tell of. They are
  // taken off.
  [[nodiscard]] bool found_check_sequences() const { return check_sequences_.found(); }

 private:
  struct Close {
    void operator()(pcap* file) const;
  };
  Capture(std::unique_ptr<PcapngStream> stream, pcap* file, std::string name);
  bool read_frame(CapturedFrame& out);
  std::int64_t time_of(std::int64_t seconds, std::int64_t nanoseconds);
  [[nodiscard]] std::string explain(const std::string& cause) const;

  std::unique_ptr<PcapngStream> stream_;  // that file_ reads, if it is a pcapng
  std::unique_ptr<pcap, Close> file_;
  std::string name_, error_;
  std::uint64_t count_ = 0;
  std::int64_t epoch_ = 0;
  std::uint64_t dropped_ = 0;  // in all, if that was known at the beginning
  unsigned fcs_ = 0;           // pcap: the length of each frame's check sequence
  CheckSequences check_sequences_;
  std::vector<std::uint16_t> udp_ports_;
  std::optional<IpPackets> packets_;  // nullopt: the frames are of Ethernet
  std::unique_ptr<JoinedDatagrams> joined_;
};

enum class Cksum { kNone, kGood, kBad, kUnknown };  // kUnknown: the capture cut what it covers

struct Decoded {
  std::uint64_t number = 0;
  std::int64_t time = 0, epoch = 0;  // as of the CapturedFrame
  std::size_t wire_length = 0;
  bool cut = false;                         // the capture holds only a part of the frame
  std::optional<std::uint16_t> outer_vlan;  // the tag in front of the one that STP knows
  DropReason reason = DropReason::kNone;    // why a Node would drop it for its form
  bool cut_short = false;                   // too much is missing to know the header
  bool has_link = false;                    // frame.src and .dst are known
  bool has_header = false;                  // frame.header is known, though `reason` may be set
  // How many bytes behind the header the capture holds, of one that it cut; else more than there
  // are.
  std::size_t payload_held = std::numeric_limits<std::size_t>::max();
  Cksum cksum = Cksum::kNone;
  std::optional<DatagramEnds> ends;  // it came in a datagram; they point into the captured frame
  bool perhaps_joined = false;       // as of the CapturedFrame
  wire::Frame frame;                 // its spans have the lengths on the wire; missing bytes are 0

  [[nodiscard]] bool is_stp() const { return cut_short || reason != DropReason::kNotStp; }
  [[nodiscard]] bool well_formed() const { return !cut_short && reason == DropReason::kNone; }
  // The first bytes of an STU or option payload; empty if there are less, or the capture cut them.
  [[nodiscard]] Bytes beginning(Bytes payload, std::size_t length) const {
    return payload.size() < length || payload_held < length ? Bytes{} : payload.first(length);
  }
  // "truncated", "cut", ..., or nullptr for a well-formed frame.
  [[nodiscard]] const char* error() const;
};

// Keeps the bytes of a frame that was cut. The result of decode() points into the captured frame or
// into the Decoder, and is valid until the next call.
class Decoder {
 public:
  Decoded decode(const CapturedFrame& captured);

 private:
  void decode_whole(Bytes bytes, Decoded& out) const;
  CapturedFrame without_outer_tag(const CapturedFrame& captured, Decoded& out);
  std::vector<std::byte> whole_, untagged_, datagram_;
};

// A datagram of STP in a frame, of UDP or of IP protocol 118.
struct Datagram {
  std::uint16_t from = 0, to = 0;  // UDP ports; 0: there are none
  std::size_t length = 0;
  Bytes data;  // as far as it was captured
};
std::optional<Datagram> find_datagram(const CapturedFrame& frame);

// The captured frame, if it is a datagram over IPv4 or IPv6 from or to the UDP port of STP or one
// of frame.udp_ports, or of any port in a trace that stpd made of a link over UDP, or one of IP
// protocol 118, as stations on Ethernet would have sent it: with a name for each address in the
// place of a MAC address (02:04 and the address, for IPv4 and that port; else a hash). A fragment
// is none, nor is a frame that is cut in front of its data. `buffer`: keeps the bytes of the
// result. protocol: 13.1, 13.2
std::optional<CapturedFrame> datagram_in(const CapturedFrame& frame,
                                         std::vector<std::byte>& buffer);

// The name of a station at that address and UDP port: the same in all captures. `port` 0: it has
// none.
MacAddr name_of_end(Bytes address, std::uint16_t port);
// 10.0.0.5/8181, [2001:db8::5]/8181; `port` 0: without it.
std::string end_text(Bytes address, std::uint16_t port);
// The name of the station in such a text.
std::optional<MacAddr> parse_end(const std::string& text);

}  // namespace stp::replay

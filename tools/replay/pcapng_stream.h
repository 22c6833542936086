// SPDX-License-Identifier: BSD-3-Clause
// A pcapng file on its way to libpcap, which does not tell of everything in it and refuses some:
// this reads how many frames the capturing program dropped and how long the frame check sequences
// are, and gives all interfaces one snap length. What is no pcapng passes unchanged.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <vector>

namespace stp::replay {

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

}  // namespace stp::replay

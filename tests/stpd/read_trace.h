// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <memory>
#include <string>
#include <vector>

#include "stp/types.h"

namespace stp::test {

struct Packet {
  Time time;
  std::vector<std::byte> bytes;
};

// The frames of a trace, read by libpcap.
// `whole`: the trace has all bytes of its frames.
inline std::vector<Packet> read_trace(const std::string& path, bool whole = true) {
  char error[PCAP_ERRBUF_SIZE] = {};
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> file(
      pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error),
      &pcap_close);
  EXPECT_NE(file, nullptr) << error;
  std::vector<Packet> packets;
  if (!file) return packets;
  EXPECT_EQ(pcap_datalink(file.get()), DLT_EN10MB);
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  int result;
  while ((result = pcap_next_ex(file.get(), &header, &data)) == 1) {
    if (whole) {
      EXPECT_EQ(header->caplen, header->len);
    }
    const auto* const from = reinterpret_cast<const std::byte*>(data);
    packets.push_back(
        {static_cast<Time>(header->ts.tv_sec) * kSecond + static_cast<Time>(header->ts.tv_usec),
         {from, from + header->caplen}});
  }
  EXPECT_EQ(result, PCAP_ERROR_BREAK) << pcap_geterr(file.get());
  return packets;
}

}  // namespace stp::test

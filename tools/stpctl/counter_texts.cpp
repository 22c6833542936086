// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/counter_texts.h"

#include <algorithm>
#include <array>
#include <optional>

#include "stp/counters.h"

namespace stp::stpctl {
namespace {

struct Text {
  std::string_view name, text;
};

// Counters of links and of stpd. Those of the Node have their texts in Counters::description.
constexpr std::array kTexts{
    Text{"link_rx_packets", "frames received, as the driver counts them"},
    Text{"link_tx_packets", "frames sent, as the driver counts them"},
    Text{"link_rx_missed", "frames that found no descriptor: nobody polled in time"},
    Text{"link_rx_errors", "damaged frames; memif: too long ones, and peers that broke the rules"},
    Text{"link_rx_nombuf", "frames that found no buffer"},
    Text{"link_tx_errors", "frames that the driver could not send"},
    Text{"link_tx_refused", "frames that the kernel did not send: too long, or the link went down"},
    Text{"rx_chained", "frames received in several buffers and reassembled"},
    Text{"rx_oversize", "reassembled frames dropped because they exceed the MTU"},
    Text{"rx_other_vlan", "frames dropped because their VLAN is not that of the link"},
    Text{"tx_kept", "frames that the driver had no room for, each turn that they wait"},
    Text{"tx_dropped", "frames given up: the link took none, or nobody has their address"},
    Text{"link_changes", "times the link came into another state: see stpctl links"},
    Text{"link_sought", "times a memif client looked for its server after the first"},
    Text{"tx_no_buffer", "turns in which no buffer was free for sending"},
    Text{"looped", "frames to our own address, which never reach the link"},
    Text{"wrong_queue", "frames that came on another shard's queue, and were handed to theirs"},
    Text{"shard_given", "frames handed to other shards"},
    Text{"shard_taken", "frames that other shards handed over"},
    Text{"shard_full", "frames dropped: the ring to another shard was full, or they were too long"},
    Text{"shard_waited", "turns in which nothing more was sent: the ring to a shard was full"},
    Text{"udp_rx_datagrams", "datagrams received"},
    Text{"udp_rx_joined", "datagrams that the kernel had joined with others"},
    Text{"udp_rx_no_station", "datagrams dropped: no host can have the address they came from"},
    Text{"udp_tx_datagrams", "datagrams sent"},
    Text{"udp_tx_calls", "system calls that sent datagrams"},
    Text{"udp_tx_unknown", "frames dropped: no address is known for their station"},
    Text{"udp_tx_too_long", "datagrams longer than the interface carries"},
    Text{"udp_tx_refused", "datagrams that the kernel did not send: no route, or a firewall"},
    Text{"udp_reports", "errors that hosts and routers reported (ICMP)"},
    Text{"udp_report_floods", "times that they came faster than they could be read"},
    Text{"udp_failed", "calls that failed for a reason of the socket's own"},
    Text{"udp_peers", "addresses of peers in the table now"},
    Text{"udp_strangers", "addresses of others in the table now"},
    Text{"udp_displaced", "addresses that gave way to others: the table was full"},
    Text{"arp_requests_sent", "ARP requests sent"},
    Text{"arp_answers_sent", "ARP answers sent"},
    Text{"arp_learned", "addresses that came to be known"},
    Text{"arp_ignored", "ARP frames that were malformed or about others"},
    Text{"arp_probes_sent", "ARP probes and announcements of the link's own address sent"},
    Text{"arp_conflicts", "times another station was found to have the link's address"},
    Text{"arp_dropped", "ARP frames not sent: too many waited"},
    Text{"clients", "programs that connected"},
    Text{"clients_refused", "programs turned away: too many were connected, or files open"},
    Text{"clients_bad_messages", "programs disconnected for what no libst sends"},
    Text{"clients_slow_readers", "programs disconnected for not reading their replies"},
    Text{"clients_slow_sockets", "programs disconnected because so many waited for their sockets"},
    Text{"bells_silenced", "times a program that rang for nothing was not listened to"},
    Text{"descriptors_stuck", "descriptors of programs that could not be closed for a second"},
    Text{"clients_torn_memory", "programs disconnected for taking away memory in use"},
    Text{"trace_frames", "frames written to the trace of --pcap"},
    Text{"trace_dropped", "frames that found the buffer of that trace full"},
};

std::optional<Counter> counter_named(std::string_view name) {
  for (std::size_t i = 0; i < kCounterCount; ++i)
    if (name == Counters::name(static_cast<Counter>(i))) return static_cast<Counter>(i);
  return std::nullopt;
}

}  // namespace

std::string_view text_of_counter(std::string_view name) {
  if (const auto counter = counter_named(name)) return Counters::description(*counter);
  const auto known = std::find_if(kTexts.begin(), kTexts.end(),
                                  [&](const Text& text) { return text.name == name; });
  return known == kTexts.end() ? std::string_view{} : known->text;
}

bool counts_drops(std::string_view name) {
  const auto counter = counter_named(name);
  return counter && Counters::is_drop(*counter);
}

}  // namespace stp::stpctl

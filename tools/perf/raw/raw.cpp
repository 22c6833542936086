// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/commands.h"

#include <sched.h>
#include <stp/managed.h>

#include <stdexcept>
#include <thread>

#include "dpdk_port/dpdk/bare_link.h"

namespace stp::perf {
namespace {

using port::BareFrame;
using port::BareLink;

// kStream: a frame of the stream `number`. kAsk: asks how much of the stream has arrived. kTold:
// the answer; `number` is the count of frames and `value` the nanoseconds from the first to the
// last. kBye: the client ends.
enum Kind : std::uint32_t { kPing = 1, kPong, kStream, kAsk, kTold, kBye };

constexpr MacAddr kEverybody{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr std::chrono::milliseconds kLost(50);  // a frame without an answer is sent again then
// When a client ends, memif unmaps the rings even while they are polled, so the server pauses.
constexpr std::chrono::milliseconds kLeaving(500);
constexpr std::chrono::seconds kPatience(10);  // for a server that is about to start

// Of a stpd. Where that does not answer, its link does not matter.
bool is_over_udp(const port::LinkConfig& config, const std::string& text) {
  stm_domain_attr_t attr{};
  attr.size = sizeof attr;
  attr.link = text.c_str();
  stm_domain_t domain = nullptr;
  if (config.kind != port::LinkKind::kStpd || stm_domain_open(&attr, &domain) != 0) return false;
  stm_domain_info_t info{};
  info.size = sizeof info;
  const bool is_udp = stm_domain_query(domain, &info) == 0 && info.udp_port != 0;
  stm_domain_close(domain);
  return is_udp;
}

std::unique_ptr<BareLink> open(const std::string& text) {
  port::LinkConfig config;
  std::string error;
  if (!port::parse_link(text, config, error)) throw std::runtime_error(error);
  if (port::is_internet(config.kind) || is_over_udp(config, text))
    throw std::runtime_error("link '" + text +
                             "' sends datagrams, and raw bare frames: for bare datagrams, and for "
                             "TCP, on the same way, use iperf3 and sockperf");
  const bool is_stpd = config.kind == port::LinkKind::kStpd;
  if (is_stpd || config.kind == port::LinkKind::kLoop)
    throw std::runtime_error(
        "link '" + text + "' sends no bare frames: raw needs iface:, memif:, pci: or vdev:" +
        (is_stpd ? "; on the way of an ip: link, use iperf3 and sockperf" : ""));
  auto link = BareLink::open(config, error);
  if (!link) throw std::runtime_error(error);
  return link;
}

void yield_if_crowded() {
  static const bool crowded = std::thread::hardware_concurrency() < 2;
  if (crowded) ::sched_yield();
}

class RawClient {
 public:
  RawClient(const std::string& link, std::uint64_t size) : link_(open(link)) {
    if (size < BareFrame::kSmallest || size > link_->mtu())
      throw std::runtime_error("a bare frame has " + std::to_string(BareFrame::kSmallest) +
                               " bytes to the link's MTU, " + std::to_string(link_->mtu()));
    frame_.peer = kEverybody;
    frame_.payload = size;
    frame_.peer = exchange(kPing, kPong, 0).peer;
  }

  ~RawClient() {
    frame_.kind = kBye;
    link_->send(frame_, 1);
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void round_trip() { exchange(kPing, kPong, ++sequence_); }

  // Sends for the given time, then asks how much has arrived.
  BareFrame stream(Stretch&& stretch) {
    frame_.kind = kStream;
    frame_.number = ++sequence_;
    std::uint64_t sent = 0;
    do {
      sent += link_->send(frame_, port::kBurst);
      link_->receive();
    } while (!stretch.past(sent));
    return exchange(kAsk, kTold, sequence_);
  }

 private:
  BareFrame exchange(Kind ask, Kind answer, std::uint64_t number) {
    const auto give_up = Clock::now() + kPatience;
    frame_.kind = ask;
    frame_.number = number;
    for (;;) {
      link_->send(frame_, 1);
      for (const auto again = Clock::now() + kLost; Clock::now() < again; yield_if_crowded())
        for (const auto& frame : link_->receive())
          if (frame.kind == answer && (answer == kTold || frame.number == number)) return frame;
      if (Clock::now() >= give_up)
        throw std::runtime_error(
            "nobody answers: is `stp-perf raw --serve` up at the link's other end?");
    }
  }

  std::unique_ptr<BareLink> link_;
  BareFrame frame_;
  std::uint64_t sequence_ = 0;
};

Result result_of(const std::string& link, std::uint64_t size, const char* operation) {
  Result result;
  result.what = "raw";
  result.operation = operation;
  result.link = link;
  result.size = size;
  return result;
}

// Counts what has arrived of a stream.
class Arrivals {
 public:
  void count(const BareFrame& frame) {
    const auto now = Clock::now();
    if (frame.number != stream_) {
      stream_ = frame.number;
      frames_ = 0;
      first_ = now;
    }
    ++frames_;
    last_ = now;
  }
  // Does not count the first frame: the time begins with its arrival.
  [[nodiscard]] BareFrame told_to(const MacAddr& peer) const {
    BareFrame told;
    told.peer = peer;
    told.kind = kTold;
    told.number = frames_ > 0 ? frames_ - 1 : 0;
    told.value = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(last_ - first_).count());
    told.payload = BareFrame::kSmallest;
    return told;
  }

 private:
  std::uint64_t stream_ = 0, frames_ = 0;
  Clock::time_point first_, last_;
};

}  // namespace

Result measure_raw_latency(const std::string& link, std::uint64_t size, const Pace& pace,
                           const UsageMeter& usage, Histogram& latency) {
  RawClient client(link, size);
  for (Stretch warm_up(pace.warm_up, pace.quiet, "warming up"); !warm_up.past(0);)
    client.round_trip();
  auto result = result_of(link, size, "round trip");
  const auto before = usage.now();
  Stretch stretch(pace.measure, pace.quiet, "measuring");
  do {
    const auto start = Clock::now();
    client.round_trip();
    latency.add(Clock::now() - start);
  } while (!stretch.past(latency.count()));
  result.seconds = stretch.seconds();
  result.here = Side{.usage = usage.now() - before};
  result.operations = latency.count();
  result.latency = &latency;
  return result;
}

Result measure_raw_stream(const std::string& link, std::uint64_t size, const Pace& pace,
                          const UsageMeter& usage) {
  RawClient client(link, size);
  client.stream(Stretch(pace.warm_up, pace.quiet, "warming up"));
  auto result = result_of(link, size, "one way");
  const auto before = usage.now();
  const auto told = client.stream(Stretch(pace.measure, pace.quiet, "measuring"));
  result.here = Side{.usage = usage.now() - before};
  result.seconds = static_cast<double>(told.value) / 1e9;
  result.operations = told.number;
  return result;
}

void run_raw_server(const std::string& text, const std::function<void()>& ready,
                    const std::atomic<bool>& stop) {
  const auto link = open(text);
  if (ready) ready();
  Arrivals arrivals;
  while (!stop) {
    const auto frames = link->receive();
    if (frames.empty()) yield_if_crowded();
    for (auto frame : frames) {
      if (frame.kind == kStream) {
        arrivals.count(frame);
      } else if (frame.kind == kPing) {
        frame.kind = kPong;
        link->send(frame, 1);
      } else if (frame.kind == kAsk) {
        link->send(arrivals.told_to(frame.peer), 1);
      } else if (frame.kind == kBye) {
        std::this_thread::sleep_for(kLeaving);
      }
    }
  }
}

}  // namespace stp::perf

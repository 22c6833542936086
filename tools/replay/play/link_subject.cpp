// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/link_subject.h"

#include <fcntl.h>
#include <pcap/pcap.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "dpdk_port/link/ipv4_addresses.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

using Clock = std::chrono::system_clock;

// Where only this user and root may make files.
std::string own_directory() {
  if (::geteuid() == 0) return "/run";
  const auto* const runtime = std::getenv("XDG_RUNTIME_DIR");
  return runtime == nullptr ? "" : runtime;
}

}  // namespace

LastPlay LastPlay::with(int interface, const MacAddr& station) {
  const auto directory = own_directory();
  struct stat network {};
  if (directory.empty() || ::stat("/proc/self/ns/net", &network) != 0) return LastPlay("");
  auto name = to_string(station);
  std::ranges::replace(name, ':', '-');
  return LastPlay(directory + "/stp-replay-" + std::to_string(network.st_ino) + '-' +
                  std::to_string(interface) + '-' + name);
}

std::chrono::milliseconds LastPlay::remembered() const {
  struct stat status {};
  if (path_.empty() || ::lstat(path_.c_str(), &status) != 0) return {};
  const Clock::time_point then(std::chrono::duration_cast<Clock::duration>(
      std::chrono::seconds(status.st_mtim.tv_sec) +
      std::chrono::nanoseconds(status.st_mtim.tv_nsec)));
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - then);
  // A clock that was set back says nothing.
  return since.count() < 0 || since >= kRemembered ? std::chrono::milliseconds()
                                                   : kRemembered - since;
}

void LastPlay::note() const {
  if (path_.empty()) return;
  const auto file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  ::futimens(file, nullptr);
  ::close(file);
}

namespace {

constexpr int kSnaplen = 66'000;
// The time for an answer to a frame before the next frame of the trace is sent.
constexpr std::int64_t kLeastPause = 2'000'000;
constexpr std::chrono::microseconds kNap(200);

std::int64_t real_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void wait_until_forgotten(const LastPlay& last) {
  const auto left = last.remembered();
  if (left.count() == 0) return;
  std::fprintf(stderr,
               "stp-replay: the station may take this play for late frames of the last one "
               "(protocol 5.10): waiting for %.1f s\n",
               std::chrono::duration<double>(left).count());
  std::this_thread::sleep_for(left);
}

}  // namespace

void LinkSubject::Close::operator()(pcap* link) const {
  pcap_close(link);
}

LinkSubject::~LinkSubject() {
  if (connected_) last_.note();
}

// A program that has one of these addresses on the interface would answer, too.
bool LinkSubject::claim(const std::string& link, int index, const std::set<MacAddr>& others,
                        std::string& error) {
  constexpr std::size_t kMost = 256;
  if (others.size() > kMost) {
    error = link + ": the trace has frames of " + std::to_string(others.size()) +
            " stations to this one; at most " + std::to_string(kMost) + " can be played";
    return false;
  }
  for (const auto& other : others) {
    owned_.push_back(port::InterfaceOwner::claim(link, index, other, error));
    if (owned_.back()) continue;
    error = "frames would be sent from " + to_string(other) + ": " + error;
    return false;
  }
  return true;
}

std::unique_ptr<LinkSubject> LinkSubject::open(const std::string& link, const MacAddr& station,
                                               const std::set<MacAddr>& others, Output output,
                                               std::string& error) {
  std::array<char, PCAP_ERRBUF_SIZE> why{};
  const auto fail = [&](const std::string& text) {
    error = link + ": " + text;
    return nullptr;
  };
  const auto index = port::index_of_interface(link);
  if (index == 0)
    return fail("there is no such interface: give a name as 'ip link' lists it, such as eth0");
  // libpcap knows no alternative names.
  std::unique_ptr<pcap, Close> file(pcap_create(port::name_of_interface(link).c_str(), why.data()));
  if (!file) return fail(why.data());
  pcap_set_snaplen(file.get(), kSnaplen);
  pcap_set_promisc(file.get(), 1);
  pcap_set_immediate_mode(file.get(), 1);
  if (const auto result = pcap_activate(file.get()); result < 0)
    return fail(std::string(pcap_statustostr(result)) + " (" + pcap_geterr(file.get()) +
                "); it needs the name of an interface, and root or CAP_NET_RAW");
  if (pcap_datalink(file.get()) != DLT_EN10MB) return fail("not an Ethernet interface");
  const auto filter = "ether src " + to_string(station);
  bpf_program program{};
  if (pcap_compile(file.get(), &program, filter.c_str(), 1, PCAP_NETMASK_UNKNOWN) != 0)
    return fail(pcap_geterr(file.get()));
  const auto set = pcap_setfilter(file.get(), &program);
  pcap_freecode(&program);
  if (set != 0 || pcap_setnonblock(file.get(), 1, why.data()) != 0)
    return fail(pcap_geterr(file.get()));
  const auto last = LastPlay::with(index, station);
  std::unique_ptr<LinkSubject> subject(
      new LinkSubject(file.release(), station, std::move(output), last));
  if (!subject->claim(link, index, others, error)) return nullptr;
  wait_until_forgotten(last);
  return subject;
}

// Waits at least kLeastPause, because frames of the trace may follow each other faster than the
// peer can answer.
void LinkSubject::advance(std::int64_t now) {
  if (trace_start_ < 0) {
    trace_start_ = now;
    real_start_ = real_now();
  }
  const auto due = std::max(real_start_ + (now - trace_start_), real_now() + kLeastPause);
  do {
    read(now);
    std::this_thread::sleep_for(kNap);
  } while (real_now() < due);
  read(now);
}

void LinkSubject::read(std::int64_t trace_now) {
  pcap_pkthdr* head = nullptr;
  const unsigned char* bytes = nullptr;
  int result = 0;
  while ((result = pcap_next_ex(link_.get(), &head, &bytes)) == 1) {
    Recorded frame;
    const auto* const first = reinterpret_cast<const std::byte*>(bytes);
    frame.bytes.assign(first, first + head->caplen);
    Decoder decoder;
    frame.decoded = decoder.decode({0, trace_now, frame.bytes, frame.bytes.size()});
    if (!frame.decoded.well_formed() || !frame.decoded.is_stp()) continue;
    const auto& h = frame.decoded.frame.header;
    connected_ =
        connected_ || (h.op() == wire::Op::kConnectionAnswer && !h.has(wire::flag::kReject));
    output_(frame);
  }
  if (result == PCAP_ERROR) error_ = pcap_geterr(link_.get());
}

void LinkSubject::deliver(std::size_t /*at*/, Bytes frame) {
  if (pcap_inject(link_.get(), frame.data(), frame.size()) < 0) error_ = pcap_geterr(link_.get());
}

}  // namespace stp::replay

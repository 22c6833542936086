// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/player.h"

#include <fcntl.h>
#include <pcap/pcap.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <new>
#include <set>
#include <thread>

#include "dpdk_port/link/interfaces.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/checksum.h"
#include "stp/wire/operations.h"
#include "tools/cli/say.h"
#include "tools/replay/play/node_subject.h"
#include "tools/replay/play/unseen.h"
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
  const auto tenths = std::chrono::ceil<std::chrono::milliseconds>(left).count() / 100;
  cli::say(
      "stp-replay",
      "the station may take this play for late frames of the last one (protocol 5.10): waiting "
      "for " +
          std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10) + " s");
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

namespace {

using wire::Header;
using wire::Op;

// The largest difference in time between two matching frames.
constexpr std::int64_t kWindow = 2'000'000'000;
// How long after the trace's last frame the live side may still send what the trace shows, and how
// long before it a frame may have come to the station that had not answered it then.
constexpr std::int64_t kLastWords = 100'000'000;

// A value that the sender of an operation has chosen itself.
struct NamedField {
  Name kind;
  std::uint32_t value;
};
std::vector<NamedField> own_names(const Header& h) {
  std::vector<NamedField> names;
  const bool refusal = h.op() == Op::kConnectionAnswer && h.has(wire::flag::kReject);
  if (!refusal) names.push_back({Name::kPort, h.s_port});  // a refusal has no Port
  switch (wire::operation(h.op()).own) {
    case wire::Own::kKey:
      names.push_back({Name::kKey, h.offset});
      break;
    case wire::Own::kMx:
      // A refused GET carries the Mx of the one who asked.
      if (h.op() == Op::kGet && h.has(wire::flag::kReject)) break;
      names.push_back({Name::kMx, mx_at(h.s_port, h.mx)});
      break;
    case wire::Own::kSync:
      if (own_question(h)) names.push_back({Name::kSync, h.sync});
      break;
    case wire::Own::kNone:
      break;
  }
  return names;
}

// The header without values that are local choices.
Header neutral(Header h) {
  const auto names = own_names(h);
  h.cksum = 0;
  for (const auto& named : names) {
    if (named.kind == Name::kPort) h.s_port = 0;
    if (named.kind == Name::kKey) h.offset = 0;
    if (named.kind == Name::kMx) h.mx = 0;
    if (named.kind == Name::kSync) h.sync = 0;
  }
  // The free Slots depend on when the user reads its queue.
  if (h.op() == Op::kRequestStateResponse) h.param = 0;
  return h;
}

bool same_bytes(Bytes a, Bytes b) {
  return std::ranges::equal(a, b);
}

using Translate = std::function<std::uint32_t(Name, std::uint32_t)>;

// The frame with the live side's names. Repeats are recognized by it.
std::vector<std::byte> under_live_names(const wire::Frame& frame, const Translate& live) {
  auto h = neutral(frame.header);
  for (const auto& named : own_names(frame.header)) {
    const auto name = live(named.kind, named.value);
    if (named.kind == Name::kPort) h.s_port = static_cast<std::uint16_t>(name);
    if (named.kind == Name::kKey) h.offset = name;
    if (named.kind == Name::kMx) h.mx = static_cast<std::uint16_t>(name);
  }
  std::vector<std::byte> bytes(wire::kHeaderSize);
  wire::encode(h, bytes.data());
  for (const auto& part : {frame.option, frame.stu, frame.append})
    bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

std::vector<std::byte> live_bytes(const Decoded& live) {
  return under_live_names(live.frame, [](Name, std::uint32_t name) { return name; });
}

}  // namespace

// If both are the same frame, binds their names to each other.
bool Matcher::pair(const Decoded& in_trace, const Decoded& live) {
  const auto& a = in_trace.frame;
  const auto& b = live.frame;
  if (std::abs(in_trace.time - live.time) > kWindow) return false;
  if (a.dst != b.dst || a.snap != b.snap || a.vlan != b.vlan ||
      neutral(a.header) != neutral(b.header) || !same_bytes(a.option, b.option) ||
      !same_bytes(a.stu, b.stu) || !same_bytes(a.append, b.append) ||
      (a.header.cksum == 0) != (b.header.cksum == 0))
    return false;
  const auto mine = own_names(a.header), theirs = own_names(b.header);
  // A new connection may reuse the Port of an earlier one. Its Key distinguishes the two.
  const bool begins =
      a.header.op() == Op::kRequestConnection || a.header.op() == Op::kConnectionAnswer;
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (!(begins && mine[i].kind == Name::kPort) &&
        !names_.agree(mine[i].kind, mine[i].value, theirs[i].value))
      return false;
  for (std::size_t i = 0; i < mine.size(); ++i)
    names_.bind(mine[i].kind, mine[i].value, theirs[i].value);
  return true;
}

void Matcher::expect(const Recorded& frame) {
  for (auto at = live_.begin(); at != live_.end(); ++at) {
    if (!pair(frame.decoded, at->decoded)) continue;
    done_.insert(live_bytes(at->decoded));
    live_.erase(at);
    ++matched_;
    return;
  }
  // Checked now and not only at the end, because names may be bound to others by then.
  if (!is_repeat(frame.decoded)) expected_.push_back(&frame);
}

bool Matcher::is_repeat(const Decoded& in_trace) const {
  return done_.contains(under_live_names(
      in_trace.frame, [&](Name kind, std::uint32_t name) { return names_.live(kind, name); }));
}

void Matcher::sent(const Recorded& frame) {
  for (auto at = expected_.begin(); at != expected_.end(); ++at) {
    if (!pair((*at)->decoded, frame.decoded)) continue;
    done_.insert(live_bytes(frame.decoded));
    expected_.erase(at);
    ++matched_;
    return;
  }
  if (over_) return;
  auto& live = live_.emplace_back();
  live.bytes = frame.bytes;
  Decoder decoder;
  live.decoded =
      decoder.decode({frame.decoded.number, frame.decoded.time, live.bytes, live.bytes.size()});
  live.reached = reached_;
}

void Matcher::question_over(std::uint32_t sync) {
  expected_.remove_if([&](const Recorded* frame) {
    const auto& h = frame->decoded.frame.header;
    return own_question(h) && h.sync == sync;
  });
}

std::vector<Difference> Matcher::differences() {
  expected_.remove_if([&](const Recorded* frame) {
    return own_question(frame->decoded.frame.header) || is_repeat(frame->decoded);
  });
  live_.remove_if([&](const Live& frame) {
    return own_question(frame.decoded.frame.header) || done_.contains(live_bytes(frame.decoded));
  });
  std::vector<Difference> found;
  for (const auto* const frame : expected_) {
    const auto& wanted = frame->decoded.frame.header;
    Difference difference{frame->decoded.number, operation_text(frame->decoded), ""};
    // If the live side sent the same operation on the same connection, it was sent instead.
    const auto instead = std::ranges::find_if(live_, [&](const Live& live) {
      const auto& h = live.decoded.frame.header;
      return h.op() == wanted.op() && h.d_port == wanted.d_port &&
             live.decoded.frame.dst == frame->decoded.frame.dst;
    });
    if (instead != live_.end()) {
      difference.live = operation_text(instead->decoded);
      live_.erase(instead);
    }
    found.push_back(std::move(difference));
  }
  after_end_ = std::erase_if(
      live_, [&](const Live& frame) { return frame.decoded.time > last_ - kLastWords; });
  for (const auto& live : live_) found.push_back({live.reached, "", operation_text(live.decoded)});
  std::ranges::stable_sort(found, {}, &Difference::frame);
  return found;
}

namespace {

using wire::Op;

// A trace does not show exactly when credit sufficed or when a Node asked for more. Whatever the
// trace shows as sent had credit, so the Node is given more Slots than it can use.
void give_plenty(wire::Header& h) {
  constexpr std::uint16_t kPlenty = 0xffff;
  const bool announces = h.op() == Op::kRequestConnection || h.op() == Op::kConnectionAnswer ||
                         h.op() == Op::kRequestStateResponse;
  if (announces && !h.has(wire::flag::kReject)) h.param = kPlenty;
}

// The frame with the live side's values in place of the station's own names.
std::vector<std::byte> translated(const Recorded& frame, const Renaming& names, bool plenty) {
  auto bytes = frame.bytes;
  if (!frame.decoded.has_header) return bytes;
  const auto& link = static_cast<const wire::LinkHeader&>(frame.decoded.frame);
  auto h = frame.decoded.frame.header;
  if (h.op() == Op::kData) h.mx = names.live_mx(h.d_port, h.mx);
  h.d_port = static_cast<std::uint16_t>(names.live(Name::kPort, h.d_port));
  h.d_key = names.live(Name::kKey, h.d_key);
  if (h.op() == Op::kRequestStateResponse && names.knows(Name::kSync, h.sync))
    h.sync = names.live(Name::kSync, h.sync);
  if (h.op() == Op::kRequestConnection) h.d_port = 0, h.d_key = frame.decoded.frame.header.d_key;
  if (plenty && frame.decoded.well_formed()) give_plenty(h);
  auto* const at = bytes.data() + link.size();
  const bool good = frame.decoded.cksum == Cksum::kGood;
  if (good) h.cksum = 0;
  wire::encode(h, at);
  if (!good) return bytes;
  const auto& f = frame.decoded.frame;
  wire::Checksum sum;
  sum.add({at, wire::kHeaderSize + f.option.size() + f.stu.size() + f.append.size()});
  wire::store16(at + wire::at::kCksum, sum.wire_value());
  return bytes;
}

bool sent_by(const Recorded& frame, const MacAddr& station) {
  return frame.decoded.well_formed() && frame.decoded.frame.src == station;
}

bool sent_to(const Recorded& frame, const MacAddr& station) {
  return (frame.decoded.has_header || frame.decoded.has_link) && frame.decoded.frame.dst == station;
}

// The stations whose frames are played to the station.
std::set<MacAddr> others(const std::deque<Recorded>& trace, const MacAddr& station) {
  std::set<MacAddr> found;
  for (const auto& frame : trace)
    if (sent_to(frame, station)) found.insert(frame.decoded.frame.src);
  return found;
}

PlayResult play(const std::deque<Recorded>& trace, const MacAddr& station, Renaming& names,
                const Doubts& doubts, Matcher& matcher, Subject& subject) {
  PlayResult result;
  for (std::size_t at = 0; at < trace.size(); ++at) {
    const auto& frame = trace[at];
    matcher.reach(frame.decoded.number);
    subject.advance(frame.decoded.time);
    if (sent_by(frame, station)) {
      if (subject.decide(at) && !doubts.concern(frame.decoded.frame)) {
        matcher.expect(frame);
        ++result.expected;
      }
    }
    if (sent_to(frame, station)) {
      const auto& h = frame.decoded.frame.header;
      if (frame.decoded.well_formed() && h.op() == Op::kRequestStateResponse &&
          !names.knows(Name::kSync, h.sync))
        matcher.question_over(h.sync);
      subject.deliver(at, translated(frame, names, subject.wants_credit()));
      ++result.delivered;
    }
  }
  const auto last = trace.empty() ? 0 : trace.back().decoded.time;
  matcher.trace_over(last);
  if (!trace.empty()) subject.advance(last + kLastWords);
  if (auto note = doubts.note(); !note.empty()) result.notes.push_back(std::move(note));
  result.differences = matcher.differences();
  if (matcher.after_end() != 0)
    result.notes.push_back(std::to_string(matcher.after_end()) +
                           " frames that the live side sends at the end are not compared: the "
                           "station may have sent them after the trace");
  result.matched = result.expected;
  for (const auto& difference : result.differences)
    result.matched -= difference.in_trace.empty() ? 0 : 1;
  return result;
}

}  // namespace

bool talks_to_itself(const std::deque<Recorded>& trace, const MacAddr& station) {
  return std::ranges::any_of(trace, [&](const Recorded& frame) {
    return sent_by(frame, station) && sent_to(frame, station);
  });
}

namespace {

PlayResult refuse(std::string why) {
  PlayResult result;
  result.refused = std::move(why);
  return result;
}

PlayResult play_life(const std::deque<Recorded>& trace, const MacAddr& station) try {
  Renaming names;
  Matcher matcher(names);
  const Doubts doubts(trace, station);
  NodeSubject subject(trace, station, names, [&](const Recorded& frame) {
    if (!doubts.concern(frame.decoded.frame, names)) matcher.sent(frame);
  });
  if (!subject.refused().empty()) return refuse(subject.refused());
  auto result = play(trace, station, names, doubts, matcher, subject);
  result.troubles = subject.troubles();
  std::ranges::move(subject.notes(), std::back_inserter(result.notes));
  return result;
} catch (const std::bad_alloc&) {
  return refuse("there is no memory for what the users of " + to_string(station) +
                " grant and send");
}

void append(PlayResult& all, PlayResult more) {
  std::ranges::move(more.differences, std::back_inserter(all.differences));
  std::ranges::move(more.troubles, std::back_inserter(all.troubles));
  std::ranges::move(more.notes, std::back_inserter(all.notes));
  if (all.refused.empty()) all.refused = std::move(more.refused);
  all.delivered += more.delivered;
  all.expected += more.expected;
  all.matched += more.matched;
}

}  // namespace

PlayResult play_node(const std::deque<Recorded>& trace, const MacAddr& station) {
  const auto lives = lives_of(trace, station);
  if (lives.size() == 1) return play_life(trace, station);
  PlayResult all;
  for (const auto& life : lives) {
    if (life.begin != 0)
      all.notes.push_back(
          "the station has restarted after frame " +
          std::to_string(trace[life.begin - 1].decoded.number) +
          ", as it uses the Ports of live connections again: a new Node takes its place");
    append(all, play_life(piece_of(trace, life), station));
  }
  return all;
}

PlayResult play_link(const std::deque<Recorded>& trace, const MacAddr& station,
                     const std::string& link, std::string& error) {
  Renaming names;
  Matcher matcher(names);
  const Doubts doubts(trace, station);
  const auto compare = [&](const Recorded& frame) {
    if (!doubts.concern(frame.decoded.frame, names)) matcher.sent(frame);
  };
  const auto subject = LinkSubject::open(link, station, others(trace, station), compare, error);
  if (!subject) return {};
  auto result = play(trace, station, names, doubts, matcher, *subject);
  error = subject->error();
  return result;
}

}  // namespace stp::replay

// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/served_link.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "dpdk_port/link/cpus.h"
#include "dpdk_port/link/interfaces.h"
#include "dpdk_port/link/owners.h"
#include "libst/host/poll_loop.h"
#include "libst/ipc/socket.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/ethernet.h"

namespace stp::stpd {
namespace {

constexpr std::uint16_t kEtherTypeArp = 0x0806;
constexpr unsigned kMostLost = 4;  // most writers that are left behind, each with its buffer

bool is_arp(Bytes head) {
  constexpr std::size_t kTypeAt = 12;
  const auto type_at = [&](std::size_t at) -> std::uint16_t {
    return head.size() < at + 2 ? std::uint16_t{0} : wire::load16(head.data() + at);
  };
  const auto type = type_at(kTypeAt);
  return (type == wire::kVlanEtherType ? type_at(kTypeAt + wire::kVlanSize) : type) ==
         kEtherTypeArp;
}

bool is_stp(Bytes head) {
  wire::LinkHeader link;
  Bytes payload;
  // Includes malformed STP frames: one looks for them in a trace.
  return wire::unwrap(head, link, payload) != DropReason::kNotStp;
}

// How many bytes of each frame a trace of this link keeps. 0: all.
std::uint32_t snap_of(const std::string& link, std::uint32_t asked) {
  const bool over_ip = link.starts_with("udp:") || link.starts_with("ip:");
  return over_ip && asked != 0 ? std::max(asked, ipc::kLeastSnapOverIp) : asked;
}

}  // namespace

Tracer::Tracer(LinkShards& shards, port::Tap* beside, IsOwn is_own, Log log)
    : shards_(shards), beside_(beside), is_own_(std::move(is_own)), log_(std::move(log)) {}

Tracer::~Tracer() {
  stop();
}

// Returns whether a new trace may begin. A writer that was told to finish and does not is blocked
// by its file; a few such writers may be left behind.
bool Tracer::has_let_go() {
  if (!writer_ || writer_->finished()) return true;
  if (!writer_->is_overdue() || lost_writers_ == kMostLost) return false;
  ++lost_writers_;
  log_("the file of the last trace blocks: stpd abandons it");
  return true;
}

int Tracer::start(const ipc::TraceOrder& order, host::ClientId by, os::UniqueFd& file) {
  if (!has_let_go()) return -EBUSY;
  if (is_own_(file.get())) return -ETXTBSY;
  stop();  // ends a trace that has reached its own limit
  trace::PcapngWriter::Options options{.interface = shards_.first().info().link,
                                       .program = "stpd " STP_VERSION};
  if (order.max_frames != 0) options.max_frames = order.max_frames;
  if (order.nanoseconds != 0) options.duration = order.nanoseconds;
  options.snap_length = snap_of(shards_.first().info().link, order.snap);
  if (order.buffer != 0)
    options.ring_bytes =
        std::bit_ceil(std::clamp(order.buffer, ipc::kLeastTraceBuffer, ipc::kMostTraceBuffer));
  auto writer = trace::PcapngWriter::create(std::move(file), options);
  if (!writer) return -ENOMEM;
  tap_.reset();
  writer_ = std::move(writer);
  tap_.emplace(*writer_);
  // A link over UDP or IP carries nothing else.
  everything_ = order.everything != 0 || shards_.first().info().internet;
  owner_ = order.stays != 0 ? 0 : by;
  running_ = true;
  shards_.set_tap(this);
  log_("trace started by client " + std::to_string(by));
  return 0;
}

int Tracer::stop() {
  if (!running_) return writer_ ? 0 : -ENOENT;
  running_ = false;
  shards_.set_tap(beside_);
  writer_->finish();
  const auto why = trace::why_it_ends_early(writer_->error());
  log_("trace ended" + (why.empty() ? "" : " early: " + why) + ": " +
       std::to_string(writer_->frames()) + " frames, " + std::to_string(writer_->dropped()) +
       " dropped");
  return 0;
}

int Tracer::status(ipc::TraceState& out) {
  if (!writer_) return -ENOENT;
  out.finished = writer_->finished() ? 1 : 0;
  if (out.finished != 0) stop();
  out.error = writer_->error();
  out.frames = writer_->frames();
  out.dropped = writer_->dropped();
  out.written_bytes = writer_->written_bytes();
  return 0;
}

void Tracer::client_gone(host::ClientId client) {
  if (running_ && owner_ == client) stop();
}

void Tracer::frame(Bytes head, Bytes rest, bool sent) {
  if (beside_ != nullptr) beside_->frame(head, rest, sent);
  if (everything_ || is_stp(head) || is_arp(head)) tap_->frame(head, rest, sent);
}

namespace {

// How long an ending daemon waits for its peers to confirm the disconnects.
constexpr std::chrono::seconds kGoodbye{1};

// With --cpus, `queues=auto` means one queue for each of these CPUs.
unsigned queues_of(const port::LinkConfig& config, const LinkOptions& link) {
  if (config.queues != port::kAutoQueues || link.cpus.empty()) return config.queues;
  return static_cast<unsigned>(std::min<std::size_t>(link.cpus.size(), port::kMaxQueues));
}

std::string listen_error(const std::string& path, int error) {
  if (error == -EADDRINUSE) {
    const auto why = port::why_no_socket(path, ipc::kDefaultSocket);
    return "socket " + path + ": " +
           (why.empty() ? "another daemon answers there: stop it, or name another --socket" : why);
  }
  if (error == -EPERM && !ipc::directory_is_safe(path))
    return "socket " + path +
           ": anybody may replace files in that directory: take write permission from others "
           "(chmod o-w), set its sticky bit, or name another directory";
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code unknown;
  if (error == -ENOENT && !std::filesystem::exists(folder, unknown))
    return "socket " + path + ": there is no directory " + folder.parent_path().string() +
           ": make it (mkdir -p), or name another socket (--socket)";
  if (error == -ENOENT || error == -EROFS || error == -ENOSPC)
    return "socket " + path + ": no socket can be made in " + folder.string() + " (" +
           std::strerror(-error) + "): name one elsewhere (--socket)";
  if (error == -EPERM)
    return "socket " + path +
           ": this user may not give it to another one or to that group: leave out --socket-owner "
           "and --socket-group, or start stpd as root";
  if (error == -EACCES)
    return "socket " + path +
           ": this user may not make it there: name one elsewhere (--socket), in a directory of "
           "its own (mkdir -m 700 /tmp/stp-$USER), which programs name in STP_LINK=stpd:PATH; or "
           "let root make the directory and give it to this user";
  return "socket " + path + ": " + std::strerror(-error);
}

}  // namespace

std::unique_ptr<ServedLink> ServedLink::open(const LinkOptions& link, const Options& options,
                                             const OwnFiles& own_files, bool alone,
                                             std::string& error) {
  std::unique_ptr<ServedLink> served(new ServedLink(link, options, own_files, alone));
  Ports ports;
  if (!served->open_ports(ports, error) && !served->wait_for_what_is_missing(ports, error))
    return nullptr;
  if (!served->start_trace(error) || !served->find_admin_group(error)) return nullptr;
  served->make_parts(std::move(ports));
  if (!served->listen(error)) return nullptr;
  served->log_link();
  return served;
}

ServedLink::ServedLink(const LinkOptions& link, const Options& options, const OwnFiles& own_files,
                       bool alone)
    : options_(link),
      common_(options),
      own_files_(own_files),
      log_name_(alone ? std::string() : link.name) {}

ServedLink::Parts::Parts(const LinkOptions& link, Ports ports, Server::Log log)
    : places(host::poll_places(link.poll, static_cast<unsigned>(ports.size()), link.cpus,
                               port::usable_cpu_count())),
      shards(std::move(ports), places, link.granted),
      server(shards.services(), link.socket, std::move(log)) {}

bool ServedLink::open_ports(Ports& ports, std::string& error) {
  port::LinkConfig config;
  if (!port::parse_link(options_.link, config, error)) return false;
  config.queues = queues_of(config, options_);
  port::OpenError why;
  ports = port::Port::open_shards(config, why);
  error = why.text;
  return !ports.empty();
}

// False: the link cannot be opened for another reason.
bool ServedLink::wait_for_what_is_missing(Ports& ports, std::string& error) {
  port::LinkConfig config;
  std::string ignored;
  if (!port::parse_link(options_.link, config, ignored) || !port::absence_of(config)) return false;
  // The link may be opened after stpd has given up its privileges.
  if (std::string why; config.kind == port::LinkKind::kIface && !port::keep_packet_socket(why)) {
    error += "; and it cannot be waited for: " + why;
    return false;
  }
  ports = port::absent_link(config);
  absent_ = true;
  return true;
}

bool ServedLink::look_for_what_was_missing(std::string& error) {
  port::LinkConfig config;
  port::parse_link(options_.link, config, error);
  if (port::absence_of(config)) return true;
  Ports ports;
  std::string obstacle;
  if (!open_ports(ports, obstacle)) {
    if (std::exchange(obstacle_, obstacle) != obstacle)
      log(LogLevel::kWarning, obstacle + ": tried again as long as stpd runs");
    return true;
  }
  absent_ = false;
  auto listener = parts_->server.stop_and_keep_listening();
  serving_ = false;  // no frames have passed that counters could tell of
  end_parts();
  make_parts(std::move(ports));
  parts_->server.take_over(std::move(listener));
  logged_.clear();  // logs that it is up
  log_link();
  return start(error);
}

void ServedLink::make_parts(Ports ports) {
  parts_ = std::make_unique<Parts>(
      options_, std::move(ports),
      [this](LogLevel level, const std::string& text) { log(level, text); });
  apply(common_);
  if (tap_) shards().set_tap(&*tap_);
  add_admin();
}

bool ServedLink::start_trace(std::string& error) {
  if (options_.pcap.empty()) return true;
  trace_ = trace::PcapngWriter::create(options_.pcap,
                                       {.interface = options_.link,
                                        .program = "stpd " STP_VERSION,
                                        .max_frames = options_.pcap_frames,
                                        .snap_length = snap_of(options_.link, options_.pcap_snap),
                                        .ring_bytes = std::bit_ceil(options_.pcap_buffer)},
                                       error);
  if (!trace_) {
    error = "--pcap " + error + ": name a file elsewhere, which this user may write";
    return false;
  }
  tap_.emplace(*trace_);
  return true;
}

bool ServedLink::find_admin_group(std::string& error) {
  if (common_.admin_group.empty()) return true;
  admin_group_ = ipc::find_group(common_.admin_group);
  if (!admin_group_) error = "admin-group " + common_.admin_group + ": there is no such group";
  return admin_group_.has_value();
}

void ServedLink::add_admin() {
  parts_->tracer = std::make_unique<Tracer>(
      shards(), tap_ ? &*tap_ : nullptr, [this](int file) { return own_files_.has(file); },
      [this](const std::string& text) { log(LogLevel::kInfo, text); });
  add_counters();
  parts_->server.set_admin(admin_group_, parts_->tracer.get());
  parts_->telemetry.emplace(shards());
}

bool ServedLink::listen(std::string& error) {
  // The default socket has a directory of its own, which does not exist after a reboot. It belongs
  // to the user that stpd switches to, so that stpd can remove the socket in the end. If it cannot
  // be made, listen() reports the error.
  const auto made = ipc::make_directory_of(options_.socket, ipc::find_user(common_.user));
  const auto result = parts_->server.listen(common_.socket_access);
  if (result != 0)
    error = listen_error(options_.socket, result == -ENOENT && made != 0 ? made : result);
  return result == 0;
}

void ServedLink::warn_of_pages() const {
  if (PagePins::wanted() && !PagePins::possible())
    log(LogLevel::kWarning,
        "stpd may not use io_uring, or not that of Linux 5.19: it cannot pin pages, so a program "
        "that asks for huge pages while stpd uses its memory can hold up all others; permit "
        "io_uring_setup and io_uring_register, or write deny to "
        "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  if (ipc::SharedMemory::can_keep_pages()) return;
  log(LogLevel::kWarning,
      "this kernel does not keep the pages of shared memory (F_SEAL_FUTURE_WRITE, Linux 5.1): a "
      "program that takes pages away while stpd uses them can hold up all others");
  if (!ipc::MemoryGuard::instance().watches())
    log(LogLevel::kWarning,
        "userfaultfd is not permitted: if a program takes away pages that it has mapped, stpd "
        "allocates new ones at its own cost");
}

bool ServedLink::serve(std::size_t links, std::string& error) {
  links_ = links;
  warn_of_pages();
  return start(error);
}

bool ServedLink::start(std::string& error) {
  if (const auto result = parts_->server.start(links_); result != 0) {
    error = std::string("cannot serve: ") + std::strerror(-result);
    return false;
  }
  shards().start();
  serving_ = true;
  return true;
}

void ServedLink::apply(const Options& options) {
  common_.quotas = options.quotas;
  common_.rules = options.rules;
  parts_->server.set_quotas(options.quotas);
  shards().set_quotas(options.quotas);
  shards().set_port_rules(host::PortRules(options.rules));
}

void ServedLink::log_link() {
  const auto& info = shards().first().info();
  if (absent_)
    log_state(present_state());
  else
    log(LogLevel::kInfo,
        "link " + info.link + ": device " + info.device + " (" + info.driver + "), mac " +
            port::to_string(info.mac) + ", mtu " + std::to_string(info.mtu) + ", max_stu " +
            std::to_string(info.max_stu) + " (" + std::to_string(1U << info.max_stu) + " bytes)" +
            (info.address ? ", address " + port::to_string(*info.address) : ""));
  if (shards().count() > 1) log_shards();
  log(LogLevel::kInfo, "socket " + options_.socket);
  if (trace_) log(LogLevel::kInfo, "trace " + options_.pcap);
  if (const auto path = port::telemetry_socket(); !path.empty())
    log(LogLevel::kInfo, "telemetry " + path);
  if (const auto why = port::telemetry_trouble(); !why.empty()) log(LogLevel::kWarning, why);
  warn_of_late_frames();
}

void ServedLink::log_shards() {
  std::string text =
      std::to_string(shards().count()) + " shards; " + shards().first().drive()->port().steering();
  for (unsigned i = 0; !options_.cpus.empty() && i < shards().count(); ++i)
    text += (i == 0 ? "; CPUs " : ", ") + std::to_string(parts_->places.cpus[i].front());
  log(LogLevel::kInfo, text);
  if (!parts_->places.note.empty()) log(LogLevel::kWarning, parts_->places.note);
}

void ServedLink::warn_of_late_frames() {
  auto& first = shards().first();
  if (options_.poll != host::PollPolicy::kInterrupt || first.drive()->port().wake_fd() >= 0) return;
  log(LogLevel::kWarning, "driver " + first.info().driver +
                              " cannot wake a sleeping thread: poll=interrupt behaves as adaptive, "
                              "and frames may wait for a millisecond; poll=busy avoids this");
}

bool ServedLink::is_alive() {
  const auto requests = parts_->server.heartbeat().beats();
  const bool serves = std::exchange(seen_requests_, requests) != requests;
  return shards().are_alive() && serves;
}

host::LinkChange ServedLink::present_state() {
  const auto turn = shards().first().drive();
  return {.state = turn->port().state(), .trouble = turn->port().trouble()};
}

// Any thread. The cause first: readers may cut the text.
std::string ServedLink::trouble_of_trace() const {
  if (!trace_ || trace_->error() == 0) return {};
  return "the trace of --pcap has ended early: " + trace::why_it_ends_early(trace_->error()) +
         "; it has " + std::to_string(trace_->frames()) + " frames (" + options_.pcap +
         "), and begins anew with stpd";
}

// Any thread.
std::string ServedLink::own_trouble() const {
  std::string all;
  if (socket_lost_)
    all = "the socket " + options_.socket +
          " has been removed: programs that begin do not find this stpd, and those that use it go "
          "on; restart it";
  const auto of_trace = trouble_of_trace();
  return all + (all.empty() || of_trace.empty() ? "" : "; ") + of_trace;
}

// It comes again only if somebody had moved it, or mounted something above it.
void ServedLink::warn_of_lost_socket() {
  const bool lost = !parts_->server.is_found();
  if (socket_lost_.exchange(lost) == lost) return;
  if (lost)
    log(LogLevel::kError, own_trouble());
  else
    log(LogLevel::kInfo, "the socket " + options_.socket + " is there again");
}

void ServedLink::warn_of_ended_trace() {
  const auto text = trouble_of_trace();
  if (!text.empty() && !std::exchange(warned_of_trace_, true)) log(LogLevel::kWarning, text);
}

void ServedLink::log_state() {
  warn_of_lost_socket();
  warn_of_ended_trace();
  for (;;) {
    const auto change = shards().first().drive()->next_link_change();
    if (!change) return log_state(present_state());
    if (change->passed_over != 0)
      log(LogLevel::kWarning, "link " + options_.link + ": " + std::to_string(change->passed_over) +
                                  " earlier changes of its state are not logged");
    log_state(*change);
  }
}

void ServedLink::log_state(const host::LinkChange& change) {
  auto text = std::string(port::name_of(change.state));
  const bool up = change.state == port::LinkState::kUp;
  if (!change.trouble.empty()) text += (up ? ", with trouble: " : ": ") + change.trouble;
  if (text == logged_) return;
  logged_ = std::move(text);
  log(up ? LogLevel::kInfo : LogLevel::kWarning,
      "link " + options_.link + (up ? " is " : ": ") + logged_);
}

void ServedLink::begin_to_leave() {
  parts_->server.stop();
}

ServedLink::~ServedLink() {
  if (!parts_) return;
  parts_->server.stop();
  if (serving_) wait_for_disconnects();
  end_parts();
  finish_trace();
}

// What is written last may find no room.
void ServedLink::finish_trace() {
  if (!trace_) return;
  trace_->finish();
  while (!trace_->finished() && !trace_->is_overdue())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  warn_of_ended_trace();
}

// The server has stopped.
void ServedLink::end_parts() {
  parts_->telemetry.reset();
  parts_->tracer.reset();
  shards().stop();
  shards().set_tap(nullptr);
  if (serving_) log_counters();
  parts_.reset();
}

void ServedLink::wait_for_disconnects() {
  const auto until = std::chrono::steady_clock::now() + kGoodbye;
  while (std::chrono::steady_clock::now() < until) {
    if (shards().connections() == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// What concerns stpd as a whole is reported with the first shard.
void ServedLink::add_counters() {
  shards().first().drive()->add_counters([this] { return own_counters(); });
  shards().first().drive()->add_trouble([this] { return own_trouble(); });
  for (unsigned i = 1; i < shards().count(); ++i)
    shards().at(i).drive()->add_counters([&service = shards().at(i)] {
      return std::vector<port::PortCounter>{{"bells_silenced", service.silenced_bells()}};
    });
}

std::vector<port::PortCounter> ServedLink::own_counters() {
  std::vector<port::PortCounter> all;
  port::add_server_counters(all, parts_->server.counts());
  all.push_back({"bells_silenced", shards().first().silenced_bells()});
  all.push_back({"trace_frames", trace_ ? trace_->frames() : 0});
  all.push_back({"trace_dropped", trace_ ? trace_->dropped() : 0});
  return all;
}

void ServedLink::log_counters() {
  log(LogLevel::kInfo, "counters:");
  for (const auto& counter : shards().counters())
    if (counter.value != 0)
      log(LogLevel::kInfo, "  " + counter.name + " " + std::to_string(counter.value));
}

}  // namespace stp::stpd

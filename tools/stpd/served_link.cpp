// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/served_link.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "libst/service/poll_places.h"
#include "libst/service/users.h"

namespace stp::stpd {
namespace {

// How long an ending daemon waits for its peers to confirm the disconnects.
constexpr std::chrono::seconds kGoodbye{1};

// With --cpus, `queues=auto` means one queue for each of these CPUs.
unsigned queues_of(const port::LinkConfig& config, const LinkOptions& link) {
  if (config.queues != port::kAutoQueues || link.cpus.empty()) return config.queues;
  return static_cast<unsigned>(std::min<std::size_t>(link.cpus.size(), port::kMaxQueues));
}

std::string listen_error(const std::string& path, int error) {
  if (error == -EADDRINUSE)
    return "socket " + path + ": another daemon answers there, or the file is not a socket";
  if (error == -EPERM && !service::directory_is_safe(path))
    return "socket " + path +
           ": anybody may replace files in that directory: take write permission from others "
           "(chmod o-w), set its sticky bit, or name another directory";
  return "socket " + path + ": " + std::strerror(-error);
}

}  // namespace

std::unique_ptr<ServedLink> ServedLink::open(const LinkOptions& link, const Options& options,
                                             bool alone, std::string& error) {
  port::LinkConfig config;
  if (!port::parse_link(link.link, config, error)) return nullptr;
  config.queues = queues_of(config, link);
  auto ports = port::Port::open_shards(config, error);
  if (ports.empty()) return nullptr;
  std::unique_ptr<ServedLink> served(new ServedLink(link, alone, std::move(ports)));
  served->apply(options);
  if (!served->start_trace(error) || !served->start_admin(options, error) ||
      !served->listen(options, error))
    return nullptr;
  served->log_link();
  return served;
}

ServedLink::ServedLink(const LinkOptions& link, bool alone,
                       std::vector<std::unique_ptr<port::Port>> ports)
    : options_(link),
      log_name_(alone ? std::string() : link.name),
      places_(service::poll_places(link.poll, static_cast<unsigned>(ports.size()), link.cpus,
                                   service::usable_cpus())),
      shards_(std::move(ports), places_, link.granted),
      server_(shards_.services(), link.socket,
              [this](LogLevel level, const std::string& text) { log(level, text); }) {}

bool ServedLink::start_trace(std::string& error) {
  if (options_.pcap.empty()) return true;
  trace_ = trace::PcapngWriter::create(options_.pcap,
                                       {.interface = options_.link,
                                        .program = "stpd " STP_VERSION,
                                        .max_frames = options_.pcap_frames},
                                       error);
  if (!trace_) return false;
  tap_.emplace(*trace_);
  shards_.set_tap(&*tap_);
  return true;
}

bool ServedLink::start_admin(const Options& options, std::string& error) {
  std::optional<gid_t> group;
  if (!options.admin_group.empty()) {
    group = service::find_group(options.admin_group);
    if (!group) {
      error = "admin-group " + options.admin_group + ": there is no such group";
      return false;
    }
  }
  tracer_ =
      std::make_unique<Tracer>(shards_, tap_ ? &*tap_ : nullptr,
                               [this](const std::string& text) { log(LogLevel::kInfo, text); });
  add_counters();
  server_.set_admin(group, tracer_.get());
  telemetry_.emplace(shards_);
  return true;
}

bool ServedLink::listen(const Options& options, std::string& error) {
  // The default socket has a directory of its own, which does not exist after a reboot. It belongs
  // to the user that stpd switches to, so that stpd can remove the socket in the end. If it cannot
  // be made, listen() reports the error.
  service::make_directory_of(options_.socket, service::find_user(options.user));
  const auto result = server_.listen(options.socket_access);
  if (result != 0) error = listen_error(options_.socket, result);
  return result == 0;
}

void ServedLink::warn_of_pages() const {
  if (service::SharedMemory::can_keep_pages()) return;
  log(LogLevel::kWarning,
      "this kernel does not keep the pages of shared memory (F_SEAL_FUTURE_WRITE, Linux 5.1): a "
      "program that takes pages away while stpd uses them can hold up all others");
  if (!service::MemoryGuard::instance().watches())
    log(LogLevel::kWarning,
        "userfaultfd is not permitted: if a program takes away pages that it has mapped, stpd "
        "allocates new ones at its own cost");
}

bool ServedLink::serve(std::size_t links, std::string& error) {
  if (const auto result = server_.start(links); result != 0) {
    error = std::string("cannot serve: ") + std::strerror(-result);
    return false;
  }
  warn_of_pages();
  shards_.start();
  serving_ = true;
  return true;
}

void ServedLink::apply(const Options& options) {
  server_.set_quotas(options.quotas);
  shards_.set_quotas(options.quotas);
  shards_.set_port_rules(service::PortRules(options.rules));
}

void ServedLink::log_link() {
  const auto& info = shards_.first().port().info();
  log(LogLevel::kInfo, "link " + info.link + ": device " + info.device + " (" + info.driver +
                           "), mac " + port::to_string(info.mac) + ", mtu " +
                           std::to_string(info.mtu) + ", max_stu " + std::to_string(info.max_stu) +
                           " (" + std::to_string(1U << info.max_stu) + " bytes)" +
                           (info.address ? ", address " + port::to_string(*info.address) : ""));
  if (shards_.count() > 1) log_shards();
  log(LogLevel::kInfo, "socket " + options_.socket);
  if (trace_) log(LogLevel::kInfo, "trace " + options_.pcap);
  if (const auto path = port::telemetry_socket(); !path.empty())
    log(LogLevel::kInfo, "telemetry " + path);
  warn_of_late_frames();
}

void ServedLink::log_shards() {
  std::string text =
      std::to_string(shards_.count()) + " shards; " + shards_.first().port().steering();
  for (unsigned i = 0; !options_.cpus.empty() && i < shards_.count(); ++i)
    text += (i == 0 ? "; CPUs " : ", ") + std::to_string(places_.cpus[i].front());
  log(LogLevel::kInfo, text);
  if (!places_.note.empty()) log(LogLevel::kWarning, places_.note);
}

void ServedLink::warn_of_late_frames() {
  auto& port = shards_.first().port();
  const auto& info = port.info();
  if (options_.poll != service::PollPolicy::kInterrupt || port.wake_fd() >= 0) return;
  log(LogLevel::kWarning, "driver " + info.driver +
                              " cannot wake a sleeping thread: poll=interrupt behaves as adaptive, "
                              "and frames may wait for a millisecond; poll=busy avoids this");
}

bool ServedLink::is_alive() {
  const auto requests = server_.heartbeat().beats();
  const bool serves = std::exchange(seen_requests_, requests) != requests;
  return shards_.are_alive() && serves;
}

void ServedLink::log_state() {
  for (;;) {
    std::optional<service::LinkChange> change;
    service::LinkChange now;
    {
      auto& service = shards_.first();
      std::lock_guard guard(service.lock());
      change = service.next_link_change();
      now = {.state = service.port().state(), .trouble = service.port().trouble()};
    }
    if (!change) return log_state(now);
    if (change->passed_over != 0)
      log(LogLevel::kWarning, "link " + options_.link + ": " + std::to_string(change->passed_over) +
                                  " earlier changes of its state are not logged");
    log_state(*change);
  }
}

void ServedLink::log_state(const service::LinkChange& change) {
  auto text = std::string(port::name_of(change.state));
  if (!change.trouble.empty()) text += ": " + change.trouble;
  if (text == logged_) return;
  logged_ = std::move(text);
  log(change.state == port::LinkState::kUp ? LogLevel::kInfo : LogLevel::kWarning,
      "link " + options_.link + " is " + logged_);
}

void ServedLink::begin_to_leave() {
  server_.stop();
}

ServedLink::~ServedLink() {
  server_.stop();
  telemetry_.reset();
  tracer_.reset();
  if (serving_) wait_for_disconnects();
  shards_.stop();
  shards_.set_tap(nullptr);
  if (serving_) log_counters();
}

void ServedLink::wait_for_disconnects() {
  const auto until = std::chrono::steady_clock::now() + kGoodbye;
  while (std::chrono::steady_clock::now() < until) {
    if (shards_.connections() == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Counters of stpd as a whole are reported with those of the first shard.
void ServedLink::add_counters() {
  shards_.first().add_counters([this] { return own_counters(); });
  for (unsigned i = 1; i < shards_.count(); ++i)
    shards_.at(i).add_counters([&service = shards_.at(i)] {
      return std::vector<port::PortCounter>{{"bells_silenced", service.silenced_bells()}};
    });
}

std::vector<port::PortCounter> ServedLink::own_counters() {
  const auto& clients = server_.counts();
  return {{"clients", clients.clients},
          {"clients_refused", clients.refused},
          {"clients_bad_messages", clients.bad_messages},
          {"clients_slow_readers", clients.slow_readers},
          {"bells_silenced", shards_.first().silenced_bells()},
          {"descriptors_stuck", clients.stuck_descriptors},
          {"clients_torn_memory", clients.torn_memory},
          {"trace_frames", trace_ ? trace_->frames() : 0},
          {"trace_dropped", trace_ ? trace_->dropped() : 0}};
}

void ServedLink::log_counters() {
  log(LogLevel::kInfo, "counters:");
  for (const auto& counter : shards_.counters())
    if (counter.value != 0)
      log(LogLevel::kInfo, "  " + counter.name + " " + std::to_string(counter.value));
}

}  // namespace stp::stpd

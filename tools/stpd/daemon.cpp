// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/daemon.h"

#include <grp.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "tools/stpd/log.h"

namespace stp::stpd {
namespace {

// For peers to answer the disconnects of an ending daemon; a silent one is not waited for.
constexpr std::chrono::seconds kGoodbye{1};

// The default socket lives in a directory of its own, which a fresh /run does not have.
void make_directory_of(const std::string& path) {
  auto const directory = std::filesystem::path(path).parent_path();
  std::error_code ignored;  // listening says what is wrong
  if (!directory.empty()) std::filesystem::create_directory(directory, ignored);
}

std::string listen_error(const std::string& path, int error) {
  if (error == -EADDRINUSE)
    return "socket " + path + ": another daemon answers there, or it is no socket";
  return "socket " + path + ": " + std::strerror(-error);
}

}  // namespace

std::unique_ptr<Daemon> Daemon::start(const Options& options, std::string& error) {
  port::LinkConfig link;
  if (!port::parse_link(options.link, link, error)) {
    error = "link " + options.link + ": " + error;
    return nullptr;
  }
  port::enable_telemetry();
  auto port = port::Port::open(link, error);
  if (!port) return nullptr;
  std::unique_ptr<Daemon> daemon(new Daemon(options, std::move(port)));
  if (!daemon->start_trace(options, error)) return nullptr;
  if (!daemon->start_admin(options, error)) return nullptr;
  make_directory_of(options.socket);
  if (auto const result = daemon->server_.start(); result != 0) {
    error = listen_error(options.socket, result);
    return nullptr;
  }
  daemon->loop_.start();
  daemon->serving_ = true;
  daemon->log_link(options);
  return daemon;
}

Daemon::Daemon(const Options& options, std::unique_ptr<port::Port> port)
    : service_(std::move(port)),
      loop_(service_, options.poll),
      server_(service_, options.socket, log) {}

bool Daemon::start_trace(const Options& options, std::string& error) {
  if (options.pcap.empty()) return true;
  trace_ = trace::PcapngWriter::create(options.pcap,
                                       {.interface = options.link,
                                        .program = "stpd " STP_VERSION,
                                        .max_frames = options.pcap_frames},
                                       error);
  if (!trace_) return false;
  tap_.emplace(*trace_);
  service_.port().set_tap(&*tap_);
  return true;
}

bool Daemon::start_admin(const Options& options, std::string& error) {
  std::optional<gid_t> group;
  if (!options.admin_group.empty()) {
    auto const* const entry = ::getgrnam(options.admin_group.c_str());
    if (entry == nullptr) {
      error = "admin-group " + options.admin_group + ": there is no such group";
      return false;
    }
    group = entry->gr_gid;
  }
  tracer_ = std::make_unique<Tracer>(service_, tap_ ? &*tap_ : nullptr, log);
  service_.add_counters([this] { return own_counters(); });
  server_.set_admin(group, tracer_.get());
  telemetry_.emplace(service_);
  return true;
}

void Daemon::log_link(const Options& options) {
  auto const& info = service_.port().info();
  log("link " + info.link + ": device " + info.device + " (" + info.driver + "), mac " +
      port::to_string(info.mac) + ", mtu " + std::to_string(info.mtu) + ", max_stu " +
      std::to_string(info.max_stu) + " (" + std::to_string(1U << info.max_stu) + " bytes)" +
      (info.address ? ", address " + port::to_string(*info.address) : ""));
  log("socket " + options.socket);
  if (trace_) log("trace " + options.pcap);
  if (auto const path = port::telemetry_socket(); !path.empty()) log("telemetry " + path);
}

Daemon::~Daemon() {
  server_.stop();
  telemetry_.reset();
  tracer_.reset();
  if (serving_) wait_for_disconnects();
  loop_.stop();
  service_.port().set_tap(nullptr);
  if (serving_) log_counters();
}

void Daemon::wait_for_disconnects() {
  auto const until = std::chrono::steady_clock::now() + kGoodbye;
  while (std::chrono::steady_clock::now() < until) {
    {
      std::lock_guard guard(service_.lock());
      if (service_.node().vc_count() == 0) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::vector<port::PortCounter> Daemon::own_counters() const {
  auto const& clients = server_.counts();
  return {{"clients", clients.clients},
          {"clients_refused", clients.refused},
          {"clients_bad_messages", clients.bad_messages},
          {"clients_slow_readers", clients.slow_readers},
          {"trace_frames", trace_ ? trace_->frames() : 0},
          {"trace_dropped", trace_ ? trace_->dropped() : 0}};
}

void Daemon::log_counters() {
  log("counters:");
  for (auto const& counter : service_.all_counters())
    if (counter.value != 0) log("  " + counter.name + " " + std::to_string(counter.value));
}

}  // namespace stp::stpd

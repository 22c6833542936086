// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/daemon.h"

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
  auto port = port::Port::open(link, error);
  if (!port) return nullptr;
  std::unique_ptr<Daemon> daemon(new Daemon(options, std::move(port)));
  if (!daemon->start_trace(options, error)) return nullptr;
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

void Daemon::log_link(const Options& options) {
  auto const& info = service_.port().info();
  log("link " + info.link + ": device " + info.device + " (" + info.driver + "), mac " +
      port::to_string(info.mac) + ", mtu " + std::to_string(info.mtu) + ", max_stu " +
      std::to_string(info.max_stu) + " (" + std::to_string(1U << info.max_stu) + " bytes)" +
      (info.address ? ", address " + port::to_string(*info.address) : ""));
  log("socket " + options.socket);
  if (trace_) log("trace " + options.pcap);
}

Daemon::~Daemon() {
  server_.stop();
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

void Daemon::log_counters() {
  auto const line = [](const std::string& name, std::uint64_t value) {
    if (value != 0) log("  " + name + " " + std::to_string(value));
  };
  log("counters:");
  auto const& counters = service_.node().counters();
  for (std::size_t i = 0; i < kCounterCount; ++i)
    line(Counters::name(static_cast<Counter>(i)), counters.get(static_cast<Counter>(i)));
  for (auto const& counter : service_.port().counters()) line(counter.name, counter.value);
  auto const& clients = server_.counts();
  line("clients", clients.clients);
  line("clients_refused", clients.refused);
  line("clients_bad_messages", clients.bad_messages);
  line("clients_slow_readers", clients.slow_readers);
  if (trace_) line("trace_frames", trace_->frames());
  if (trace_) line("trace_dropped", trace_->dropped());
}

}  // namespace stp::stpd

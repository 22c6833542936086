// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/receiver.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <set>

#include "tools/files/failure.h"

namespace stp::files {

namespace {

constexpr std::size_t kWaitingRequests = 16;

std::string host_of(stm_connection_t request) {
  stm_peer_info_t info{};
  info.size = sizeof info;
  return ::stm_peer_query(request, &info) == 0 ? host_in(info.address) : "";
}

}  // namespace

std::string host_in(const std::string& station) {
  const std::string host = station.substr(0, station.rfind('/'));
  in6_addr six;
  const bool brackets = host.starts_with('[') && host.ends_with(']');
  if (!brackets || ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six) != 1)
    return host;
  if (IN6_IS_ADDR_LINKLOCAL(&six)) return host;
  std::fill(std::begin(six.s6_addr) + 8, std::end(six.s6_addr), 0);
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET6, &six, text.data(), text.size());
  return std::string(text.data()) + "/64";
}

bool has_more_than_its_share(const std::vector<std::string>& hosts, const std::string& host,
                             const std::string& newcomer) {
  std::set<std::string> all(hosts.begin(), hosts.end());
  all.insert(newcomer);
  const auto its = static_cast<std::size_t>(std::count(hosts.begin(), hosts.end(), host));
  return its > std::max<std::size_t>(1, hosts.size() / all.size());
}

Receiver::Receiver(const std::string& address, ReceiverContext& context)
    : context_(context), requests_(link_, kWaitingRequests) {
  const auto error = ::stm_listen(link_.domain(), address.c_str(), requests_.handle(), 0,
                                  kWaitingRequests, &listener_);
  if (error != 0) throw listen_failure(error, address);
}

Receiver::~Receiver() {
  reap(true);
  ::stm_listener_close(listener_);
}

bool Receiver::run(bool once) {
  do {
    auto* const request = await_request();
    if (request == nullptr) break;
    const auto peer = host_of(request);
    if (has_enough_of(peer)) {
      Channel::refuse(request);
      context_.progress.complain("a sender is refused: its host has as many as --per-peer allows");
    } else if (await_place(peer)) {
      begin(request, peer);
    } else {
      ::stm_connection_close(request);
      break;
    }
  } while (!once);
  reap(true);
  return failures_ == 0 && (files_ != 0 || !once);
}

stm_connection_t Receiver::await_request() {
  while (!context_.stop) {
    const auto event = requests_.next(kAttention);
    reap(false);
    if (event && event->kind == STM_REQUEST) return event->connection;
  }
  return nullptr;
}

bool Receiver::await_place(const std::string& newcomer) {
  while (places_.size() >= context_.most_senders) {
    if (context_.stop) return false;
    ask_the_most_silent_to_leave(newcomer);
    std::this_thread::sleep_for(kAttention);
    reap(false);
  }
  return true;
}

bool Receiver::has_enough_of(const std::string& peer) const {
  const auto same = [&peer](const Place& place) { return place.peer == peer && !place.done; };
  return static_cast<std::size_t>(std::count_if(places_.begin(), places_.end(), same)) >=
         context_.most_per_peer;
}

// Asks only one sender at a time, since one waiting sender needs one place. A sender that is silent
// because it waits for work of ours is not asked, unless its host has more than its share: reading
// a file of terabytes takes long, and whoever sends such files may have several places.
void Receiver::ask_the_most_silent_to_leave(const std::string& newcomer) {
  std::vector<std::string> hosts;
  for (const auto& place : places_) hosts.push_back(place.peer);
  Place* most_silent = nullptr;
  auto longest = context_.idle_under_pressure;
  for (auto& place : places_) {
    if (place.presence.leave) return;
    const auto silence = has_more_than_its_share(hosts, place.peer, newcomer)
                             ? place.presence.silence()
                             : place.presence.idleness();
    if (silence <= longest) continue;
    longest = silence;
    most_silent = &place;
  }
  if (most_silent != nullptr) most_silent->presence.leave = true;
}

void Receiver::begin(stm_connection_t request, const std::string& peer) {
  auto& place = places_.emplace_back(peer);
  try {
    place.thread = std::thread([this, request, &place] {
      serve(request, place.peer, place.presence);
      place.done = true;
    });
  } catch (const std::system_error&) {
    places_.pop_back();
    Channel::refuse(request);
    context_.progress.complain(
        "a sender is refused: no thread can be made for it; raise the limit of processes (ulimit "
        "-u, "
        "TasksMax of systemd)");
  }
}

void Receiver::serve(stm_connection_t request, const std::string& peer, Presence& presence) {
  unsigned files = 0, failures = 0;
  try {
    Channel channel(link_, request, [&] {
      if (context_.stop) throw Stopped();
      if (presence.leave || presence.silence() > context_.idle_timeout)
        throw LinkFailure("it takes no answers; see what holds it up");
    });
    FileReceiver receiver(channel, context_, presence, peer);
    const auto count = [&] {
      files = receiver.files();
      failures = receiver.failures();
    };
    try {
      receiver.serve();
    } catch (...) {
      count();
      throw;
    }
    count();
  } catch (const Stopped&) {
    // main() reports the stop once.
  } catch (const std::exception& failure) {
    context_.progress.complain(failure.what());
    ++failures;
  }
  std::lock_guard const lock(mutex_);
  files_ += files;
  failures_ += failures;
}

void Receiver::reap(bool all) {
  places_.remove_if([all](Place& place) {
    if (!all && !place.done) return false;
    place.thread.join();
    return true;
  });
}

}  // namespace stp::files

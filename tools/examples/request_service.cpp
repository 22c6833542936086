// SPDX-License-Identifier: BSD-3-Clause
// A service of requests and replies: its clients send files, it replies with their SHA-256.
//
//   request_service serve :3000
//   request_service ask [--timeout SECONDS] HOST:3000 FILE...
//
// A request is a message of 1 byte to 1 MiB; the reply is a message with the same tag, by which the
// client finds what it belongs to: replies come in the order in which the server is done. The
// services of request_service.c and request_service.py do the same: a client of one asks a server
// of another.
//
// - Back-pressure: the server has posted 16 receives for each connection. Further requests wait at
//   their client, which has at most 64 on the way.
// - Time limits: the client gives a request up after 20 s. A reply that comes later finds nobody.
// - End: with SIGTERM or Ctrl-C the server finishes what it has, replies, and disconnects.
// - Restart: a client whose server is gone connects again, and repeats the requests that have no
//   reply. They change nothing, so it does no harm if the server has seen one before. What is in
//   the way is told, once.
//
// One thread has the connections and their events. Others do the work: each request that one of
// them has finished comes back as an event of the program's own, STM_USER.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <stp/managed.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "example.h"
#include "sha256.h"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr std::size_t kLongest = 1 << 20, kAtATime = 16, kOnTheWay = 64, kReply = 64;

// ---- the server

struct Peer;
// A place for one request: a receive waits in it, it is worked on, or its reply is on its way.
struct Place {
  Peer* peer = nullptr;
  std::size_t length = 0;
  std::uint32_t tag = 0;
  std::unique_ptr<unsigned char[]> request{new unsigned char[kLongest]};
  std::array<unsigned char, kSha256Size> reply{};
  stp::Memory memory{}, reply_memory{};  // of `request` and of `reply`
};
struct Peer {
  std::array<Place, kAtATime> places{};
  int worked_on = 0;  // so many of them
  bool has_ended = false;
  stp::Connection connection{};
};

// Threads that make replies. The queue has a place for each of the events by which they tell.
class Workers {
 public:
  explicit Workers(stm_queue_t queue) : queue_(queue) {
    for (auto n = std::max(2U, std::thread::hardware_concurrency()); n > 0; --n)
      threads_.emplace_back([this](const std::stop_token& end) { work(end); });
  }
  void give(Place* place) {
    const std::lock_guard lock(mutex_);
    places_.push_back(place);
    some_.notify_one();
  }

 private:
  void work(const std::stop_token& end) {
    for (std::unique_lock lock(mutex_); some_.wait(lock, end, [&] { return !places_.empty(); });
         lock.lock()) {
      auto* const place = places_.front();
      places_.pop_front();
      lock.unlock();
      sha256(place->request.get(), place->length, place->reply.data());
      stm_queue_post(queue_, reinterpret_cast<std::uintptr_t>(place));
    }
  }

  stm_queue_t queue_;
  std::mutex mutex_;
  std::condition_variable_any some_;
  std::deque<Place*> places_;
  std::vector<std::jthread> threads_;  // the last member: they end before the others are gone
};

class Server {
 public:
  explicit Server(const char* port) : listener_(stp::listen(domain_, port, queue_)) {}

  [[nodiscard]] int descriptor() const { return stp::checked(stm_queue_fd(queue_), "descriptor"); }

  void handle_events() {
    std::array<stm_event_t, 32> events{};
    while (const auto count = stp::checked(stm_queue_poll(queue_, events.data(), 32), "polling"))
      std::for_each_n(events.begin(), count, [&](const auto& event) { handle(event); });
  }

  // Replies to what it has, and takes nothing more.
  void end() {
    listener_.reset();
    is_ending_ = true;
    for (auto& [key, peer] : peers_) disconnect_if_idle(*peer);
    while (!peers_.empty()) handle(stp::next_event(queue_));
  }

 private:
  static constexpr std::size_t kPeers = 32;

  void accept(stp::Connection connection) try {
    if (is_ending_ || peers_.size() == kPeers) return;  // the owner rejects it
    auto peer = std::make_unique<Peer>();
    for (auto& place : peer->places) {
      place.peer = peer.get();
      place.memory = stp::register_memory(domain_, place.request.get(), kLongest, STM_LOCAL_WRITE);
      place.reply_memory =
          stp::register_memory(domain_, place.reply.data(), kSha256Size, STM_LOCAL_READ);
    }
    const auto key = reinterpret_cast<std::uintptr_t>(peer.get());
    const auto attr = stp::connection_attr(queue_, key);
    stp::checked(stm_accept(connection, &attr, nullptr, 0), "accepting");
    peer->connection = std::move(connection);
    for (auto& place : peer->places) take_into(place);
    peers_.emplace(key, std::move(peer));
  } catch (const stp::Error& error) {
    std::fprintf(stderr, "request_service: a client is turned away: %s\n", error.what());
  }

  // If this fails, the connection has ended, and its last event comes.
  static void take_into(Place& place) {
    stm_receive(place.peer->connection, reinterpret_cast<std::uintptr_t>(&place), place.memory,
                place.request.get(), kLongest);
  }
  void reply(Place& place) {
    if (stm_send(place.peer->connection, reinterpret_cast<std::uintptr_t>(&place), 0, place.tag,
                 place.reply_memory, place.reply.data(), kSha256Size) != 0)
      take_into(place);
    --place.peer->worked_on;
    if (is_ending_) disconnect_if_idle(*place.peer);
    forget_if_over(*place.peer);
  }
  static void disconnect_if_idle(Peer& peer) {
    if (peer.worked_on == 0) stm_disconnect(peer.connection, STM_GRACEFUL);
  }
  void forget_if_over(Peer& peer) {
    if (peer.has_ended && peer.worked_on == 0)
      peers_.erase(reinterpret_cast<std::uintptr_t>(&peer));
  }

  // The context is the place of an operation, the peer of a connection.
  void handle(const stm_event_t& event) {
    if (event.kind == STM_REQUEST) return accept(stp::Connection(event.connection));
    if (event.kind == STM_DISCONNECTED || event.kind == STM_FAILED) {
      const auto& peer = peers_.at(event.context);
      peer->has_ended = true;
      return forget_if_over(*peer);
    }
    if (event.kind == STM_CONNECTED) return;
    auto& place = *reinterpret_cast<Place*>(static_cast<std::uintptr_t>(event.context));
    if (event.kind == STM_USER) return reply(place);
    const auto is_request = event.kind == STM_RECEIVE && event.status == 0;
    if (is_request && !is_ending_) {
      place.length = event.length;
      place.tag = event.tag;
      ++place.peer->worked_on;
      workers_.give(&place);
    } else if (event.kind == STM_SEND || event.status == -EMSGSIZE) {  // as too long a request
      take_into(place);
    }
  }

  stp::Domain domain_ = stp::open_domain();
  stp::Queue queue_ = stp::make_queue(domain_, 64 * kPeers);
  std::map<std::uint64_t, std::unique_ptr<Peer>> peers_;
  bool is_ending_ = false;
  stp::Listener listener_;
  Workers workers_{queue_};
};

int serve(const char* port) {
  sigset_t ends;
  ::sigemptyset(&ends);
  ::sigaddset(&ends, SIGINT);
  ::sigaddset(&ends, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before there are other threads
  Server server(port);
  std::array<pollfd, 2> waits{
      {{::signalfd(-1, &ends, SFD_CLOEXEC), POLLIN, 0}, {server.descriptor(), POLLIN, 0}}};
  std::printf("serving on %s\n", port);
  std::fflush(stdout);
  while (waits[0].revents == 0) {
    ::poll(waits.data(), waits.size(), -1);
    server.handle_events();
  }
  server.end();
  return 0;
}

// ---- the client

class Client {
 public:
  Client(std::string server, std::chrono::duration<double> patience)
      : server_(std::move(server)), patience_(patience) {}

  // Whether each file has its reply.
  bool ask(std::deque<std::string> files) {
    while (!files.empty() || !asked_.empty()) {
      for (; !files.empty() && asked_.size() < kOnTheWay; files.pop_front()) begin(files.front());
      if (!connection_ && Clock::now() >= next_try_) connect();
      stm_event_t event{};
      if (stm_queue_wait(queue_, 1, &event, 1, 50'000) == 1) handle(event);
      give_up_late_ones();
    }
    return is_complete_;
  }
  // What was posted is done before the connection ends.
  void end() {
    if (is_up_) stm_disconnect(connection_, STM_GRACEFUL);
    while (is_up_) handle(stp::next_event(queue_, 5s));
  }

 private:
  struct Asked {
    std::string name;
    std::vector<char> bytes;
    Clock::time_point until;
    stp::Memory memory{};
    bool is_sending = false;  // the bytes are in use
    bool is_done = false;
  };

  void complain(const std::string& name, const std::string& why) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), why.c_str());
    is_complete_ = false;
  }

  void begin(const std::string& name) {
    std::error_code error;
    const auto size = std::filesystem::file_size(name, error);
    if (error) return complain(name, error.message());
    std::ifstream file(name, std::ios::binary);
    if (!file) return complain(name, std::strerror(errno));
    if (size == 0 || size > kLongest) return complain(name, "not 1 byte to 1 MiB long");
    std::vector<char> bytes(size);
    if (!file.read(bytes.data(), static_cast<std::streamsize>(size)))
      return complain(name, "cannot be read");
    const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(patience_);
    auto& asked = asked_[++last_tag_] = Asked{name, std::move(bytes), until};
    asked.memory =
        stp::register_memory(domain_, asked.bytes.data(), asked.bytes.size(), STM_LOCAL_READ);
    if (is_up_) send(last_tag_, asked);
  }

  void send(std::uint32_t tag, Asked& asked) {
    asked.is_sending = stm_send(connection_, tag, 0, tag, asked.memory, asked.bytes.data(),
                                asked.bytes.size()) == 0;
  }
  void await_reply(std::uint64_t place) {
    stm_receive(connection_, place, reply_memory_, replies_[place].data(), kReply);
  }

  void connect() {
    connection_ = stp::make_connection(domain_, stp::connection_attr(queue_));
    for (std::uint64_t place = 0; place < kOnTheWay; ++place) await_reply(place);
    const auto result = stm_connect(connection_, server_.c_str(), 5'000'000, nullptr, 0);
    if (result == -EINVAL) throw stp::Error(result, "connecting");  // no name of a server
    if (result != 0) disconnected(result, st_strerror(result));
  }
  // `status` is 0 if all was in good order. It is told only once if it is the same at each try.
  void disconnected(int status, const std::string& why) {
    if (status != 0 && status != last_trouble_)
      std::fprintf(stderr, "request_service: no connection to %s: %s; trying again\n",
                   server_.c_str(), why.c_str());
    last_trouble_ = status;
    connection_.reset();
    is_up_ = false;
    next_try_ = Clock::now() + 100ms;
  }

  void handle(const stm_event_t& event) {
    switch (event.kind) {
      case STM_CONNECTED:
        is_up_ = true;
        last_trouble_ = 0;
        for (auto& [tag, asked] : asked_)
          if (!asked.is_done) send(tag, asked);
        return;
      case STM_SEND: {
        const auto of = asked_.find(static_cast<std::uint32_t>(event.context));
        of->second.is_sending = false;
        return forget_if_over(of);
      }
      case STM_RECEIVE:
        if (event.status != 0) return;
        take_reply(event);
        return await_reply(event.context);
      // All operations have been told when one of these comes.
      case STM_REFUSED:
        return disconnected(-ECONNREFUSED, "the server takes no more clients");
      case STM_FAILED:
        return disconnected(event.status, why_failed(event.status));
      case STM_DISCONNECTED:
        return disconnected(0, "");
      default:
        return;
    }
  }

  std::string why_failed(int status) {
    stm_peer_info_t peer{};
    peer.size = sizeof peer;
    stm_peer_query(connection_, &peer);
    return *peer.trouble != 0 ? peer.trouble : std::strerror(-status);
  }

  void take_reply(const stm_event_t& event) {
    const auto of = asked_.find(event.tag);
    if (of == asked_.end() || of->second.is_done) return;  // it was given up
    std::string line;
    for (std::size_t i = 0; i < event.length; ++i) {
      std::array<char, 3> digits{};
      std::snprintf(digits.data(), digits.size(), "%02x", replies_[event.context][i]);
      line += digits.data();
    }
    std::printf("%s %s\n", line.c_str(), of->second.name.c_str());
    std::fflush(stdout);
    of->second.is_done = true;
    forget_if_over(of);
  }
  void forget_if_over(std::map<std::uint32_t, Asked>::iterator of) {
    if (of->second.is_done && !of->second.is_sending) asked_.erase(of);
  }
  void give_up_late_ones() {
    for (auto next = asked_.begin(); next != asked_.end();) {
      const auto of = next++;
      if (of->second.is_done || Clock::now() < of->second.until) continue;
      complain(of->second.name,
               is_up_ ? "no reply in time" : "no reply in time: there is no connection");
      of->second.is_done = true;
      forget_if_over(of);
    }
  }

  std::string server_;
  std::chrono::duration<double> patience_;
  std::array<std::array<unsigned char, kReply>, kOnTheWay> replies_{};
  stp::Domain domain_ = stp::open_domain();
  stp::Queue queue_ = stp::make_queue(domain_, 1024);
  stp::Memory reply_memory_ =
      stp::register_memory(domain_, replies_.data(), sizeof replies_, STM_LOCAL_WRITE);
  std::map<std::uint32_t, Asked> asked_;  // by tag
  std::uint32_t last_tag_ = 0;
  bool is_complete_ = true, is_up_ = false;
  int last_trouble_ = 0;
  Clock::time_point next_try_{};
  stp::Connection connection_;
};

constexpr const char* kUsage = "serve :PORT | ask [--timeout SECONDS] HOST:PORT FILE...";

}  // namespace

int main(int argc, char** argv) try {
  std::deque<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "serve") {
    tell_link();
    return serve(argv[2]);
  }
  if (words.size() < 3 || words[0] != "ask") return usage(argc, argv, kUsage);
  words.pop_front();
  std::chrono::duration<double> patience = 20s;
  if (words[0] == "--timeout") {
    char* behind = nullptr;
    const auto seconds = std::strtod(words[1].c_str(), &behind);
    if (*behind != 0 || !(seconds > 0 && seconds < 1e9)) return usage(argc, argv, kUsage);
    patience = std::chrono::duration<double>(seconds);
    words.erase(words.begin(), words.begin() + 2);
  }
  if (words.size() < 2) return usage(argc, argv, kUsage);
  tell_link();
  const auto server = words.front();
  words.pop_front();
  const auto client = std::make_unique<Client>(server, patience);
  const auto is_complete = client->ask(std::move(words));
  client->end();
  return is_complete ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "request_service: %s\n", error.what());
  return 3;
}

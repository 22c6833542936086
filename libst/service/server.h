// SPDX-License-Identifier: BSD-3-Clause
// The daemon's side of the socket: one thread that accepts clients, checks what they ask, and
// hands it to the Service. It trusts none of them: one that sends what no client would, or does
// not read its replies, is disconnected, and nobody waits for it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "libst/os/unique_fd.h"
#include "libst/service/closer.h"
#include "libst/service/heartbeat.h"
#include "libst/service/log_budget.h"
#include "libst/service/log_level.h"
#include "libst/service/nudge.h"
#include "libst/service/populator.h"
#include "libst/service/reaper.h"
#include "libst/service/service.h"
#include "libst/service/socket.h"

namespace stp::service {

class Server {
 public:
  // Told about clients that come and go; called from the server's thread.
  using Log = std::function<void(LogLevel, const std::string&)>;

  struct Counts {
    std::atomic<std::uint64_t> clients{0};       // accepted
    std::atomic<std::uint64_t> refused{0};       // turned away: too many, or too few files
    std::atomic<std::uint64_t> bad_messages{0};  // disconnected for what they sent
    std::atomic<std::uint64_t> slow_readers{0};  // disconnected for what they did not read
    // Descriptors of clients at which a thread was lost, for a second at least.
    std::atomic<std::uint64_t> stuck_descriptors{0};
    std::atomic<std::uint64_t> torn_memory{0};  // disconnected: took away memory that was in use
  };

  Server(Service& service, std::string path, Log log = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Before start(). Whose group's members are administrators, and what makes traces.
  void set_admin(std::optional<gid_t> group, TraceControl* trace);
  // Clients at a time, and bytes in one request to map; what else one client may have is the
  // Service's. At any time. Administrators find limits::kOperatorPlaces more places, in which
  // they may watch and do nothing else.
  void set_quotas(const Quotas& quotas);
  // Makes the socket. 0; -EADDRINUSE: another daemon answers there; or what the system says.
  int listen(const SocketAccess& access = {});
  // Begins to serve; listens first if that was not done. `links`: so many servers of this process
  // share its open files and its mappings.
  int start(std::size_t links = 1);
  // Removes the socket file and every client. What they had on the link ends as the Service is
  // polled on.
  void stop();
  [[nodiscard]] const Counts& counts() const { return counts_; }
  // Beats once in a second at least.
  [[nodiscard]] const Heartbeat& heartbeat() const { return heartbeat_; }

 private:
  using Clock = std::chrono::steady_clock;
  // In a key of what epoll watches, above a ClientId: it is about the client's process.
  static constexpr std::uint64_t kProcessBit = std::uint64_t{1} << 32;
  struct Peer {
    UniqueFd socket;
    UniqueFd process;  // readable when it has ended, whoever else holds its socket; may be none
    ClientId client = 0;
    ClientIdentity identity;
    bool mapping = false;    // the reply to its kMap waits for pages: nothing more is read from it
    bool operating = false;  // in a place kept for operators
    std::uint64_t last_asked = 0;  // when, counted in requests of all
  };

  void run();
  void handle_event_safely(std::uint64_t key);
  void handle_event(std::uint64_t key);
  int watch(int fd, std::uint64_t key);
  void watch_listener(bool on);
  void pause_accepting();
  void tend();
  void admit();
  void admit(const ClientIdentity& who, UniqueFd& socket);
  bool find_place(const ClientIdentity& who, bool scarce, bool& operating);
  bool find_operator_place(const ClientIdentity& who);
  ClientId join(const ClientIdentity& who, bool operating, std::string& why);
  void refuse(const ClientIdentity& who, const std::string& why);
  void make_room_for_operator();
  void serve(std::uint64_t key);
  void judge(std::uint64_t key, int result);
  int answer(Peer& peer);
  [[nodiscard]] Descriptors descriptors_of(const Peer& peer) const;
  int receive(Peer& peer, Request& request, std::vector<UniqueFd>& fds);
  int answer(Peer& peer, int received, const Request& request, std::span<UniqueFd> fds);
  int refuse_descriptors(Peer& peer, const Request& request);
  int pass_on(Peer& peer, const Request& request, std::span<UniqueFd> fds);
  int reply_to(Peer& peer, const Request& request, Attachments& attachments, Reply& reply,
               int bell = -1);
  void hear(const Peer& peer, bool requests);
  int begin_map(Peer& peer, const Request& request, std::span<UniqueFd> fds);
  int end_map(Peer& peer, Populator::Job job);
  void end_maps();
  void drop_expelled();
  void drop(std::uint64_t key, const std::string& why);
  void hang_up(uid_t user, UniqueFd socket);
  void log(LogLevel level, const std::string& text) const;
  // Of something that a client can make happen as often as it likes.
  void log_client(uid_t user, LogLevel level, const std::string& text);

  Service& service_;
  const std::string path_;
  const Log log_;
  std::optional<gid_t> admin_group_;
  TraceControl* trace_ = nullptr;
  std::atomic<std::size_t> most_clients_{Quotas{}.clients};
  std::atomic<std::uint64_t> most_map_bytes_{Quotas{}.map_bytes};
  Counts counts_;
  Heartbeat heartbeat_;
  std::shared_ptr<Reaper> reaper_;
  std::optional<Closer> closer_;
  std::optional<Nudge> nudge_;    // of the server's thread
  std::size_t lost_closers_ = 0;  // as the log was told
  std::size_t room_for_foreign_ = 0;
  Clock::time_point accepts_from_{};
  std::optional<Populator> populator_;
  SocketFile file_;
  UniqueFd listener_, epoll_, stop_;
  LogBudget log_budget_;
  int first_reserved_file_ = 0;
  bool listener_watched_ = false;
  bool starved_ = false;                 // somebody waits whom no descriptor was left for
  std::map<std::uint64_t, Peer> peers_;  // by epoll key
  std::size_t operators_ = 0;            // of them
  std::uint64_t asked_ = 0;
  std::thread thread_;
};

}  // namespace stp::service

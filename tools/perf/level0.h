// SPDX-License-Identifier: BSD-3-Clause
// The tests at level 0: connections and the memory that they use, a ping-pong, and a window of
// Blocks. The link is that of STP_LINK.
#pragma once

#include <stp/st.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/perf/measure.h"
#include "tools/perf/plan.h"

namespace stp::perf {

struct Level0End {
  void operator()(st_ehandle* endpoint) const { st_delete(endpoint); }
  void operator()(st_chandle* connection) const { st_close(connection); }
  void operator()(void* memory) const { st_free(memory); }
};

// One end of a connection. Both sides have opened their memory to each other.
struct Level0Connection {
  std::unique_ptr<st_chandle, Level0End> handle;
  st_header_t data{};  // header of a Block for the peer's memory, without its number and flags
};

// Where a server at `address` ("host:3000") listens at level 0: at the next port. Throws WrongUsage
// if its port is no number, or the last one.
std::string level0_address(const std::string& address);

// One side's endpoint and its memory, which its connections share. It must outlive them. Errors are
// exceptions.
class Level0 {
 public:
  // `listen_at`: "HOST:PORT": listens on the next port; "": does not listen. `look` is called ten
  // times a second while this waits for the peer's program; what it throws ends the wait.
  Level0(const std::string& listen_at, const Plan& plan, unsigned buffer_log2,
         std::function<void()> look = {});

  // `peer`: the server's address; its port at level 0 is the next one.
  Level0Connection connect(const std::string& peer);
  Level0Connection accept();
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  void* allocate(int direction, int* mx);
  Level0Connection open(st_chandle_t handle) const;
  template <typename Call>
  void await(Call&& call, const char* what) const;

  std::uint64_t size_;
  std::function<void()> look_;
  std::unique_ptr<void, Level0End> source_, target_;  // destroyed after the endpoint
  std::unique_ptr<st_ehandle, Level0End> endpoint_;
  int mx_ = 0;
};

// A ping-pong at level 0: each side puts a Block into the other's memory by st_tx, and learns of
// the other's Block from the header that st_rx returns.
class Level0Ping {
 public:
  Level0Ping(const Plan& plan, Level0Connection connection);

  // For the client: sends a Block and waits for the answer.
  void round_trip();
  // For the server: answers a Block, if one has come. Returns whether it has.
  bool answer();

 private:
  void send();
  // False: nothing has come yet.
  bool receive();

  const Plan plan_;
  Level0Connection connection_;
};

// Sends Blocks at level 0, with a window of them outstanding on each connection. The receiving side
// uses the same class and only calls turn(). The Blocks are Silent: the peer's program is not told
// of them. A Block counts as done when the peer's Node has confirmed it; one Block in several asks
// for confirmation.
class Level0Stream {
 public:
  Level0Stream(const Plan& plan, std::vector<Level0Connection> connections);

  void start();
  void stop();
  // Sends Blocks while the windows have room, and takes confirmations. Returns false if none came.
  bool turn();
  // After stop(): returns whether all Blocks are confirmed.
  [[nodiscard]] bool drained() const;
  // Returns how many Blocks of this side are confirmed.
  [[nodiscard]] std::uint64_t operations() const { return done_; }

 private:
  // Blocks are numbered modulo 2^32.
  struct Lane {
    Level0Connection connection;
    std::uint32_t next = 0;       // the next Block to send
    std::uint32_t confirmed = 0;  // all Blocks before it are confirmed
    std::uint32_t end = 0;        // after stop(): the end of the Blocks to send
    std::uint32_t question = 0;   // number of the last RS
    bool asked = false;           // the last RS is not answered yet
    Clock::time_point ask_at, give_up_at;
  };
  void fill(Lane& lane);
  void send(Lane& lane);
  bool take(Lane& lane);
  void confirm(Lane& lane, const st_header_t& state);
  void ask(Lane& lane);
  void wait(Lane& lane);
  static void be_patient(Lane& lane);

  const Plan plan_;
  const std::uint32_t asks_;  // one Block in so many asks for confirmation; a power of two
  std::vector<Lane> lanes_;
  bool running_ = false;
  std::uint64_t done_ = 0;
};

}  // namespace stp::perf

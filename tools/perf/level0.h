// SPDX-License-Identifier: BSD-3-Clause
// A ping-pong at level 0: each side puts a Block into the other's memory by st_tx, and hears of it
// by the header that st_rx brings. The link is that of STP_LINK.
#pragma once

#include <stp/st.h>

#include <memory>
#include <string>

#include "tools/perf/plan.h"

namespace stp::perf {

// One side's endpoint with its memory, and its end of the connection.
class Level0 {
 public:
  // `name`: as st_create takes it; nullptr: any.
  Level0(const char* name, const Plan& plan);

 protected:
  // Opens our memory to the peer, and learns where the peer's is.
  void exchange_regions();
  void send();
  // False: nothing has come yet.
  bool receive();
  st_ehandle_t endpoint() const { return endpoint_.get(); }
  void adopt(st_chandle_t connection) { connection_.reset(connection); }

 private:
  struct Delete {
    void operator()(st_ehandle* endpoint) const { st_delete(endpoint); }
    void operator()(st_chandle* connection) const { st_close(connection); }
    void operator()(void* memory) const { st_free(memory); }
  };
  void* allocate(std::size_t size, int direction, int* mx);

  const Plan plan_;
  std::unique_ptr<void, Delete> source_, target_;  // go last
  std::unique_ptr<st_ehandle, Delete> endpoint_;
  std::unique_ptr<st_chandle, Delete> connection_;
  int mx_ = 0;
  st_header_t data_{};  // to the peer's memory
};

class Level0Client : public Level0 {
 public:
  // `peer`: the server's address; its port at level 0 is the next one.
  Level0Client(const std::string& peer, const Plan& plan);
  void round_trip();
};

class Level0Server : public Level0 {
 public:
  Level0Server(const std::string& port, const Plan& plan);
  void accept();
  // Answers what has come, if anything.
  bool answer();
};

}  // namespace stp::perf

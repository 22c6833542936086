// SPDX-License-Identifier: BSD-3-Clause
// Connections at level 0, and the memory that they use. The link is that of STP_LINK.
#pragma once

#include <stp/st.h>

#include <memory>
#include <string>

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

// One side's endpoint and its memory, which its connections share. It must outlive them. Errors are
// exceptions.
class Level0 {
 public:
  // `listen_at`: "HOST:PORT": listens on the next port; "": does not listen.
  Level0(const std::string& listen_at, const Plan& plan, unsigned buffer_log2);

  // `peer`: the server's address; its port at level 0 is the next one.
  Level0Connection connect(const std::string& peer);
  Level0Connection accept();

 private:
  void* allocate(int direction, int* mx);
  Level0Connection open(st_chandle_t handle) const;

  const std::uint64_t size_;
  std::unique_ptr<void, Level0End> source_, target_;  // destroyed after the endpoint
  std::unique_ptr<st_ehandle, Level0End> endpoint_;
  int mx_ = 0;
};

}  // namespace stp::perf

// SPDX-License-Identifier: BSD-3-Clause
// What a program is told by: counters, completion queues, event queues; and where an endpoint
// reports what is done.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "libst/libfabric/link.h"
#include "libst/libfabric/op.h"
#include "stp/base/ring_queue.h"

namespace stp::fi {

class Domain;
class Fabric;

// Counts completions and failed ones.
class Cntr : public fid_cntr {
 public:
  static int open(Domain& domain, const fi_cntr_attr& attr, void* context, fid_cntr*& out);

  // ---- under the link's mutex ----
  void count(bool failed);
  void use() { ++users_; }
  void unuse() { --users_; }
  int try_wait();

  int close();
  int control(int command, void* argument);
  std::uint64_t read(bool errors);
  int set(bool errors, std::uint64_t value, bool add);
  int wait(std::uint64_t threshold, int timeout);

 private:
  Cntr(Domain& domain, const fi_cntr_attr& attr, void* context);

  Domain& domain_;
  FabricLink& link_;
  std::uint64_t value_ = 0, errors_ = 0;
  Wait wait_;
  unsigned users_ = 0;
};

struct Completion {
  fi_cq_tagged_entry entry{};  // other formats are the beginning of it
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  int error = 0;   // libfabric's, positive; 0: success
  int status = 0;  // of an error, as what follows
  std::size_t overflow = 0;
  const void* own = nullptr;  // of a receive: see Reports::own_receives

  void succeed(const fi_cq_tagged_entry& what, fi_addr_t from) {
    entry = what;
    source = from;
    error = 0;
  }
};

// A completion queue. It grows with the number of posted operations, so it loses no completion.
// What peers tell by themselves waits at them while it is full.
class Cq : public fid_cq {
 public:
  static int open(Domain& domain, const fi_cq_attr& attr, void* context, fid_cq*& out);

  // ---- under the link's mutex ----
  // The caller fills in all of it, and calls wake().
  Completion& add() { return completions_.place(); }
  [[nodiscard]] bool is_full() const { return completions_.size() >= size_; }
  // Successful receives of that mark, if the program has not read of them, are not told any more.
  void forget_receives(const void* mark);
  void wake() { wait_.wake(); }
  void use() { ++users_; }
  void unuse() { --users_; }
  // -FI_EAGAIN: read the queue first. 0: the program may sleep.
  int try_wait() { return is_ready() || link_.rest_to_look_again() ? -FI_EAGAIN : 0; }

  int close();
  int control(int command, void* argument);
  ssize_t read(void* buffer, std::size_t count, fi_addr_t* sources);
  ssize_t read_error(fi_cq_err_entry& entry);
  ssize_t wait_and_read(void* buffer, std::size_t count, fi_addr_t* sources, int timeout);
  int signal();

 private:
  Cq(Domain& domain, const fi_cq_attr& attr, void* context);
  // There is something to be read now.
  bool is_ready();
  ssize_t take(void* buffer, std::size_t count, fi_addr_t* sources);
  // There are some, and `count` is not 0.
  ssize_t take_some(void* buffer, std::size_t count, fi_addr_t* sources);
  // Nothing is there.
  [[nodiscard]] ssize_t nothing() const;

  Domain& domain_;
  FabricLink& link_;
  const fi_cq_format format_;
  const std::size_t entry_size_;
  const std::size_t size_;  // completions
  RingQueue<Completion> completions_;
  Wait wait_;
  bool signaled_ = false;
  unsigned users_ = 0;
};

struct News {
  std::uint32_t event = 0;
  fid_t about = nullptr;
  fi_info* info = nullptr;       // of a FI_CONNREQ: the reader frees it
  bool seen = false;             // by a program that has not read it (FI_PEEK)
  std::vector<std::byte> bytes;  // the event as fi_eq_read returns it, or the data of an error
  int error = 0;                 // libfabric's, positive; 0: none
  int status = 0;
  void* context = nullptr;  // of an error
  std::uint64_t data = 0;
};

// An event queue: events of connections, and those that the program writes.
class Eq : public fid_eq {
 public:
  static int open(Fabric& fabric, const fi_eq_attr& attr, void* context, fid_eq*& out);
  ~Eq();

  // ---- under the link's mutex ----
  // An event of a connection: a fi_eq_cm_entry and those bytes.
  void tell(std::uint32_t event, fid_t about, fi_info* info, const std::vector<std::byte>& data);
  void tell_error(fid_t about, int status, std::vector<std::byte> data);
  // An insertion of `context` into the address vector `av` is complete: so many have been inserted.
  void tell_inserted(fid_t av, void* context, std::uint64_t count);
  // That one of them, of those inserted, is no address. False: the queue is full, nothing is told.
  bool tell_not_inserted(fid_t av, void* context, std::uint64_t which);
  // Whether it has events of it that were not read.
  [[nodiscard]] bool knows_of(fid_t about) const;
  // The FI_CONNREQ of that handle is not told any more. False: the program knows of it.
  bool take_back(fid_t handle);
  // Reports no further events of it.
  void forget(fid_t about);
  // For an object that is bound to the event queue `other` and keeps it in `place` until it calls
  // unbind().
  static int bind(Eq*& place, fid_t other, std::uint64_t flags);
  // That object ends. `from`: the queue that it is bound to, or nullptr.
  static void unbind(Eq* from, fid_t object);
  int try_wait();

  int close();
  int control(int command, void* argument);
  ssize_t read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);
  ssize_t read_error(fi_eq_err_entry& entry, std::uint64_t flags);
  ssize_t write(std::uint32_t event, const void* buffer, std::size_t length, std::uint64_t flags);
  ssize_t wait_and_read(std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                        std::uint64_t flags);

 private:
  Eq(Fabric& fabric, const fi_eq_attr& attr, void* context);
  ssize_t take(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags);

  Fabric& fabric_;
  FabricLink& link_;
  const bool writable_;
  const std::size_t size_;
  std::deque<News> news_;
  std::vector<std::byte> error_data_;  // of the error that was read last
  Wait wait_;
  unsigned users_ = 0;
};

// ---- of an endpoint ----

// Where an endpoint reports what is done: its completion queues and counters. Under the link's
// mutex.
class Reports {
 public:
  int bind_cq(fid_t other, std::uint64_t flags);
  // `accesses`: of peers may be counted, too.
  int bind_cntr(fid_t other, std::uint64_t flags, bool accesses);
  // Receives are posted to this endpoint alone. So those that are complete are not told any more
  // once it is closed (fi_endpoint(3), fi_close): ofi_rxm would post their buffers to it again.
  void own_receives() { own_ = this; }
  // The queues and counters may be closed.
  void release();

  [[nodiscard]] bool has_rx_queue() const { return rx_cq_ != nullptr; }
  [[nodiscard]] bool has_queue() const { return tx_cq_ != nullptr || rx_cq_ != nullptr; }
  [[nodiscard]] bool has_counter() const;
  // The program has to read its queue before more is told that none of its operations stands for.
  [[nodiscard]] bool are_full() const;
  // A peer has written, with immediate data.
  void tell_written(std::uint64_t length, std::uint64_t data, fi_addr_t source);
  // Whether the success of an operation with those flags is told, too.
  [[nodiscard]] bool tells(Direction direction, std::uint64_t flags) const {
    const auto asks = direction == Direction::kReceive ? rx_asks_ : tx_asks_;
    return ((flags ^ FI_COMPLETION) & (asks | kUntold)) == 0;
  }
  void complete(const Outcome& op);
  // The same to the queue alone: a look at a message (FI_PEEK) receives nothing.
  void tell(const Outcome& op);
  // A message is complete that no operation stands for. `kind`: FI_SEND | FI_MSG and the like;
  // `flags`: those of its call.
  void sent(void* context, std::uint64_t kind, std::uint64_t flags);
  // The same of a receive with those flags, but `fill` fills in the entry of the queue.
  template <class Fill>
  void received(std::uint64_t flags, Fill fill) {
    if (auto* const counter = counters_[static_cast<std::size_t>(Direction::kReceive)];
        counter != nullptr)
      counter->count(false);
    if (rx_cq_ == nullptr || !tells(Direction::kReceive, flags)) return;
    auto& told = rx_cq_->add();
    fill(told);
    told.own = own_;
    rx_cq_->wake();
  }
  void count_access(bool reads);

 private:
  Cq* tx_cq_ = nullptr;
  Cq* rx_cq_ = nullptr;
  const void* own_ = nullptr;
  // By Direction; then reads and writes of peers.
  std::array<Cntr*, 6> counters_{};
  // FI_COMPLETION where success is told of what asks for it alone.
  std::uint64_t tx_asks_ = 0, rx_asks_ = 0;
};

}  // namespace stp::fi

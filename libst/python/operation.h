// SPDX-License-Identifier: BSD-3-Clause
// Something that a program waits for: an operation that was posted, a connection that is to be, a
// request that is to come, an end. Done once; until then it keeps the memory that the link uses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <semaphore>
#include <string>
#include <vector>

#include "libst/python/interpreter.h"

namespace stp::python {

class Domain;
class Connection;
class Listener;

// A piece of a power of two.
struct Place {
  stm_memory_t memory = nullptr;
  char* at = nullptr;
  unsigned log2 = 0;
};

// Registered memory of a domain for what is copied: short messages, and those that are received as
// bytes. Pages of its own: the interpreter's heap stays as it is.
class Staging {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 30;  // of one piece

  Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();  // after the domain was closed

  Place take(stm_domain_t domain, std::size_t size);
  void give(const Place& place) { free_[place.log2].push_back(place); }

 private:
  static constexpr unsigned kLeast = 8, kPiecesOfChunk = 20, kMostLog2 = 30;
  struct Chunk {
    void* at;
    std::size_t size;
  };

  std::vector<Chunk> chunks_;
  std::array<std::vector<Place>, kMostLog2 + 1> free_;  // by the logarithm of their size
};

class Operation : public std::enable_shared_from_this<Operation> {
 public:
  // What it gives when it has succeeded.
  enum class Gives { kNothing, kBytes, kLength, kNumber, kConnection };
  // Who completes it. kLink: an event of the library; kLater: a receive that is not posted yet.
  enum class By { kLink, kLater, kOpening, kRequest, kEnd };

  Operation(std::shared_ptr<Domain> domain, By who, Gives gives)
      : by(who), domain_(std::move(domain)), gives_(gives) {}
  ~Operation();

  // Blocks without the interpreter's lock; true: it is done. Microseconds, negative: for ever.
  // Handlers of signals run meanwhile, and what they raise ends the wait.
  bool wait(std::int64_t timeout);
  // Waits, and takes it back if that fails. The result as result() has it. Without a timeout, one
  // that the peer may keep waiting for ever warns after warn_after.
  PyObject* finish(std::int64_t timeout);
  static inline std::int64_t warn_after = 10'000'000;  // microseconds
  // A message waits at its sender until the peer receives it. "": it is none, or this program
  // receives meanwhile. `otherwise`: what else helps but to receive first.
  [[nodiscard]] std::string why_it_may_wait(const char* otherwise) const;
  // A new reference, or the exception that its status stands for.
  PyObject* result();
  // Asks for its end; it may complete as done nevertheless. A message that comes too late is kept
  // for the next receive of the connection; one that is arriving goes on. False: it was done.
  bool cancel();
  // The same, and nobody will ask for its result: what it has got already, a message or a request,
  // is the next one's. (A long message that lies in the program's own buffer stays there.)
  void abandon();
  // CALL is called without arguments once it is done: at once, if it is done already.
  void on_done(PyObject* call);

  // Memory that the operation uses: a place of the domain's staging, or the program's buffer. The
  // buffer is used where it is if a region has it, or if it is long, and else by a copy.
  void use_place(std::size_t size);
  void use_buffer(Buffer buffer, bool is_written);

  // Sets the outcome, once. Who waits learns of it by Domain::tell.
  void end(int status, std::string text);
  // The same, with the text that the library has for it.
  void end(int status);
  [[nodiscard]] bool done() const { return done_; }

  By by;
  std::string what;  // the operation, as texts of errors name it: "sending"
  std::uint64_t context = 0;
  std::shared_ptr<Connection> connection;  // of the operation, or the one that it gives
  std::shared_ptr<Listener> listener;      // of a request
  bool is_receive = false;
  bool abandoned = false;  // a receive that was taken back, and is not over
  stm_memory_t memory = nullptr;
  char* at = nullptr;
  std::size_t size = 0;
  std::uint64_t length = 0;  // of what has come
  std::uint32_t tag = 0;

 private:
  friend class Domain;
  PyObject* bytes() const;
  bool wait_and_warn();
  void let_go();  // of the buffer, when its memory is registered no more

  std::shared_ptr<Domain> domain_;
  Gives gives_;
  bool ended_ = false, done_ = false, taken_ = false;
  int status_ = 0;
  std::string text_;
  Place place_;
  Buffer buffer_;
  stm_memory_t own_ = nullptr;  // registered for this operation alone
  bool copies_back_ = false;
  Reference call_;
  std::vector<std::counting_semaphore<4>*> waiters_;  // of threads that another one waits for
};

}  // namespace stp::python

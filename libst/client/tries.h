// SPDX-License-Identifier: BSD-3-Clause
// The addresses of a host that has several: first those at which this program has opened
// connections, else in the resolver's order, one after the other, until one answers. What RFC 8305
// says of two at once would make two connections, and peers count these.
#pragma once

#include <cerrno>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "libst/client/names.h"
#include "stp/types.h"

namespace stp::client {

class Tries {
 public:
  // Of more addresses, the first ones are tried. The longest that one is tried while there are
  // others: as long as a host may be silent (docs/protocol.md, 5.23). The shortest: its program may
  // need a moment to decide; unless that leaves each of the others less than kLeast, or than an
  // equal share. Within kTogether the last one is asked, however long it may take itself: users
  // believe for about ten seconds that somebody answers.
  static constexpr std::size_t kMost = Places::kMost;
  static constexpr Time kLongest = 4'500 * kMillisecond, kShortest = 2'500 * kMillisecond;
  static constexpr Time kLeast = 500 * kMillisecond, kTogether = 9 * kSecond;
  // The same for its station, which needs no decision.
  static constexpr Time kLongestAsked = kSecond;
  // Between looks for a report that nobody is there, the longer the later.
  static constexpr Time kFirstLook = 5 * kMillisecond, kLastLook = 250 * kMillisecond;

  explicit Tries(Places places);

  // Whether the host may be reached by its next address after such an error.
  static bool is_of_address(int error) {
    return error == -ETIMEDOUT || error == -EHOSTUNREACH || error == -ENETUNREACH;
  }

  // There is none left. Else the one that is tried.
  [[nodiscard]] bool is_over() const { return queue_.empty(); }
  [[nodiscard]] const Place& present() const { return queue_.front().place; }
  // It is tried from now on. All that are left have until then together; the last one has the rest.
  void begin(Time now, Time until);
  [[nodiscard]] Time limit() const { return limit_; }
  // Until when it is asked which station is there. kNever: there is one address only.
  [[nodiscard]] Time ask_by() const { return ask_by_; }
  // When to look whether there is a report that nobody is there. kNever: that would change nothing.
  [[nodiscard]] Time look_at() const { return look_at_; }
  void looked(Time now);
  // Nobody has answered there; `why` may be "".
  void give_up(const std::string& why);
  // Somebody has reported that nobody is there. Anybody can forge that, so it is tried again if
  // nobody answers at the others; no report counts then.
  void give_up_for_now(const std::string& why);
  // Somebody has answered there. `how`: "", so a connection is open, and it comes first the next
  // time; or for text().
  void answered(const std::string& how);

  // Whether there is more to tell than the error of one address.
  [[nodiscard]] bool has_news() const { return count_ > 1; }
  // What was tried, and how that ended, for the text of an error. Those that ended alike stand
  // together.
  [[nodiscard]] std::string text() const;
  // Nobody has answered, and one of them has given no sign at all: no report has come about it.
  [[nodiscard]] bool any_silent() const;

 private:
  struct Try {
    Place place;
    bool again = false;
  };
  using Ends = std::vector<std::pair<std::string, std::string>>;  // of each address, the latest
  void note(const std::string& why);
  [[nodiscard]] Ends ends() const;

  std::string host_;
  std::size_t count_ = 0;
  std::deque<Try> queue_;
  Ends ends_;
  bool is_answered_ = false;
  bool is_begun_ = false;      // the first one of the queue
  Time first_begun_ = kNever;  // of the first one of all
  Time begun_ = 0, limit_ = kNever, ask_by_ = kNever, look_at_ = kNever;
};

}  // namespace stp::client

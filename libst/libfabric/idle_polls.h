// SPDX-License-Identifier: BSD-3-Clause
// When a thread that polls a link of a stpd in vain gives its core to others.
#pragma once

namespace stp::fi {

// Under the link's mutex.
class IdlePolls {
 public:
  // So many in a row may find nothing; and where the core has others to run, fewer.
  static constexpr unsigned kMany = 16, kFew = 4;
  // Sleeps that another link has instead.
  static constexpr unsigned kOfOthers = 8;

  // A poll has found something, or has been told what was found before: Open MPI polls until it is
  // told nothing more, so that one is not in vain.
  void told() { in_vain_ = 0; }
  // After one that has found nothing: whether to look if the core is crowded.
  [[nodiscard]] bool is_time() { return ++in_vain_ % (crowded_ ? kFew : kMany) == 0; }
  void looked(bool crowded) { crowded_ = crowded; }
  // Whether to sleep here where the core is crowded. Open MPI polls two links in turn, and an event
  // of one does not end a sleep at the other: so it mostly sleeps where it hears of events.
  [[nodiscard]] bool may_sleep(bool another_hears) {
    return !another_hears || ++let_pass_ % kOfOthers == 0;
  }

 private:
  unsigned in_vain_ = 0, let_pass_ = 0;
  bool crowded_ = false;  // when it looked last
};

}  // namespace stp::fi

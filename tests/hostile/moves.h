// SPDX-License-Identifier: BSD-3-Clause
// What a hostile program does to stpd. Each move prints "ready" once it is at it, goes on until its
// time is over, and says what it has found: a Breach is what no client may be able to do.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>

#include "tests/hostile/client.h"

namespace stp::hostile {

struct Breach : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Attack {
  std::string socket;
  std::chrono::steady_clock::time_point until;
  std::mt19937_64 dice;
  std::uint32_t uport = 0;  // its own, and the 63 behind it
  std::uint64_t most = 0;   // 0: as much as it gets
  std::uint64_t rate = 0;   // in a second; 0: as fast as it gets

  [[nodiscard]] bool over() const { return std::chrono::steady_clock::now() >= until; }
  [[nodiscard]] bool enough(std::uint64_t count) const { return most != 0 && count >= most; }
};

void say_ready();
// "NAME=COUNT", for the one who looks at the attack.
void say(const std::string& name, std::uint64_t count);
// Until the time is over.
void rest(const Attack& attack);

// rings.cpp: a thread refills a transmit queue, with what is refused or with what is not.
void spin(Attack& attack);    // the same load without any harm, to compare with
void busy(Attack& attack);    // the same, with all that the rules allow
void refill(Attack& attack);  // requests that are refused
void stream(Attack& attack);  // requests that are carried out
void spoil(Attack& attack);   // noise in every shared page
void holes(Attack& attack);   // memory whose pages go while it is used

// descriptors.cpp
void descriptors(Attack& attack);  // of every kind, in every request
void fuse(Attack& attack);         // a file whose close() waits for ever
void deaf(Attack& attack);         // asks, and reads no answer

// sharing.cpp: flags, locks, leases and seals of what stpd shares
void sharing(Attack& attack);

// hoarding.cpp: all that it gets, kept until it is killed
void hoard(Attack& attack);
void mappings(Attack& attack);
void places(Attack& attack);
void forked(Attack& attack);  // a child that holds all of it survives
void absent(Attack& attack);  // memory without pages, which stpd would have to make
void lend(Attack& attack);    // all the memory that its control group has, and more
void idle(Attack& attack);    // connections to somebody else's listener, and not a word

// ids.cpp
void forge(Attack& attack);      // what others have, by guessing its ids
void noise(Attack& attack);      // anything, by the dice
void strangers(Attack& attack);  // asks for addresses that nobody has, one after the other

}  // namespace stp::hostile

// SPDX-License-Identifier: BSD-3-Clause
// What a hostile program does to stpd. Each move prints "ready" when it has begun, goes on until
// its time is over, and reports what it has found. A Breach is something that no client may be able
// to do.
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
  std::uint32_t uport = 0;  // the first of its 64 UPorts
  std::uint64_t most = 0;   // 0: as much as it gets
  std::uint64_t rate = 0;   // in a second; 0: as fast as it gets
  bool ipv6 = false;        // moves of the network: over that

  [[nodiscard]] bool over() const { return std::chrono::steady_clock::now() >= until; }
  [[nodiscard]] bool enough(std::uint64_t count) const { return most != 0 && count >= most; }
};

void say_ready();
// Prints "NAME=COUNT" for the test.
void say(const std::string& name, std::uint64_t count);
// Waits until the time is over.
void rest(const Attack& attack);

// rings.cpp: a thread refills a transmit queue, with requests that are refused or carried out.
void spin(Attack& attack);    // the same CPU load without requests, for comparison
void busy(Attack& attack);    // the same load with legal requests
void refill(Attack& attack);  // requests that are refused
void stream(Attack& attack);  // requests that are carried out
void spoil(Attack& attack);   // noise in every shared page
void holes(Attack& attack);   // memory whose pages are removed while it is used
void vacate(Attack& attack);  // the same with pages that are mapped very often

// descriptors.cpp
void descriptors(Attack& attack);  // of every kind, in every request
void fuse(Attack& attack);         // a file whose close() blocks for ever
void deaf(Attack& attack);         // sends requests and reads no answer

// sharing.cpp: flags, locks, leases and seals of what stpd shares
void sharing(Attack& attack);
void punch(Attack& attack);    // takes pages away that stpd hands out, mapped very often
void contend(Attack& attack);  // the same with memory that it lends, while stpd maps it
void huge(Attack& attack);     // has the kernel move pages that stpd uses, mapped very often

// hoarding.cpp: takes all that it gets and keeps it until it is killed
void hoard(Attack& attack);
void mappings(Attack& attack);
void places(Attack& attack);
void forked(Attack& attack);   // leaves a child that holds all of it
void absent(Attack& attack);   // memory without pages, which stpd would have to allocate
void lend(Attack& attack);     // more memory than its control group has
void largest(Attack& attack);  // lends as much as it may in one request, again and again
void idle(Attack& attack);     // silent connections to another program's listener

// requests.cpp
void flood(Attack& attack);  // requests of every kind, by several clients without pause
void crowd(Attack& attack);  // connects and closes without pause
void leave(Attack& attack);  // goes in each step of what a program does first

// ids.cpp
void forge(Attack& attack);      // guesses ids of other clients' objects
void noise(Attack& attack);      // random requests
void strangers(Attack& attack);  // resolves addresses that no host has, one after the other

// network.cpp: from the network, so that many in a second
void datagrams(Attack& attack);  // of any length and content
void sources(Attack& attack);    // under 10,000 forged addresses
void reports(Attack& attack);    // errors that hosts and routers report (ICMP)
void fragments(Attack& attack);  // parts of datagrams, and wrong checksums of UDP
void frames(Attack& attack);     // legal ones of every operation, with ids and Keys that it guesses
void replays(Attack& attack);  // what the two have sent, from elsewhere, as if a NAT had moved them

}  // namespace stp::hostile

// SPDX-License-Identifier: BSD-3-Clause
// The DAT objects as a front sees them: two IAs on one link, each with EVDs, a PZ and memory.
#pragma once

#include "libst/udapl/core/ep.h"
#include "libst/udapl/core/ia.h"
#include "libst/udapl/core/memory.h"
#include "libst/udapl/core/service_point.h"
#include "tests/libst/libst_fixture.h"

namespace stp::test {

using udapl::Event;
using udapl::EventNumber;
using udapl::Result;

inline constexpr std::uint32_t kPatience = 20'000'000;

// One side: the objects that a program creates first.
struct DatSide {
  explicit DatSide(udapl::Flags recv_flags = 0, udapl::Flags request_flags = 0);
  ~DatSide();
  DatSide(const DatSide&) = delete;
  DatSide& operator=(const DatSide&) = delete;

  std::shared_ptr<udapl::Evd> evd(int length, udapl::Flags streams);
  std::shared_ptr<udapl::Ep> make_ep(const std::shared_ptr<udapl::Srq>& srq = nullptr);
  // A part of the buffer, as a segment.
  [[nodiscard]] udapl::LmrTriplet at(std::size_t offset, std::size_t length) const;
  // The next event of `from`, or kNone if none arrives within 20 s.
  static Event next(udapl::Evd& from);

  std::shared_ptr<udapl::Ia> ia;
  std::shared_ptr<udapl::Evd> async, recv, request, connect, requests;
  std::shared_ptr<udapl::Pz> pz;
  Buffer buffer{1 << 19, 1};
  std::shared_ptr<udapl::Lmr> lmr;
  udapl::EpAttr attr;
  std::shared_ptr<udapl::Ep> ep;
};

std::span<const std::byte> text(const char* value);

// Calls a function that happens under the IA's mutex: held(ep)->post_send(...).
template <typename Of>
class Holding {
 public:
  explicit Holding(Of& of) STP_THREAD_SAFETY(no_thread_safety_analysis)
      : lock_(of.ia().mutex()), of_(of) {}
  Of* operator->() const { return &of_; }

 private:
  Lock lock_;
  Of& of_;
};
template <typename Of>
Holding<Of> held(const std::shared_ptr<Of>& of) {
  return Holding<Of>(*of);
}
// dat_evd_dequeue.
Result dequeue(udapl::Evd& from, Event& event);

// A server's IA and a client's, on the link of STP_LINK.
struct DatPair {
  // The server listens on 3000; the client connects, and the server accepts with `server.ep`.
  void connect();
  // Connects another pair of EPs through the same service point.
  void connect(const std::shared_ptr<udapl::Ep>& from, const std::shared_ptr<udapl::Ep>& to);
  // The server's next request.
  std::shared_ptr<udapl::Cr> next_request();

  DatSide server, client;
  std::shared_ptr<udapl::ServicePoint> psp;
  std::shared_ptr<udapl::Cr> cr;
};

class Dat : public LibstTest, protected DatPair {};

}  // namespace stp::test

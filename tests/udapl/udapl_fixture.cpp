// SPDX-License-Identifier: BSD-3-Clause
#include "tests/udapl/udapl_fixture.h"

#include <cstring>

namespace stp::test {

using namespace udapl;

DatSide::DatSide(Flags recv_flags, Flags request_flags) {
  EXPECT_EQ(Ia::open("", 16, async, ia), Result::kSuccess);
  recv = evd(64, kStreamDto);
  request = evd(64, kStreamDto | kStreamBind);
  connect = evd(16, kStreamConnection);
  requests = evd(16, kStreamCr);
  EXPECT_EQ(Pz::create(*ia, pz), Result::kSuccess);
  EXPECT_EQ(Lmr::create(*ia, pz, {buffer.data(), buffer.size(), kAllPrivileges, false}, lmr),
            Result::kSuccess);
  attr.recv_flags = recv_flags;
  attr.request_flags = request_flags;
}

DatSide::~DatSide() {
  ia->close(true);
}

std::shared_ptr<Evd> DatSide::evd(int length, Flags streams) {
  std::shared_ptr<Evd> made;
  EXPECT_EQ(Evd::create(*ia, length, nullptr, streams, made), Result::kSuccess);
  return made;
}

std::shared_ptr<Ep> DatSide::make_ep(const std::shared_ptr<Srq>& srq) {
  std::shared_ptr<Ep> made;
  EXPECT_EQ(Ep::create(*ia, {pz, recv, request, connect, srq}, attr, made), Result::kSuccess);
  return made;
}

LmrTriplet DatSide::at(std::size_t offset, std::size_t length) const {
  return {reinterpret_cast<std::uint64_t>(buffer.data() + offset), length, lmr->context()};
}

Event DatSide::next(Evd& from) {
  Event event;
  int more = 0;
  EXPECT_EQ(from.wait(kPatience, 1, event, more), Result::kSuccess);
  return event;
}

Result dequeue(Evd& from, Event& event) {
  const Lock lock(from.ia().mutex());
  const Event* first = nullptr;
  const auto result = from.look(first);
  if (result != Result::kSuccess) return result;
  event = *first;
  event.srq.reset();
  from.took();
  return result;
}

std::span<const std::byte> text(const char* value) {
  return {reinterpret_cast<const std::byte*>(value), std::strlen(value)};
}

std::shared_ptr<Cr> DatPair::next_request() {
  const auto request = DatSide::next(*server.requests);
  EXPECT_EQ(request.number, EventNumber::kConnectionRequest);
  if (request.cr == nullptr) return nullptr;
  return std::static_pointer_cast<Cr>(static_cast<Object*>(request.cr)->shared_from_this());
}

void DatPair::connect() {
  if (!server.ep) server.ep = server.make_ep();
  if (!client.ep) client.ep = client.make_ep();
  connect(client.ep, server.ep);
}

void DatPair::connect(const std::shared_ptr<Ep>& from, const std::shared_ptr<Ep>& to) {
  if (!psp || psp->freed()) {
    ASSERT_EQ(ServicePoint::create_psp(*server.ia, 3000, server.requests, psp), Result::kSuccess);
  }
  ASSERT_EQ(from->connect("127.0.0.1", 0, 3000, kPatience, text("who is there")), Result::kSuccess);
  cr = next_request();
  ASSERT_TRUE(cr);
  ASSERT_EQ(cr->accept(to, text("come in")), Result::kSuccess);
  ASSERT_EQ(DatSide::next(*client.connect).number, EventNumber::kEstablished);
  ASSERT_EQ(DatSide::next(*server.connect).number, EventNumber::kEstablished);
}

}  // namespace stp::test

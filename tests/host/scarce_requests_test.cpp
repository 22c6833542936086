// SPDX-License-Identifier: BSD-3-Clause
// If the system refuses memory while a request of a program is answered, or when what it causes is
// written down, only that request fails, whichever allocation it is. When the program has gone,
// nothing of it is left.
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "stp/base/scarce_memory.h"
#include "tests/host/service_fixture.h"
#include "tests/host/usage.h"
#include "tests/stp/scarce_memory/failing_allocations.h"
#include "tools/stpd/workers.h"

namespace stp::host {
namespace {

using ipc::RequestKind;
using test::allocations_left;

class ScarceRequests : public ServiceFixture {
 protected:
  static constexpr uid_t kUser = 4'711;

  ScarceRequests() {
    test::some_is_kept = true;
    service.drive()->offer_memory([](uid_t, std::shared_ptr<void> thing) { return thing; });
    for (const auto gone : {alice, bob}) service.drive()->remove_client(gone);
    turn();
  }
  ~ScarceRequests() override { test::some_is_kept = false; }

  // While it exists, allocations of this thread count.
  struct Counted {
    explicit Counted(long& left) : of(left) { allocations_left = of; }
    ~Counted() {
      of = allocations_left;
      allocations_left = -1;
    }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    long& of;
  };

  // Asks again if there was no memory.
  bool has(const Request& request, const std::vector<MutableBytes>& pieces = {}) {
    const auto message = message_of(request);
    for (int i = 0; i < 2; ++i) {
      attachments = {};
      attachments.pieces = pieces;
      ipc::ReplyMessage answer;
      {
        const auto turn = service.drive();
        const Counted counted(left);
        turn->handle(client, message, attachments, answer);
      }
      reply = reply_of(answer);
      if (reply.result != -ENOMEM) break;
      ++refused;
    }
    some_turns(2);
    return reply.result == 0;
  }
  bool has(RequestKind kind, EndpointId endpoint = kNoneId) {
    auto request = request_for(kind);
    request.endpoint = endpoint;
    request.uport = kUport;
    request.mac = port->info().mac.to_u64();
    request.config = usual_config();
    return has(request);
  }
  void some_turns(int times) {
    for (int i = 0; i < times; ++i) {
      const auto driving = service.drive();
      const Counted counted(left);
      driving->poll();
    }
  }
  bool map(EndpointId endpoint, RegionId& region) {
    auto request = request_for(RequestKind::kMap);
    request.endpoint = endpoint;
    request.direction = static_cast<std::uint32_t>(Direction::kReceive);
    const bool mapped = has(request, {destination});
    region = reply.region;
    return mapped;
  }
  bool say_mapped(VcId vc) {
    auto request = request_for(RequestKind::kMapped);
    request.vc = vc;
    return has(request);
  }
  // A Port, a connection to itself, and memory with an Mx for it.
  bool live() {
    std::string why;
    client = service.drive()->add_client({.pid = 1, .uid = kUser, .groups = {}}, false, why);
    if (client == 0 || !has(RequestKind::kHello) || !say_mapped(kNoneId)) return false;
    auto connectionless = request_for(RequestKind::kOpenEndpoint);
    connectionless.config = usual_config();
    connectionless.config.connectionless = 1;
    if (!has(connectionless) || !has(RequestKind::kOpenPort, reply.endpoint)) return false;
    if (!has(RequestKind::kOpenEndpoint)) return false;
    const auto listener = reply.endpoint;
    if (!has(RequestKind::kListen, listener) || !has(RequestKind::kOpenEndpoint)) return false;
    const auto caller = reply.endpoint;
    if (!has(RequestKind::kConnect, caller) || !say_mapped(reply.vc)) return false;
    some_turns(5);
    if (!has(RequestKind::kAccept, listener)) return false;
    const auto accepted = reply.vc;
    if (!say_mapped(accepted)) return false;
    RegionId region = kNoneId;
    if (!map(listener, region)) return false;
    auto request = request_for(RequestKind::kAllocMx);
    request.region = region;
    request.vc = accepted;
    request.permissions = permit::kData;
    return has(request) && ends(caller, listener, accepted, region);
  }
  // Nothing that ends something is refused.
  bool ends(EndpointId caller, EndpointId listener, VcId accepted, RegionId region) {
    const auto before = refused;
    auto mx = request_for(RequestKind::kFreeMx);
    mx.endpoint = listener;
    mx.mx = reply.mx;
    auto close = request_for(RequestKind::kClose);
    close.vc = accepted;
    close.at_once = 1;
    auto unmap = request_for(RequestKind::kUnmap);
    unmap.region = region;
    const bool ended = has(mx) && has(unmap) && has(close) && has(RequestKind::kUnlisten, listener);
    some_turns(5);
    EXPECT_EQ(has(RequestKind::kCloseEndpoint, listener), true) << reply.result;
    EXPECT_EQ(has(RequestKind::kCloseEndpoint, caller), false) << "its connection is not closed";
    EXPECT_EQ(refused, before);
    return ended;
  }

  ClientId client = 0;
  long left = -1;
  int refused = 0;
};

TEST_F(ScarceRequests, LeaveNothingBehindWhicheverAllocationFails) {
  int all = 0;
  for (long failing = 0;; ++failing) {
    left = failing;
    refused = 0;
    ASSERT_TRUE(live()) << "allocation " << failing << ": " << reply.result;
    const bool failed = left < 0;
    all += refused;
    service.drive()->remove_client(client);
    some_turns(20);
    left = -1;
    EXPECT_EQ(service.drive()->client_count(), 0U) << "allocation " << failing;
    EXPECT_EQ(users(*budgets), 0U) << "allocation " << failing;
    if (!failed || HasFailure()) break;
  }
  EXPECT_GT(all, 20);
}

// As a request does that finds no memory half way: stpd ended.
TEST(ScarceRelease, IsGivenToTheThreadsOfItsUserAllTheSame) {
  const auto workers = std::make_shared<stpd::UserWorkers>();
  std::promise<void> gone;
  auto thing = stpd::UserWorkers::guard(workers, 4'711, std::shared_ptr<void>(&gone, [](void* of) {
                                          static_cast<std::promise<void>*>(of)->set_value();
                                        }));
  test::some_is_kept = true;
  {
    const Refusable request;
    allocations_left = 0;
    thing.reset();
    allocations_left = -1;
  }
  test::some_is_kept = false;
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

}  // namespace
}  // namespace stp::host

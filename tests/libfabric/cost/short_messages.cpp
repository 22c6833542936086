// SPDX-License-Identifier: BSD-3-Clause
// usage: libfabric_short_messages HOW COUNT
// Sends COUNT messages of 8 bytes between two endpoints of FI_EP_RDM on the link `loop`, one after
// the other, each to a receive that waits for it. HOW: send, inject, or idle, which polls only.
// Prints how often it has polled, also while they connected. For short_messages.sh.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/libfabric/rdm_fixture.h"

namespace stp::test {
namespace {

struct Pair {
  explicit Pair(const Info& info) : a(info), b(info) {}

  RdmNode a, b;
  fi_addr_t to_b = a.insert(b.name()), from_a = b.insert(a.name());
  std::uint64_t polls = 0;
  char bytes[8] = {}, landed[8] = {};

  // True: there is a completion.
  bool poll(fid_cq* from) {
    fi_cq_tagged_entry entry{};
    ++polls;
    const auto result = fi_cq_read(from, &entry, 1);
    if (result != 1 && result != -FI_EAGAIN) std::abort();
    return result == 1;
  }
  void message(bool inject) {
    if (fi_trecv(b.ep.get(), landed, sizeof landed, nullptr, from_a, 1, 0, this) != 0) std::abort();
    auto* const ep = a.ep.get();
    for (;;) {
      const auto result = inject ? fi_tinject(ep, bytes, sizeof bytes, to_b, 1)
                                 : fi_tsend(ep, bytes, sizeof bytes, nullptr, to_b, 1, this);
      if (result == 0) break;
      if (result != -FI_EAGAIN) std::abort();
      poll(a.tx.get());
    }
    for (bool sent = inject, received = false; !sent || !received;) {
      sent = poll(a.tx.get()) || sent;
      received = received || poll(b.rx.get());
    }
  }
};

}  // namespace

[[gnu::noinline]] void run(Pair& pair, std::string_view how, unsigned long count) {
  for (unsigned long i = 0; i < count; ++i)
    if (how == "idle")
      pair.poll(pair.b.rx.get());
    else
      pair.message(how == "inject");
}

}  // namespace stp::test

int main(int count, char** arguments) {
  using namespace stp::test;
  if (count != 3) return 2;
  Info info;
  if (get_info(nullptr, nullptr, 0, rdm_hints(), info) != 0) return 1;
  Pair pair(info);
  const auto wanted = std::strtoul(arguments[2], nullptr, 10);
  run(pair, "send", 16);  // they connect
  run(pair, arguments[1], wanted);
  std::printf("polls %llu\n", static_cast<unsigned long long>(pair.polls));
  return testing::Test::HasFailure() ? 1 : 0;
}

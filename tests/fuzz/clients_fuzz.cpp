// SPDX-License-Identifier: BSD-3-Clause
// One to three clients of stpd's socket. The fuzzer chooses their messages, descriptors, rings and
// behaviour; as root they are different users. An honest pair beside them keeps working, and
// nothing of the clients is left at the end.
#include <sys/syscall.h>

#include <list>
#include <thread>

#include "tests/fuzz/byte_code.h"
#include "tests/stpd/hostile_client.h"
#include "tests/stpd/served_pair.h"

namespace {

constexpr uid_t kFirstUser = 65'530;

// stpd sees a connection from a thread with another uid as one of another user.
template <typename Make>
void as_user(uid_t uid, Make&& make) {
  std::thread([&] {
    if (::geteuid() == 0) ::syscall(SYS_setresuid, uid, uid, uid);
    make();
  }).join();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace stp;
  stpd::ServedPair pair;
  std::filesystem::permissions(pair.directory.path(), std::filesystem::perms(0711));
  std::filesystem::permissions(pair.path, std::filesystem::perms(0666));
  fuzz::ByteCode code(Bytes(reinterpret_cast<const std::byte*>(data), size));
  const auto dice = [&] { return std::uint64_t{code.number()}; };
  {
    std::list<stpd::Hostile> clients;
    for (auto count = 1 + dice() % 3; count > 0; --count)
      as_user(kFirstUser + static_cast<uid_t>(count),
              [&] { clients.emplace_back(pair.path, dice); });
    std::erase_if(clients, [](auto& client) { return !client.greet(); });
    for (auto steps = dice() % 64; steps > 0 && !clients.empty(); --steps) {
      const auto which = std::next(clients.begin(), static_cast<long>(dice() % clients.size()));
      which->step();
      if (which->gone()) clients.erase(which);
    }
  }
  EXPECT_TRUE(pair.talks(1));
  EXPECT_TRUE(pair.is_alone());
  return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
// hostile_attacker MOVE SOCKET SECONDS [--group FILE] [--uid N] [--seed N] [--uport N] [--most N]
//                  [--rate N]
// One hostile program. Exit status: 0 done, 3 a breach, 77 not possible on this system.
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "libst/os/file_limit.h"
#include "tests/hostile/cannot.h"
#include "tests/hostile/moves.h"

namespace stp::hostile {

void say_ready() {
  std::printf("ready\n");
  std::fflush(stdout);
}

void say(const std::string& name, std::uint64_t count) {
  std::printf("%s=%llu\n", name.c_str(), static_cast<unsigned long long>(count));
  std::fflush(stdout);
}

void rest(const Attack& attack) {
  while (!attack.over()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace stp::hostile

int main(int argc, char** argv) {
  using namespace stp::hostile;
  const std::map<std::string, void (*)(Attack&)> moves{
      {"spin", spin},           {"busy", busy},
      {"refill", refill},       {"stream", stream},
      {"spoil", spoil},         {"holes", holes},
      {"punch", punch},         {"descriptors", descriptors},
      {"fuse", fuse},           {"deaf", deaf},
      {"sharing", sharing},     {"hoard", hoard},
      {"mappings", mappings},   {"places", places},
      {"forked", forked},       {"absent", absent},
      {"lend", lend},           {"idle", idle},
      {"forge", forge},         {"noise", noise},
      {"strangers", strangers}, {"contend", contend},
      {"huge", huge},           {"flood", flood},
      {"leave", leave},         {"crowd", crowd},
      {"datagrams", datagrams}, {"sources", sources},
      {"reports", reports},     {"fragments", fragments},
      {"vacate", vacate},       {"largest", largest},
      {"frames", frames},       {"replays", replays}};
  const auto move = argc > 3 ? moves.find(argv[1]) : moves.end();
  if (move == moves.end() || argc % 2 != 0) {
    std::fprintf(stderr,
                 "usage: hostile_attacker MOVE SOCKET SECONDS [--group FILE] [--uid N] [--seed N] "
                 "[--uport N] [--most N] [--rate N] [--family 4|6]; moves:");
    for (const auto& [name, function] : moves) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPIPE, SIG_IGN);
  stp::os::raise_file_limit();
  Attack attack{.socket = argv[2],
                .until = std::chrono::steady_clock::now() +
                         std::chrono::milliseconds(static_cast<int>(std::atof(argv[3]) * 1'000)),
                .dice = std::mt19937_64(1),
                .uport = 20'000};
  // Joins the group before it changes its user, which may not do it.
  for (int i = 4; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) != "--group") continue;
    if (std::ofstream(argv[i + 1]) << ::getpid() << std::flush) continue;
    std::perror(argv[i + 1]);
    return 77;
  }
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const auto value = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--seed") attack.dice.seed(value);
    if (option == "--uport") attack.uport = static_cast<std::uint32_t>(value);
    if (option == "--most") attack.most = value;
    if (option == "--rate") attack.rate = value;
    if (option == "--family") attack.ipv6 = value == 6;
    if (option == "--uid") {
      const auto uid = static_cast<uid_t>(value);
      if (::setresgid(uid, uid, uid) != 0 || ::setresuid(uid, uid, uid) != 0) {
        std::perror("setresuid");
        return 77;
      }
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of the user resets it
    }
  }
  try {
    move->second(attack);
    std::printf("done\n");
    return 0;
  } catch (const Breach& breach) {
    std::printf("BREACH: %s\n", breach.what());
    return 3;
  } catch (const Cannot& cannot) {
    std::printf("CANNOT: %s\n", cannot.what());
    return 77;
  }
}

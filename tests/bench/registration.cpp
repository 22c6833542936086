// SPDX-License-Identifier: BSD-3-Clause
// stp-registration [ROUNDS]: how long it takes to register the same memory again and again on the
// link of STP_LINK, and to release it, without and with the cache of registrations. Medians of the
// clock and of the CPU time of this thread. On a busy machine the CPU time says more.
#include <stp/managed.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/command_line.h"

namespace stp::bench {
namespace {

void check(int result, const char* what) {
  if (result < 0) throw std::runtime_error(std::string(what) + ": " + st_strerror(result));
}

double nanoseconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The durations of one step in all rounds.
class Step {
 public:
  template <typename Act>
  void measure(Act&& act) {
    const auto cpu = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    const auto begin = nanoseconds(CLOCK_MONOTONIC);
    act();
    clock_.push_back(nanoseconds(CLOCK_MONOTONIC) - begin);
    cpu_.push_back(nanoseconds(CLOCK_THREAD_CPUTIME_ID) - cpu);
  }
  void print() { std::printf(" %9.2f us (CPU %8.2f)", median(clock_), median(cpu_)); }

 private:
  static double median(std::vector<double>& of) {
    const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
    std::nth_element(of.begin(), middle, of.end());
    return *middle / 1e3;
  }
  std::vector<double> clock_, cpu_;
};

void measure(stm_domain_t domain, std::vector<unsigned char>& bytes, std::size_t size,
             unsigned rounds) {
  Step registering, releasing;
  for (unsigned i = 0; i <= rounds; ++i) {
    Step first;  // makes the pages, and fills the cache
    auto& in = i == 0 ? first : registering;
    auto& out = i == 0 ? first : releasing;
    stm_memory_t memory = nullptr;
    in.measure([&] {
      check(stm_memory_register(domain, bytes.data(), size, STM_LOCAL_WRITE, &memory),
            "stm_memory_register");
    });
    out.measure([&] { check(stm_memory_release(memory), "stm_memory_release"); });
  }
  registering.print();
  std::printf(", release");
  releasing.print();
}

void run(unsigned rounds) {
  for (const bool cached : {false, true}) {
    ::setenv("STP_REGISTRATION_CACHE", cached ? "1" : "0", 1);
    stm_domain_t domain = nullptr;
    check(stm_domain_open(nullptr, &domain), "stm_domain_open");
    for (const std::size_t kib : {4UL, 64UL, 1'024UL, 5'120UL}) {
      std::vector<unsigned char> bytes(kib << 10);
      std::printf("%s cache, %5zu KiB: register", cached ? "with   " : "without", kib);
      measure(domain, bytes, bytes.size(), rounds);
      std::printf("\n");
    }
    check(stm_domain_close(domain), "stm_domain_close");
  }
}

}  // namespace
}  // namespace stp::bench

int main(int count, char** arguments) {
  constexpr const char* kUsage = "usage: stp-registration [ROUNDS (1 to 1000000)]\n";
  stp::bench::hold_to(kUsage, count, arguments);
  const auto rounds = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 1'000;
  if (rounds == 0 || rounds > 1'000'000 || count > 2) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  try {
    stp::bench::run(static_cast<unsigned>(rounds));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "stp-registration: %s\n", failure.what());
    return 1;
  }
  return 0;
}

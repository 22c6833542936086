// SPDX-License-Identifier: BSD-3-Clause
// CPUs that this machine need not have: the functions that ask the kernel are replaced.
#include "dpdk_port/link/cpus.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/dpdk_port/link_pair.h"

namespace stp::port {
namespace {

enum class Machine {
  kThis,
  kHigh,  // the process may run on CPU 200 only
  kMany,  // the kernel has 2048 CPUs, the process may run on 0 and 1500
};
Machine machine = Machine::kThis;

// -1: `machine` is this one. Else an error number, or 0.
int answer(std::size_t size, cpu_set_t* set) {
  if (machine == Machine::kThis) return -1;
  if (machine == Machine::kMany && size < 256) return EINVAL;
  CPU_ZERO_S(size, set);
  if (machine == Machine::kHigh) {
    CPU_SET_S(200, size, set);
  } else {
    CPU_SET_S(0, size, set);
    CPU_SET_S(1'500, size, set);
  }
  return 0;
}

}  // namespace
}  // namespace stp::port

extern "C" [[gnu::visibility("default")]] int sched_getaffinity(pid_t process, size_t size,
                                                                cpu_set_t* set) noexcept {
  const int result = stp::port::answer(size, set);
  if (result < 0) {
    const long got = ::syscall(SYS_sched_getaffinity, process, size, set);
    if (got >= 0) std::memset(reinterpret_cast<char*>(set) + got, 0, size - std::size_t(got));
    return got < 0 ? -1 : 0;
  }
  errno = result;
  return result == 0 ? 0 : -1;
}

extern "C" [[gnu::visibility("default")]] int pthread_getaffinity_np(pthread_t, size_t size,
                                                                     cpu_set_t* set) noexcept {
  return ::sched_getaffinity(0, size, set) == 0 ? 0 : errno;
}

// A thread may be put onto CPUs that only the changed machine has.
extern "C" [[gnu::visibility("default")]] int pthread_setaffinity_np(
    pthread_t, size_t size, const cpu_set_t* set) noexcept {
  if (stp::port::machine != stp::port::Machine::kThis) return 0;
  return ::syscall(SYS_sched_setaffinity, 0, size, set) == 0 ? 0 : errno;
}

namespace stp::port {
namespace {

class ChangedMachine {
 public:
  explicit ChangedMachine(Machine to) { machine = to; }
  ~ChangedMachine() { machine = Machine::kThis; }
  ChangedMachine(const ChangedMachine&) = delete;
  ChangedMachine& operator=(const ChangedMachine&) = delete;
};

TEST(Cpus, AreTheOnesOfAKernelWithMoreThan1024) {
  const ChangedMachine many(Machine::kMany);
  EXPECT_EQ(usable_cpus(), (std::vector<unsigned>{0, 1'500}));
  EXPECT_EQ(usable_cpu_count(), 2U);
}

TEST(Cpus, AThreadStaysWhereItIsTold) {
  const auto before = usable_cpus();
  ASSERT_FALSE(before.empty());
  EXPECT_EQ(stay_on_cpus({before.back()}), 0);
  EXPECT_EQ(usable_cpus(), std::vector<unsigned>{before.back()});
  EXPECT_EQ(stay_on_cpus(before), 0);
  EXPECT_EQ(usable_cpus(), before);
  EXPECT_EQ(stay_on_cpus({}), EINVAL);
  EXPECT_EQ(stay_on_cpus({kMostCpus}), EINVAL);
}

// Opens a link in a new process, which ends with 0 if this writes nothing on stdout.
void open_link_and_exit(Machine on) {
  std::fflush(stdout);  // what GoogleTest has written
  const int out = ::memfd_create("stdout", MFD_CLOEXEC);
  if (out < 0 || ::dup2(out, STDOUT_FILENO) < 0) std::exit(2);
  const ChangedMachine changed(on);
  std::string error;
  const auto port = open_link("vdev:net_ring0", error);
  std::fflush(stdout);
  const bool silent = ::lseek(out, 0, SEEK_END) == 0;
  if (!port) std::fprintf(stderr, "%s\n", error.c_str());
  std::quick_exit(port && silent ? 0 : 1);
}

TEST(CpusDeathTest, ALinkOpensWhereverTheProcessMayRun) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(open_link_and_exit(Machine::kHigh), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(open_link_and_exit(Machine::kMany), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace stp::port

// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/commands.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace stp::perf {
namespace {

// Returns the number of copies between two readings of the clock: about ten microseconds of work.
std::uint64_t batch_of(std::uint64_t size) {
  return std::max<std::uint64_t>((std::uint64_t{1} << 18) / size, 1);
}

class Copier {
 public:
  Copier(std::uint64_t size, std::uint64_t working_set)
      : size_(size), from_(working_set), to_(working_set) {
    std::fill(from_.begin(), from_.end(), std::byte{0x5a});
  }
  void copy() {
    if (at_ + size_ > from_.size()) at_ = 0;
    std::memcpy(to_.data() + at_, from_.data() + at_, size_);
    // Keeps the compiler from removing the copy, which nobody reads.
    asm volatile("" : : "r"(to_.data()) : "memory");
    at_ += size_;
  }

 private:
  std::uint64_t size_, at_ = 0;
  std::vector<std::byte> from_, to_;
};

}  // namespace

Result measure_copy(std::uint64_t size, std::uint64_t working_set, const Pace& pace,
                    const UsageMeter& usage) {
  Copier copier(size, std::max(size, working_set));
  const auto batch = batch_of(size);
  const auto run = [&](Stretch&& stretch) {
    std::uint64_t copies = 0;
    do {
      for (std::uint64_t i = 0; i < batch; ++i) copier.copy();
      copies += batch;
    } while (!stretch.past(copies));
    Result result;
    result.seconds = stretch.seconds();
    result.operations = copies;
    return result;
  };
  run(Stretch(pace.warm_up, pace.quiet, "warming up"));
  const auto before = usage.now();
  auto result = run(Stretch(pace.measure, pace.quiet, "measuring"));
  result.here = usage.now() - before;
  result.what = "memcpy";
  result.operation = "memcpy";
  result.size = size;
  return result;
}

}  // namespace stp::perf

// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/pace.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>

namespace stp::perf {
namespace {

constexpr auto kBetweenWords = std::chrono::seconds(1);

}  // namespace

Stretch::Stretch(std::chrono::duration<double> length, bool quiet, const char* name)
    : end_(begin_ + std::chrono::duration_cast<Clock::duration>(length)),
      next_word_(begin_ + kBetweenWords),
      name_(name),
      speaks_(!quiet && ::isatty(STDERR_FILENO) == 1) {}

Stretch::~Stretch() {
  if (has_spoken_) std::fputs("\r\033[K", stderr);
}

bool Stretch::past(std::uint64_t operations) {
  const auto now = Clock::now();
  if (speaks_ && now >= next_word_) say(operations, now);
  return now >= end_;
}

double Stretch::seconds() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count();
}

void Stretch::say(std::uint64_t operations, Clock::time_point now) {
  next_word_ = now + kBetweenWords;
  has_spoken_ = true;
  std::fprintf(stderr, "\r\033[K%s: %.0f of %.0f s, %" PRIu64 " operations", name_, seconds(),
               std::chrono::duration<double>(end_ - begin_).count(), operations);
}

}  // namespace stp::perf

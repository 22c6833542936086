// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/histogram.h"

#include <algorithm>
#include <boost/histogram.hpp>
#include <cmath>
#include <vector>

namespace stp::perf {
namespace {

namespace bh = boost::histogram;
// From 10 ns to 100 s. Each bin is half a percent wider than the one before.
constexpr double kFrom = 0.01, kTo = 1e8;
constexpr unsigned kBins = 4606;

}  // namespace

struct Histogram::Bins {
  using Axis = bh::axis::regular<double, bh::axis::transform::log>;
  bh::histogram<std::tuple<Axis>, bh::dense_storage<std::uint64_t>> counts =
      bh::make_histogram_with(bh::dense_storage<std::uint64_t>(), Axis(kBins, kFrom, kTo));
};

Histogram::Histogram() : bins_(std::make_unique<Bins>()) {}
Histogram::~Histogram() = default;

void Histogram::add(std::chrono::nanoseconds time) {
  const Time value = time;
  bins_->counts(value.count());
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ += value;
  ++count_;
}

Histogram::Time Histogram::mean() const {
  return count_ == 0 ? Time{} : sum_ / static_cast<double>(count_);
}

Histogram::Time Histogram::percentile(double percent) const {
  if (count_ == 0) return {};
  const auto rank = std::max(std::ceil(static_cast<double>(count_) * percent / 100), 1.0);
  // The smallest and the largest value are known exactly, and the outermost bins have no centre.
  if (rank <= 1) return min_;
  if (rank >= static_cast<double>(count_)) return max_;
  std::uint64_t seen = 0;
  for (auto&& bin : bh::indexed(bins_->counts, bh::coverage::all)) {
    seen += *bin;
    if (static_cast<double>(seen) >= rank) return std::clamp(Time(bin.bin(0).center()), min_, max_);
  }
  return max_;
}

}  // namespace stp::perf

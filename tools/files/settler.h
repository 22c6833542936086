// SPDX-License-Identifier: BSD-3-Clause
// Settles batches in a thread of its own, one at a time, while the next one fills: nobody waits for
// the disk meanwhile.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <memory>

#include "tools/files/batch.h"

namespace stp::files {

class Settler {
 public:
  // `settled` is called from that thread when a batch can be collected.
  explicit Settler(std::function<void()> settled) : settled_(std::move(settled)) {}
  ~Settler();  // waits for the batch
  Settler(const Settler&) = delete;
  Settler& operator=(const Settler&) = delete;

  // Collect the one before first.
  void begin(std::unique_ptr<Batch> batch);
  // A batch was begun and not collected.
  [[nodiscard]] bool is_busy() const { return batch_ != nullptr; }
  // The batch, if it is settled.
  std::unique_ptr<Batch> collect();
  // The batch, as soon as it is settled. nullptr: there is none.
  std::unique_ptr<Batch> wait();

 private:
  const std::function<void()> settled_;
  std::unique_ptr<Batch> batch_;
  std::atomic<bool> done_{false};
  std::future<void> thread_;
};

}  // namespace stp::files

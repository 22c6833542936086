// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/settler.h"

#include <system_error>

namespace stp::files {

Settler::~Settler() {
  if (thread_.valid()) thread_.wait();
}

void Settler::begin(std::unique_ptr<Batch> batch) {
  batch_ = std::move(batch);
  done_ = false;
  try {
    thread_ = std::async(std::launch::async, [this] {
      batch_->settle();
      done_ = true;
      settled_();
    });
  } catch (const std::system_error&) {  // no thread is to be had
    batch_->settle();
    done_ = true;
  }
}

std::unique_ptr<Batch> Settler::collect() {
  return done_ ? wait() : nullptr;
}

std::unique_ptr<Batch> Settler::wait() {
  if (thread_.valid()) thread_.get();
  done_ = false;
  return std::move(batch_);
}

}  // namespace stp::files

// SPDX-License-Identifier: BSD-3-Clause
// One program for each NIC. VFIO sees to it; uio gives a NIC to as many as ask, and the last one
// resets it under the others.
#pragma once

#include <memory>
#include <string>

namespace stp::port {

class PciOwner {
 public:
  // Owns the NIC for as long as the object lives, and among the programs of a network namespace, by
  // a lock of that file: one of the NIC's in sysfs that only root may open. Not of /dev/uio0: who
  // closes that stops the NIC. nullptr: `error` names the program that has it.
  static std::unique_ptr<PciOwner> claim(const std::string& address, const std::string& file,
                                         std::string& error);
  ~PciOwner();
  PciOwner(const PciOwner&) = delete;
  PciOwner& operator=(const PciOwner&) = delete;

 private:
  explicit PciOwner(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace stp::port

// SPDX-License-Identifier: BSD-3-Clause
// Ensures one program per NIC. VFIO enforces this itself; uio gives a NIC to any number of
// programs, and the last one resets it under the others.
#pragma once

#include <memory>
#include <string>

namespace stp::port {

class PciOwner {
 public:
  // Owns the NIC while the object lives, among the programs of a network namespace, by a lock on
  // `file`: a file of the NIC in sysfs that only root may open. Not /dev/uio0, because closing it
  // stops the NIC. nullptr: `error` names the program that owns it.
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

// SPDX-License-Identifier: BSD-3-Clause
// DPDK's Environment Abstraction Layer: one per process, started when the first device is opened
// and there until the process ends, since it cannot be started twice.
#pragma once

#include <functional>
#include <string>

namespace stp::port {

// `pci_address`: the NIC that is about to be opened; "" for virtual devices, which a NIC cannot
// follow later: without one the PCI bus is not looked at. `megabytes`: of memory, for all devices
// of the process, where there are no hugepages.
bool start_eal(const std::string& pci_address, unsigned megabytes, std::string& error);

// False: this process began without one. `error` says so.
bool may_open_nics(std::string& error);

// Whether DPDK has hugepages, or would have, if it started now.
bool has_hugepages();

// Runs it on the thread where DPDK handles interrupts, and waits: nothing it touches is handled
// meanwhile.
void run_on_interrupt_thread(const std::function<void()>& work);

// The first error DPDK has spoken of since last asked, for messages; "" for none. What follows the
// first is usually a consequence of it.
std::string take_dpdk_message();

// Whether enable_telemetry() came before EAL started.
bool telemetry_enabled();

}  // namespace stp::port

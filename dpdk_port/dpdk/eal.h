// SPDX-License-Identifier: BSD-3-Clause
// DPDK's Environment Abstraction Layer: one per process. It starts with the first device and runs
// until the process ends, because it cannot be restarted.
#pragma once

#include <functional>
#include <string>

namespace stp::port {

// Describes what a call of DPDK that returned `result` failed to do: in DPDK's words if it has said
// any since take_dpdk_message(), or in better ones where those do not help.
std::string failure(const std::string& what, int result);

// `pci_address`: the NIC about to be opened; "" for virtual devices. With "" EAL does not scan the
// PCI bus, so no NIC can be opened later. `megabytes`: memory for all devices of the process if
// there are no hugepages.
bool start_eal(const std::string& pci_address, unsigned megabytes, std::string& error);

// False: EAL started without a NIC; `error` says so.
bool may_open_nics(std::string& error);

// Whether DPDK has hugepages, or would have them if it started now.
bool has_hugepages();

// Runs `work` on DPDK's interrupt thread and waits for it: no interrupt is handled meanwhile.
void run_on_interrupt_thread(const std::function<void()>& work);

// DPDK's first error message since the last call; "": none. Later messages are usually consequences
// of the first.
std::string take_dpdk_message();

// Where EAL makes a directory for the files of each process, as its documentation says: /tmp/dpdk.
std::string parent_of_runtime_directories();

// Whether enable_telemetry() came before EAL started.
bool telemetry_enabled();
// EAL has started.
bool eal_runs();

}  // namespace stp::port

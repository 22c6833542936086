// SPDX-License-Identifier: BSD-3-Clause
// stpctl devices: lists what could be a link on this machine. It asks no daemon and opens no
// device.
#pragma once

#include <string>

#include "dpdk_port/link/inventory.h"
#include "tools/stpctl/options.h"

namespace stp::stpctl {

void devices(const Options& options);

std::string text_of(const port::Inventory& inventory);
std::string json_of(const port::Inventory& inventory);

}  // namespace stp::stpctl

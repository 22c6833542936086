// SPDX-License-Identifier: BSD-3-Clause
// Describes trouble of a link in the text of an error that it may have caused: for example, that
// frames of some length cannot be sent.
#pragma once

#include <string>

#include "libst/client/backend.h"

namespace stp::client {

// "": no known trouble. `peer`: leaves out what concerns other stations only.
std::string trouble_of(Backend& backend, const MacAddr& peer = {});
// Fails with -ETIMEDOUT: no answer has come in time. If the link has trouble, the text says so.
int fail_in_time(Backend& backend, const MacAddr& peer = {});

}  // namespace stp::client

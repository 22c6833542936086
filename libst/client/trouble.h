// SPDX-License-Identifier: BSD-3-Clause
// Describes trouble of a link for the text of an error it may cause: for example, that frames of
// some length do not leave.
#pragma once

#include <string>

#include "libst/client/backend.h"

namespace stp::client {

// "": no known trouble.
std::string trouble_of(Backend& backend);
// Fails with -ETIMEDOUT: nobody has answered in time. The text names the link's trouble.
int fail_in_time(Backend& backend);

}  // namespace stp::client

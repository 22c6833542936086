// SPDX-License-Identifier: BSD-3-Clause
// What troubles a link, for the text of an error that may come of it: that frames of some length do
// not leave, say.
#pragma once

#include <string>

#include "libst/client/backend.h"

namespace stp::client {

// "": nothing, as far as is known.
std::string trouble_of(Backend& backend);
// Nobody has answered in time: -ETIMEDOUT, whose text names what troubles the link.
int fail_in_time(Backend& backend);

}  // namespace stp::client

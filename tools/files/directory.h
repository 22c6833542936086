// SPDX-License-Identifier: BSD-3-Clause
// The receiver's directory and what lies below it. No symbolic link below it is ever followed, so
// that nothing is written outside, whatever a sender has put there before. Functions give 0 or a
// negative errno.
#pragma once

#include <span>
#include <string>

#include "libst/os/unique_fd.h"
#include "tools/files/metadata.h"

namespace stp::files {

// Opens the directory that `names` lead to, and makes what is missing on the way.
int open_below(const std::string& root, std::span<const std::string> names,
               service::UniqueFd& directory);

// Gives an open file or directory its permissions, less what the umask of this process takes away,
// and, where they are kept, its times.
int apply(int fd, const Metadata& metadata);

// Makes or replaces a symbolic link; a directory is not replaced (-EISDIR).
int make_link(int directory, const std::string& name, const Metadata& metadata);

// -EISDIR where a directory has that name.
int refuse_directory(int directory, const std::string& name);

}  // namespace stp::files

// SPDX-License-Identifier: BSD-3-Clause
// Small files that came in packs, each whole. Two threads write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tools/files/batch.h"
#include "tools/files/directory.h"
#include "tools/files/helper.h"
#include "tools/files/metadata.h"
#include "tools/files/note.h"
#include "tools/files/pack.h"

namespace stp::files {

struct SmallFile {
  Packed packed;
  const Metadata* metadata = nullptr;
  const std::string* name = nullptr;
  Directory directory;
  Note result;     // a reason at the start: not to be written
  WholeFile file;  // if there is no reason in `result`
};

class SmallFiles {
 public:
  // Each holds a descriptor until it is in a batch.
  void write(std::span<SmallFile> files);

 private:
  Helper helper_;
};

}  // namespace stp::files

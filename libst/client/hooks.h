// SPDX-License-Identifier: BSD-3-Clause
// The functions that a program has set to learn of its calls: st_set_error_handler, st_set_log.
#pragma once

#include "libst/include/stp/st.h"

namespace stp::client {

struct Hook {
  st_hook_t* function = nullptr;
  void* context = nullptr;
};

enum class HookKind { kError, kLog };

void set_hook(HookKind kind, Hook hook);
// A call is over. `per_frame`: one of those that move frames, of which only errors are told, and no
// outcome that a loop around them expects. Cheap where no hook is set.
void call_over(const char* call, int result, bool per_frame);

}  // namespace stp::client

// SPDX-License-Identifier: BSD-3-Clause
// The functions that a program sets to observe its calls: st_set_error_handler, st_set_log.
#pragma once

#include "libst/include/stp/st.h"

namespace stp::client {

struct Hook {
  st_hook_t* function = nullptr;
  void* context = nullptr;
};

enum class HookKind { kError, kLog };

void set_hook(HookKind kind, Hook hook);
// Reports the end of a call. `per_frame`: a call that moves frames; only its errors are reported,
// except results that a loop around such calls expects. Cheap if no hook is set.
void call_over(const char* call, int result, bool per_frame);

}  // namespace stp::client

// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/live_bytes.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STP_SANITIZER_HEAP
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STP_SANITIZER_HEAP
#endif
#endif

#ifdef STP_SANITIZER_HEAP
// Declared in <sanitizer/allocator_interface.h>, which GCC does not install.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#else
#include <malloc.h>
#endif

namespace stp::test {

std::size_t live_bytes() {
#ifdef STP_SANITIZER_HEAP
  return __sanitizer_get_current_allocated_bytes();
#else
  const auto heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
#endif
}

}  // namespace stp::test

// SPDX-License-Identifier: BSD-3-Clause
// The C API: memory that the library finds (libst document, Appendix A).
#include "libst/client/allocation.h"
#include "libst/client/endpoint.h"
#include "libst/client/error.h"
#include "libst/include/stp/st.h"

using stp::client::Endpoint;
using stp::client::find;
using stp::client::guarded;
using stp::client::not_set;

int st_malloc(st_ehandle_t ehandle, size_t size, int node, void** ptr) {
  return guarded([&] {
    const auto endpoint = find<Endpoint>(ehandle);
    if (!endpoint) return -EBADF;
    if (ptr == nullptr) return not_set("ptr");
    return stp::client::allocate({.size = size,
                                  .alignment = std::size_t{1} << endpoint->config().bufsize,
                                  .node = node,
                                  .lent = endpoint->backend().lends_memory()},
                                 *ptr);
  });
}

int st_free(void* ptr) {
  return guarded([&] { return ptr == nullptr ? 0 : stp::client::release(ptr); });
}

int st_meminfo(const void* ptr, st_meminfo_t* info) {
  return guarded([&] {
    if (info == nullptr) return not_set("info");
    stp::client::MemoryFacts facts;
    const auto error = stp::client::describe_memory(ptr, facts);
    if (error == 0) *info = {.size = facts.size, .huge = facts.huge, .node = facts.node};
    return error;
  });
}

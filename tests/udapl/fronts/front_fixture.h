// SPDX-License-Identifier: BSD-3-Clause
// DAT programs: two IAs on one link, each with EVDs, a PZ and memory.
#pragma once

#include <cstdint>
#include <string>

#include "interface.h"
#include "tests/libst/libst_fixture.h"

namespace stp::test {

inline constexpr DAT_TIMEOUT kPatience = 20'000'000;
inline constexpr DAT_CONN_QUAL kPort = 3000;

// Makes the registry read the file of these tests.
void use_conf();
// The name of a return value.
std::string name_of(DAT_RETURN value);

inline DAT_DTO_COOKIE cookie(DAT_UINT64 value) {
  DAT_DTO_COOKIE made;
  made.as_64 = value;
  return made;
}

struct Side {
  explicit Side(DAT_COMPLETION_FLAGS recv_flags = DAT_COMPLETION_DEFAULT_FLAG,
                DAT_COMPLETION_FLAGS request_flags = DAT_COMPLETION_DEFAULT_FLAG);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  DAT_EVD_HANDLE evd(DAT_COUNT length, unsigned flags) const;
  DAT_EP_HANDLE make_ep(DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL) const;
  // A part of the buffer, as a local segment and as the peer accesses it.
  [[nodiscard]] DAT_LMR_TRIPLET at(std::size_t offset, std::size_t length) const;
  [[nodiscard]] DAT_RMR_TRIPLET remote(std::size_t offset, std::size_t length) const;
  // The next event of the EVD, or one with number 0 if none arrives within 20 s.
  static DAT_EVENT next(DAT_EVD_HANDLE from);
  static DAT_DTO_COMPLETION_EVENT_DATA completion(DAT_EVD_HANDLE from);

  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL, recv, request, connect, requests;
  DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
  Buffer buffer{1 << 16, 1};
  DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT lmr_context = 0;
  DAT_RMR_CONTEXT rmr_context = 0;
  DAT_EP_ATTR attr{};
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
};

class Front : public LibstTest {
 protected:
  using LibstTest::LibstTest;
  // The client connects to the server's port, and the server accepts with `server.ep`.
  void connect();
  // The steps of connect().
  void listen();
  DAT_RETURN connect_with(const std::string& question) const;
  void ask_server(const std::string& question);
  DAT_EVENT await_established();  // the client's
  DAT_RETURN send(std::size_t length, DAT_UINT64 value = 0,
                  DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG);

  Side server, client;
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  DAT_CR_HANDLE cr = DAT_HANDLE_NULL;  // accepted or rejected
  DAT_EVENT connected{};               // the client's event
};

}  // namespace stp::test

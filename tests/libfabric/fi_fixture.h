// SPDX-License-Identifier: BSD-3-Clause
// Programs of libfabric on the link `loop`: what they make first, and a connected pair.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace stp::test {

inline constexpr int kPatience = 20'000;  // ms
inline constexpr std::uint32_t kApi = FI_VERSION(1, 17);

// Whether `condition` becomes true. Its calls make the progress that it waits for.
template <class Condition>
bool becomes_true(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatience);
  while (!condition())
    if (std::chrono::steady_clock::now() > deadline) return false;
  return true;
}

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

// Closes what it holds; a test that fails to close shows it.
struct CloseFid {
  template <class T>
  void operator()(T* object) const {
    EXPECT_EQ(fi_close(&object->fid), 0);
  }
};
template <class T>
using Fid = std::unique_ptr<T, CloseFid>;

// A call of libfabric that gives an object by its last argument but one.
template <class T, class Call>
Fid<T> opened(Call call) {
  T* made = nullptr;
  EXPECT_EQ(call(&made), 0);
  return Fid<T>(made);
}

// Hints for endpoints of the provider.
Info hints();
// What fi_getinfo returns for them; `out` may get the list.
int get_info(const char* node, const char* service, std::uint64_t flags, const Info& hints,
             Info& out);

// What the provider logs (FI_LOG_LEVEL=info) as long as this exists.
class Log {
 public:
  Log();
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  [[nodiscard]] bool says(const std::string& text) const;

 private:
  const int saved_, file_;
};

// What a program opens before it has endpoints.
struct Side {
  explicit Side(const Info& info, fi_cq_format format = FI_CQ_FORMAT_DATA,
                fi_wait_obj wait = FI_WAIT_FD);
  // An endpoint on its queues, enabled.
  Fid<fid_ep> endpoint(fi_info* info, std::uint64_t cq_flags = 0, fid_ep* srx = nullptr);
  Fid<fid_mr> memory(void* data, std::size_t length, std::uint64_t access);
  // The next completion; `error` where that is what comes.
  fi_cq_data_entry completed(fid_cq* from);
  fi_cq_err_entry failed(fid_cq* from);
  // The next event and what came along; FI_NOTIFY with nothing where none comes.
  std::uint32_t event(std::vector<char>* data = nullptr, fi_info** request = nullptr);
  fi_eq_err_entry event_error(std::vector<char>& data);

  // As fi_cq_sread, with progress of the other side: both are this thread's.
  ssize_t read(fid_cq* from, fi_cq_data_entry& entry);

  Side* other = nullptr;
  Fid<fid_fabric> fabric;
  Fid<fid_domain> domain;
  Fid<fid_eq> eq;
  Fid<fid_cq> tx, rx;
};

// A server and a client, each with its own fabric; `connect` makes the pair of endpoints.
class FiTest : public testing::Test {
 protected:
  FiTest();
  void listen();
  // The next request's info.
  Info request(std::vector<char>* data = nullptr);
  // Where the server listens, as the client's info.
  Info destination();
  void connect(std::uint64_t cq_flags = 0, fid_ep* srx = nullptr);

  Info info_;
  std::unique_ptr<Side> server_, client_;
  Fid<fid_pep> pep_;
  Fid<fid_ep> accepted_, connected_;
};

}  // namespace stp::test

// SPDX-License-Identifier: BSD-3-Clause
#include "tests/libfabric/fi_fixture.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace stp::test {
namespace {

// No test reaches another link. Libraries that Debian's libfabric loads handle signals, unless they
// are told not to. libfabric looks at its own variables once.
const bool stays_on_loop =
    ::setenv("STP_LINK", "loop", 1) == 0 && ::setenv("IPATH_NO_BACKTRACE", "1", 1) == 0 &&
    ::setenv("FI_LOG_LEVEL", "info", 1) == 0 && ::setenv("FI_LOG_PROV", "stp", 1) == 0;

}  // namespace

Log::Log() : saved_(::dup(STDERR_FILENO)), file_(::memfd_create("log", MFD_CLOEXEC)) {
  EXPECT_GE(::dup2(file_, STDERR_FILENO), 0);
}

Log::~Log() {
  EXPECT_GE(::dup2(saved_, STDERR_FILENO), 0);
  ::close(saved_);
  ::close(file_);
}

bool Log::says(const std::string& text) const {
  std::string all(static_cast<std::size_t>(::lseek(file_, 0, SEEK_END)), '\0');
  const auto got = ::pread(file_, all.data(), all.size(), 0);
  return got == static_cast<ssize_t>(all.size()) && all.find(text) != std::string::npos;
}

Info hints() {
  Info made(fi_allocinfo());
  made->fabric_attr->prov_name = ::strdup("stp");
  made->ep_attr->type = FI_EP_MSG;
  made->caps = FI_MSG | FI_RMA | FI_ATOMIC;
  made->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  return made;
}

int get_info(const char* node, const char* service, std::uint64_t flags, const Info& hints,
             Info& out) {
  EXPECT_TRUE(stays_on_loop);
  fi_info* list = nullptr;
  const auto result = fi_getinfo(kApi, node, service, flags, hints.get(), &list);
  out.reset(list);
  return result;
}

Side::Side(const Info& info, fi_cq_format format, fi_wait_obj wait) {
  fabric = opened<fid_fabric>([&](auto** f) { return fi_fabric(info->fabric_attr, f, nullptr); });
  domain =
      opened<fid_domain>([&](auto** d) { return fi_domain(fabric.get(), info.get(), d, nullptr); });
  fi_eq_attr eq_attr{};
  eq_attr.wait_obj = FI_WAIT_FD;
  eq_attr.flags = FI_WRITE;
  eq = opened<fid_eq>([&](auto** e) { return fi_eq_open(fabric.get(), &eq_attr, e, nullptr); });
  fi_cq_attr cq_attr{};
  cq_attr.format = format;
  cq_attr.wait_obj = wait;
  for (auto* const cq : {&tx, &rx})
    *cq = opened<fid_cq>([&](auto** c) { return fi_cq_open(domain.get(), &cq_attr, c, nullptr); });
}

Fid<fid_ep> Side::endpoint(fi_info* info, std::uint64_t cq_flags, fid_ep* srx) {
  auto ep = opened<fid_ep>([&](auto** e) { return fi_endpoint(domain.get(), info, e, nullptr); });
  EXPECT_EQ(fi_ep_bind(ep.get(), &eq->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &tx->fid, FI_TRANSMIT | cq_flags), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &rx->fid, FI_RECV), 0);
  if (srx != nullptr) {
    EXPECT_EQ(fi_ep_bind(ep.get(), &srx->fid, 0), 0);
  }
  EXPECT_EQ(fi_enable(ep.get()), 0);
  return ep;
}

Fid<fid_mr> Side::memory(void* data, std::size_t length, std::uint64_t access) {
  return opened<fid_mr>(
      [&](auto** m) { return fi_mr_reg(domain.get(), data, length, access, 0, 0, 0, m, nullptr); });
}

ssize_t Side::read(fid_cq* from, fi_cq_data_entry& entry) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatience);
  for (;;) {
    const auto result = fi_cq_read(from, &entry, 1);
    if (result != -FI_EAGAIN || std::chrono::steady_clock::now() > deadline) return result;
    if (other != nullptr) fi_cq_read(other->tx.get(), nullptr, 0);
    std::this_thread::yield();
  }
}

fi_cq_data_entry Side::completed(fid_cq* from) {
  fi_cq_data_entry entry{};
  const auto result = read(from, entry);
  EXPECT_EQ(result, 1) << (result == -FI_EAVAIL ? fi_strerror(failed(from).err) : "");
  return entry;
}

fi_cq_err_entry Side::failed(fid_cq* from) {
  fi_cq_data_entry entry{};
  fi_cq_err_entry error{};
  EXPECT_EQ(read(from, entry), -FI_EAVAIL);
  EXPECT_EQ(fi_cq_readerr(from, &error, 0), 1);
  return error;
}

std::uint32_t Side::event(std::vector<char>* data, fi_info** request) {
  std::array<char, 1024> buffer{};
  std::uint32_t kind = FI_NOTIFY;
  const auto length = fi_eq_sread(eq.get(), &kind, buffer.data(), buffer.size(), kPatience, 0);
  EXPECT_GE(length, static_cast<ssize_t>(sizeof(fi_eq_cm_entry)));
  if (length < static_cast<ssize_t>(sizeof(fi_eq_cm_entry))) return FI_NOTIFY;
  fi_eq_cm_entry entry{};
  std::memcpy(&entry, buffer.data(), sizeof entry);
  if (data != nullptr) data->assign(buffer.begin() + sizeof entry, buffer.begin() + length);
  if (request != nullptr)
    *request = entry.info;
  else
    EXPECT_EQ(entry.info, nullptr);
  return kind;
}

fi_eq_err_entry Side::event_error(std::vector<char>& data) {
  std::array<char, 256> buffer{};
  std::uint32_t kind = 0;
  fi_eq_err_entry error{};
  EXPECT_EQ(fi_eq_sread(eq.get(), &kind, buffer.data(), buffer.size(), kPatience, 0), -FI_EAVAIL);
  error.err_data = buffer.data();
  error.err_data_size = buffer.size();
  EXPECT_EQ(fi_eq_readerr(eq.get(), &error, 0), static_cast<ssize_t>(sizeof error));
  data.assign(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(error.err_data_size));
  return error;
}

FiTest::FiTest() {
  EXPECT_EQ(get_info(nullptr, nullptr, 0, hints(), info_), 0);
  server_ = std::make_unique<Side>(info_);
  client_ = std::make_unique<Side>(info_);
  server_->other = client_.get();
  client_->other = server_.get();
}

void FiTest::listen() {
  pep_ = opened<fid_pep>(
      [&](auto** p) { return fi_passive_ep(server_->fabric.get(), info_.get(), p, nullptr); });
  ASSERT_EQ(fi_pep_bind(pep_.get(), &server_->eq->fid, 0), 0);
  ASSERT_EQ(fi_listen(pep_.get()), 0);
}

Info FiTest::destination() {
  sockaddr_in address{};
  auto length = sizeof address;
  EXPECT_EQ(fi_getname(&pep_->fid, &address, &length), 0);
  EXPECT_NE(address.sin_port, 0);
  Info info;
  const auto port = std::to_string(ntohs(address.sin_port));
  EXPECT_EQ(get_info("127.0.0.1", port.c_str(), 0, hints(), info), 0);
  return info;
}

Info FiTest::request(std::vector<char>* data) {
  fi_info* asked = nullptr;
  EXPECT_EQ(server_->event(data, &asked), FI_CONNREQ);
  return Info(asked);
}

void FiTest::connect(std::uint64_t cq_flags, fid_ep* srx) {
  listen();
  const auto to = destination();
  connected_ = client_->endpoint(to.get(), cq_flags);
  ASSERT_EQ(fi_connect(connected_.get(), to->dest_addr, nullptr, 0), 0);
  const auto asked = request();
  ASSERT_NE(asked, nullptr);
  accepted_ = server_->endpoint(asked.get(), 0, srx);
  ASSERT_EQ(fi_accept(accepted_.get(), nullptr, 0), 0);
  ASSERT_EQ(client_->event(), FI_CONNECTED);
  ASSERT_EQ(server_->event(), FI_CONNECTED);
}

}  // namespace stp::test

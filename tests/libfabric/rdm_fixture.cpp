// SPDX-License-Identifier: BSD-3-Clause
#include "tests/libfabric/rdm_fixture.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace stp::test {
Info rdm_hints() {
  Info made(fi_allocinfo());
  made->fabric_attr->prov_name = ::strdup("stp");
  made->ep_attr->type = FI_EP_RDM;
  made->ep_attr->protocol = 0x53545200;  // not ofi_rxm's
  made->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV;
  made->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  return made;
}

std::vector<char> pattern(std::size_t size, unsigned seed) {
  std::vector<char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + i / 251 + seed);
  return bytes;
}

RdmNode::RdmNode(const Info& info, std::uint64_t cq_flags, fi_av_type type) {
  fabric = opened<fid_fabric>([&](auto** f) { return fi_fabric(info->fabric_attr, f, nullptr); });
  domain =
      opened<fid_domain>([&](auto** d) { return fi_domain(fabric.get(), info.get(), d, nullptr); });
  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_TAGGED;
  cq_attr.wait_obj = FI_WAIT_NONE;
  for (auto* const cq : {&tx, &rx})
    *cq = opened<fid_cq>([&](auto** c) { return fi_cq_open(domain.get(), &cq_attr, c, nullptr); });
  fi_av_attr av_attr{};
  av_attr.type = type;
  av = opened<fid_av>([&](auto** v) { return fi_av_open(domain.get(), &av_attr, v, nullptr); });
  ep = opened<fid_ep>([&](auto** e) { return fi_endpoint(domain.get(), info.get(), e, nullptr); });
  EXPECT_EQ(fi_enable(ep.get()), -FI_ENOAV);
  EXPECT_EQ(fi_ep_bind(ep.get(), &av->fid, 0), 0);
  EXPECT_EQ(fi_enable(ep.get()), -FI_ENOCQ);
  EXPECT_EQ(fi_ep_bind(ep.get(), &tx->fid, FI_TRANSMIT | cq_flags), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &rx->fid, FI_RECV | cq_flags), 0);
  EXPECT_EQ(fi_enable(ep.get()), 0);
}

sockaddr_in RdmNode::name() const {
  sockaddr_in address{};
  auto length = sizeof address;
  EXPECT_EQ(fi_getname(&ep->fid, &address, &length), 0);
  return address;
}

fi_addr_t RdmNode::insert(const sockaddr_in& address) const {
  fi_addr_t number = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_insert(av.get(), &address, 1, &number, 0, nullptr), 1);
  return number;
}

Fid<fid_mr> RdmNode::memory(void* data, std::size_t length, std::uint64_t access) const {
  return opened<fid_mr>(
      [&](auto** m) { return fi_mr_reg(domain.get(), data, length, access, 0, 0, 0, m, nullptr); });
}

ssize_t RdmNode::read(fid_cq* from, Told& told) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatience);
  for (;;) {
    const auto result =
        fi_cq_readfrom(from, static_cast<fi_cq_tagged_entry*>(&told), 1, &told.source);
    if (result != -FI_EAGAIN || std::chrono::steady_clock::now() > deadline) return result;
    for (auto* const other : others) fi_cq_read(other->tx.get(), nullptr, 0);
    std::this_thread::yield();
  }
}

Told RdmNode::completed(fid_cq* from) {
  Told told{};
  const auto result = read(from, told);
  EXPECT_EQ(result, 1) << (result == -FI_EAVAIL ? fi_strerror(failed(from).err) : "");
  return told;
}

fi_cq_err_entry RdmNode::failed(fid_cq* from) {
  Told told{};
  fi_cq_err_entry error{};
  EXPECT_EQ(read(from, told), -FI_EAVAIL);
  EXPECT_EQ(fi_cq_readerr(from, &error, 0), 1);
  return error;
}

void RdmNode::expect_nothing(fid_cq* from) {
  Told told{};
  EXPECT_EQ(fi_cq_read(from, static_cast<fi_cq_tagged_entry*>(&told), 1), -FI_EAGAIN);
}

void RdmTest::make(std::uint64_t cq_flags, const std::function<void(fi_info&)>& change) {
  a_.reset();
  b_.reset();
  const auto asked = rdm_hints();
  if (change) change(*asked);
  ASSERT_EQ(get_info(nullptr, nullptr, 0, asked, info_), 0);
  a_ = std::make_unique<RdmNode>(info_, cq_flags);
  b_ = std::make_unique<RdmNode>(info_, cq_flags);
  a_->others = {b_.get()};
  b_->others = {a_.get()};
  to_b_ = a_->insert(b_->name());
  to_a_ = b_->insert(a_->name());
}

void RdmTest::send_early(const std::string& bytes, std::uint64_t tag) {
  ASSERT_EQ(fi_tsend(a_->ep.get(), bytes.data(), bytes.size(), nullptr, to_b_, tag, nullptr), 0);
  EXPECT_EQ(a_->completed(a_->tx.get()).flags, FI_SEND | FI_TAGGED);
}

Told RdmTest::receive(std::vector<char>& to, std::uint64_t tag, std::uint64_t ignore) {
  EXPECT_EQ(
      fi_trecv(b_->ep.get(), to.data(), to.size(), nullptr, FI_ADDR_UNSPEC, tag, ignore, to.data()),
      0);
  return b_->completed(b_->rx.get());
}

void RdmTest::await_message(std::uint64_t tag) {
  fi_msg_tagged message{};
  message.addr = FI_ADDR_UNSPEC;
  message.tag = tag;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatience);
  for (;;) {
    ASSERT_EQ(fi_trecvmsg(b_->ep.get(), &message, FI_PEEK), 0);
    Told told{};
    const auto result = b_->read(b_->rx.get(), told);
    if (result == 1) return;
    fi_cq_err_entry error{};
    ASSERT_EQ(fi_cq_readerr(b_->rx.get(), &error, 0), 1);
    ASSERT_EQ(error.err, FI_ENOMSG);
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    fi_cq_read(a_->tx.get(), nullptr, 0);
    std::this_thread::yield();
  }
}

}  // namespace stp::test

// SPDX-License-Identifier: BSD-3-Clause
// A program of the managed API in the place of an endpoint of FI_EP_RDM, which need not keep to its
// protocol.
#pragma once

#include <arpa/inet.h>
#include <endian.h>
#include <stp/managed.h>

#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "tests/libfabric/rdm_fixture.h"
#include "tests/libfabric/stranger.h"

namespace stp::test::rdm_stranger {

inline constexpr std::uint32_t kEager = 0x100, kAnnounced = 0x101, kPull = 0x102, kWritten = 0x103,
                               kAccessed = 0x104, kFirst = 0x105, kMore = 0x106, kLaned = 0x107,
                               kLane = 0x108, kFreed = 0x109, kAsk = 0x10a, kAnswer = 0x10b,
                               kSeveral = 0x10c;
// What it says that it may do.
inline constexpr auto kSendsSeveral = "lanesseveral";
inline constexpr std::uint32_t kMagic = 0x53544652;
// Where a stranger has what it serves.
inline constexpr std::size_t kServed = 70'000;
inline constexpr std::size_t kHead = 32, kTail = 15, kPart = 17'384;
inline constexpr std::size_t kLaneTail = 8, kLaneBytes = std::size_t{272} * 4096,
                             kShortLane = std::size_t{68} * 4096;
// The receiver takes what is behind the whole pages of a message with its header.
inline constexpr std::uint32_t kRests = 8;

// The header as the wire has it, not as the provider's own code does.
inline std::array<std::uint64_t, 4> head(std::uint64_t tag, std::uint64_t length, std::uint32_t id,
                                         std::uint32_t flags) {
  return {htobe64(tag), 0, htobe64(length), htobe64(std::uint64_t{id} << 32 | flags)};
}

class Stranger : public StrangeProgram {
 public:
  Stranger() : StrangeProgram(kServed + 40'000, 'r') {}

  // Connects to that endpoint. The kind of the event that follows.
  std::uint32_t connect(const sockaddr_in& to, std::uint32_t magic = kMagic,
                        const std::string& word = {}) {
    dial(ntohs(to.sin_port), magic, word);
    all_.push_back(connection_);
    const auto kind = next().kind;
    if (kind == STM_REFUSED) {
      stm_connection_close(connection_);
      all_.pop_back();
    }
    return kind;
  }
  // The same, of many, in parts of 64. How many are connected.
  int connect_all(const sockaddr_in& to, int count) {
    int connected = 0;
    for (int i = 1; i <= count; ++i) {
      dial(ntohs(to.sin_port), kMagic);
      all_.push_back(connection_);
      if (i % 64 != 0 && i != count) continue;
      while (connected < i && next().kind == STM_CONNECTED) ++connected;
    }
    return connected;
  }
  // Ends all of them.
  void end_all() {
    for (auto* const connection : all_) stm_connection_close(connection);
    all_.clear();
  }
  // Listens, and accepts the endpoint that connects.
  sockaddr_in listen() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(4711);
    stm_listener_t listener = nullptr;
    EXPECT_EQ(stm_listen(domain_, ":4711", queue_, 0, 0, &listener), 0);
    return address;
  }
  void accept() {
    connection_ = next().connection;
    const auto attr = attributes();
    ASSERT_EQ(stm_accept(connection_, &attr, nullptr, 0), 0);
    post();
    EXPECT_EQ(next().kind, STM_CONNECTED);
  }
  void post() { EXPECT_EQ(stm_receive(connection_, 0, memory_, &bytes_[36'000], 20'000), 0); }
  void send(std::uint32_t kind, const std::array<std::uint64_t, 4>& header, std::size_t size) {
    // What was sent before may not have left.
    auto* const from = &bytes_[sent_++ % 2 * 18'000];
    std::memcpy(from, header.data(), kHead);
    std::memset(from + kHead, 't', size < kHead ? 0 : size - kHead);
    EXPECT_EQ(stm_send(connection_, 0, 0, kind, memory_, from, size), 0);
  }
  // The same, on the connection that was made as the `i`th one.
  void send_on(std::size_t i, std::uint32_t kind, const std::array<std::uint64_t, 4>& header,
               std::size_t size) {
    connection_ = all_[i];
    send(kind, header, size);
  }
  // Sends a message that the peer lends a lane for, and waits for that.
  void borrow_lane() {
    post();
    send(kEager, head(1, 5000, 0, 1), kHead + 5000);
    const auto lent = next();
    ASSERT_EQ(lent.kind, STM_RECEIVE);
    ASSERT_EQ(lent.tag, kLane);
    std::array<std::uint64_t, 4> header{};
    std::memcpy(header.data(), &bytes_[36'000], kHead);
    EXPECT_EQ(static_cast<std::uint32_t>(be64toh(header[3])), kRests);
    borrowed_ = be64toh(header[2]);
    base_ = be64toh(header[1]);
    key_ = static_cast<std::uint32_t>(be64toh(header[3]) >> 32);
  }
  [[nodiscard]] std::uint64_t borrowed() const { return borrowed_; }
  // Puts a message of bytes 'r' at the beginning of the lane.
  void put(std::size_t length) {
    auto mark = base_ + 0x9e3779b97f4a7c15;  // of the place 0: splitmix64
    mark = (mark ^ mark >> 30) * 0xbf58476d1ce4e5b9;
    mark = (mark ^ mark >> 27) * 0x94d049bb133111eb;
    const auto wire = htobe64(mark ^ mark >> 31);
    std::memcpy(&bytes_[kServed + length - kLaneTail], &wire, kLaneTail);
    EXPECT_EQ(stm_put(connection_, 0, 0, memory_, &bytes_[kServed], length, key_, 0), 0);
  }
  // Lends the endpoint that has connected a lane, with those flags.
  void lend_lane(std::uint32_t flags = 0) {
    stm_memory_t memory = nullptr;
    ASSERT_EQ(stm_memory_register(domain_, lane_.data(), lane_.size(),
                                  STM_LOCAL_WRITE | STM_REMOTE_WRITE, &memory),
              0);
    stm_region_t region = nullptr;
    stm_remote_t remote{};
    ASSERT_EQ(stm_region_open(memory, lane_.data(), lane_.size(), STM_REMOTE_WRITE, connection_, 0,
                              &region, &remote),
              0);
    send(kLane, head(0, lane_.size(), remote.key, flags), kHead);
  }
  // Answers a read with the bytes 'r'.
  void serve(const stm_event_t& asked) {
    EXPECT_EQ(stm_serve_read(connection_, asked.request, 0, 0, memory_, &bytes_[kServed],
                             static_cast<std::size_t>(asked.length)),
              0);
  }
  void read(std::size_t length) {
    EXPECT_EQ(stm_read(connection_, 0, 0, memory_, &bytes_[60'000], length), 0);
  }
  // All that it has sent has arrived, and it goes in good order.
  void leave() {
    EXPECT_EQ(stm_disconnect(connection_, STM_GRACEFUL), 0);
    EXPECT_EQ(ended(), 0);
  }
  // As for the endpoint a stranger that falls silent, at once.
  void break_off() { EXPECT_EQ(stm_disconnect(connection_, STM_BROKEN), 0); }

 private:
  std::vector<stm_connection_t> all_;
  std::vector<char> lane_ = std::vector<char>(kShortLane);  // that it lends
  std::size_t sent_ = 0;
  std::uint64_t borrowed_ = 0, base_ = 0;  // of the lane that it was lent: length, start of marks
  std::uint32_t key_ = 0;
};

class RdmPeer : public RdmTest {
 protected:
  RdmPeer() {
    stranger_.progress = [this] {
      fi_cq_read(a_->tx.get(), nullptr, 0);
      fi_cq_read(b_->tx.get(), nullptr, 0);
    };
  }
  // What the stranger sends ends its connection, and `b` goes on.
  void expect_broken_off(std::uint32_t kind, const std::array<std::uint64_t, 4>& header,
                         std::size_t size, const std::string& says = {}) {
    ASSERT_EQ(stranger_.connect(b_->name(), kMagic, says), STM_CONNECTED);
    stranger_.send(kind, header, size);
    EXPECT_EQ(stranger_.ended(), -ECONNRESET);
    std::vector<char> got(5);
    send_early("still", 1);
    EXPECT_EQ(receive(got, 1).len, 5U);
  }
  // What a stranger says that `a` has connected to ends the connection.
  void expect_lender_ends(std::uint32_t kind, const std::array<std::uint64_t, 4>& header) {
    const auto to = a_->insert(stranger_.listen());
    ASSERT_EQ(fi_tsend(a_->ep.get(), "x", 1, nullptr, to, 1, nullptr), 0);
    stranger_.accept();
    stranger_.send(kind, header, kHead);
    EXPECT_EQ(stranger_.ended(), -ECONNRESET);
  }

  // So many messages of that length have come to `b`.
  void receive_all(int count, std::size_t length) {
    std::array<fi_cq_tagged_entry, 64> told{};
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatience);
    while (count > 0) {
      const auto result = fi_cq_read(b_->rx.get(), told.data(), told.size());
      for (ssize_t i = 0; i < result; ++i) ASSERT_EQ(told[static_cast<std::size_t>(i)].len, length);
      if (result > 0) count -= static_cast<int>(result);
      ASSERT_TRUE(result > 0 || result == -FI_EAGAIN);
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      stranger_.drop_all();
    }
  }

  Stranger stranger_;
};

}  // namespace stp::test::rdm_stranger

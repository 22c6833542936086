// SPDX-License-Identifier: BSD-3-Clause
#include "tests/libst/libst_fixture.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tools/stpd/link_shards.h"
#include "tools/stpd/server.h"

namespace stp::test {
namespace {

using Ports = std::vector<std::unique_ptr<port::Port>>;

Ports open_ports(const std::string& text) {
  port::LinkConfig link;
  std::string error;
  if (!port::parse_link(text, link, error)) throw std::runtime_error(error);
  port::OpenError why;
  auto ports = port::Port::open_shards(link, why);
  if (ports.empty()) throw std::runtime_error(why.text);
  return ports;
}

Ports only(std::unique_ptr<port::Port> port) {
  Ports ports;
  ports.push_back(std::move(port));
  return ports;
}

// STP_TEST_QUEUES: a loop link has that many shards, in the process and in a daemon.
std::string with_queues(const std::string& link) {
  const auto* const queues = std::getenv("STP_TEST_QUEUES");
  const bool takes_them =
      queues != nullptr && link.starts_with("loop") && link.find(",queues=") == std::string::npos;
  return takes_them ? link + ",queues=" + queues : link;
}

std::string temporary_folder() {
  std::string name = "/tmp/libst-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  return name;
}

}  // namespace

struct Daemon::Parts {
  Parts(Ports ports, const std::string& path)
      : places(host::poll_places(host::PollPolicy::kAdaptive, static_cast<unsigned>(ports.size()),
                                 {}, std::thread::hardware_concurrency())),
        shards(std::move(ports), places),
        server(shards.services(), path) {}
  const host::PollPlaces places;
  stpd::LinkShards shards;
  stpd::Server server;
};

Daemon::Daemon(const std::string& link) : Daemon(open_ports(with_queues(link))) {}

Daemon::Daemon(std::unique_ptr<port::Port> port) : Daemon(only(std::move(port))) {}

Daemon::Daemon(Ports ports) : folder_(temporary_folder()) {
  const auto path = folder_ + "/stpd.sock";
  link_ = "stpd:" + path;
  parts_ = std::make_unique<Parts>(std::move(ports), path);
  if (parts_->server.start() != 0) throw std::runtime_error("no daemon at " + path);
  parts_->shards.start();
}

Daemon::~Daemon() {
  stop();
  ::rmdir(folder_.c_str());
}

void Daemon::stop() {
  if (parts_ == nullptr) return;
  parts_->server.stop();
  parts_->shards.stop();
  parts_.reset();
}

void Daemon::limit_mapped(std::uint64_t bytes) {
  host::Quotas quotas;
  quotas.mapped_bytes = bytes;
  parts_->shards.set_quotas(quotas);
}

void Daemon::limit_endpoints(std::uint64_t endpoints) {
  host::Quotas quotas;
  quotas.endpoints = endpoints;
  parts_->shards.set_quotas(quotas);
}

UseLink::UseLink(const std::string& link) {
  if (const auto* const before = std::getenv("STP_LINK"); before != nullptr) before_ = before;
  ::setenv("STP_LINK", link.c_str(), 1);
}

UseLink::~UseLink() {
  if (before_)
    ::setenv("STP_LINK", before_->c_str(), 1);
  else
    ::unsetenv("STP_LINK");
}

LibstTest::LibstTest(const std::string& link) {
  if (GetParam() == Way::kThroughDaemon) daemon_.emplace(link);
  link_.emplace(daemon_ ? daemon_->link() : with_queues(link));
}

void ConnectedTest::SetUp() {
  ASSERT_EQ(server_.error(), 0) << st_strerror(server_.error());
  ASSERT_EQ(client_.error(), 0) << st_strerror(client_.error());
  configure();
  ASSERT_EQ(st_listen(server_), 0);
  const auto error = st_connect(client_, ":3000", &connected_);
  ASSERT_EQ(error, 0) << st_strerror(error);
  ASSERT_EQ(st_accept(server_, &accepted_), 0);
}

std::string way_name(const testing::TestParamInfo<Way>& info) {
  return info.param == Way::kInProcess ? "InProcess" : "ThroughDaemon";
}

void set_option(void* handle, int option, unsigned value) {
  const auto error = st_setopt(handle, option, &value);
  ASSERT_EQ(error, 0) << st_strerror(error);
}

unsigned option(void* handle, int option) {
  unsigned value = 0xdeadbeef;
  const auto error = st_getopt(handle, option, &value);
  EXPECT_EQ(error, 0) << st_strerror(error);
  return value;
}

Buffer::Buffer(std::size_t size, unsigned char seed, bool filled)
    : size_(size), data_(nullptr, std::free) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, std::size_t{1} << 16, size) != 0) throw std::bad_alloc();
  data_.reset(static_cast<unsigned char*>(memory));
  auto* const bytes = data_.get();
  if (!filled) {
    std::memset(bytes, 0, size);
    return;
  }
  constexpr std::size_t kPeriod = std::size_t{1} << 16;
  for (std::size_t i = 0; i < std::min(size, kPeriod); ++i)
    bytes[i] = static_cast<unsigned char>(seed + i + (i >> 8) * 7);
  for (std::size_t at = kPeriod; at < size; at += kPeriod)
    std::memcpy(bytes + at, bytes, std::min(size - at, kPeriod));
}

int receive(st_chandle_t chandle, st_header_t& header, void* payload) {
  timeval limit{20, 0};
  return st_rx(chandle, &header, payload, &limit);
}

int poll(st_chandle_t chandle, st_header_t& header) {
  timeval none{0, 0};
  return st_rx(chandle, &header, nullptr, &none);
}

st_header_t header(unsigned op, unsigned flags) {
  st_header_t header{};
  header.op_flags = ST_OP_FLAGS(op, flags);
  return header;
}

int send(st_chandle_t chandle, st_header_t header, void* payload) {
  return st_tx(chandle, &header, payload, 0, 0, 0);
}

}  // namespace stp::test

// SPDX-License-Identifier: BSD-3-Clause
#include "tests/libst/libst_fixture.h"

#include <unistd.h>

#include <cstdlib>

#include "libst/service/poll_loop.h"
#include "libst/service/server.h"

namespace stp::test {
namespace {

std::unique_ptr<port::Port> open_port(const std::string& text) {
  port::LinkConfig link;
  std::string error;
  if (!port::parse_link(text, link, error)) throw std::runtime_error(error);
  auto port = port::Port::open(link, error);
  if (port == nullptr) throw std::runtime_error(error);
  return port;
}

// STP_TEST_QUEUES: the number of shards of a loop link.
std::string in_process(const std::string& link) {
  const auto* const queues = std::getenv("STP_TEST_QUEUES");
  const bool takes_them = queues != nullptr && link.starts_with("loop");
  return takes_them ? link + ",queues=" + queues : link;
}

std::string temporary_folder() {
  std::string name = "/tmp/libst-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
  return name;
}

}  // namespace

struct Daemon::Parts {
  Parts(std::unique_ptr<port::Port> port, const std::string& path)
      : service(std::move(port)),
        loop(service, service::PollPolicy::kAdaptive),
        server(service, path) {}
  service::Service service;
  service::PollLoop loop;
  service::Server server;
};

Daemon::Daemon(const std::string& link) : Daemon(open_port(link)) {}

Daemon::Daemon(std::unique_ptr<port::Port> port) : folder_(temporary_folder()) {
  const auto path = folder_ + "/stpd.sock";
  link_ = "stpd:" + path;
  parts_ = std::make_unique<Parts>(std::move(port), path);
  if (parts_->server.start() != 0) throw std::runtime_error("no daemon at " + path);
  parts_->loop.start();
}

Daemon::~Daemon() {
  stop();
  ::rmdir(folder_.c_str());
}

void Daemon::stop() {
  if (parts_ == nullptr) return;
  parts_->server.stop();
  parts_->loop.stop();
  parts_.reset();
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
  link_.emplace(daemon_ ? daemon_->link() : in_process(link));
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
  for (std::size_t i = 0; i < size; ++i)
    data_[i] = filled ? static_cast<unsigned char>(seed + i + (i >> 8) * 7) : 0;
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

// SPDX-License-Identifier: BSD-3-Clause
// Tests of the C API as a program sees it, with a Node in the process and through a daemon (which
// runs in this process too, but is reached only by its socket).
#pragma once

#include <gtest/gtest.h>
#include <stp/st.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stp::port {
class Port;
}

namespace stp::test {

class Daemon {
 public:
  explicit Daemon(const std::string& link = "loop");
  explicit Daemon(std::unique_ptr<port::Port> port);
  explicit Daemon(std::vector<std::unique_ptr<port::Port>> shards);
  ~Daemon();
  [[nodiscard]] const std::string& link() const { return link_; }  // for STP_LINK
  void stop();
  // Limits the bytes that each program may have mapped, or its endpoints.
  void limit_mapped(std::uint64_t bytes);
  void limit_endpoints(std::uint64_t endpoints);

 private:
  struct Parts;
  std::string folder_, link_;
  std::unique_ptr<Parts> parts_;
};

// Sets STP_LINK for its lifetime.
class UseLink {
 public:
  explicit UseLink(const std::string& link);
  ~UseLink();
  UseLink(const UseLink&) = delete;
  UseLink& operator=(const UseLink&) = delete;

 private:
  std::optional<std::string> before_;
};

enum class Way { kInProcess, kThroughDaemon };

// An endpoint that deletes itself.
class Endpoint {
 public:
  explicit Endpoint(const char* name = nullptr,
                    int (*open)(const char*, st_ehandle_t*) = st_create) {
    error_ = open(name, &handle_);
  }
  ~Endpoint() { reset(); }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  operator st_ehandle_t() const { return handle_; }
  [[nodiscard]] int error() const { return error_; }
  void reset() {
    if (handle_ != nullptr) st_delete(handle_);
    handle_ = nullptr;
  }

 private:
  st_ehandle_t handle_ = nullptr;
  int error_ = 0;
};

class LibstTest : public testing::TestWithParam<Way> {
 protected:
  explicit LibstTest(const std::string& link = "loop");
  std::optional<Daemon> daemon_;
  std::optional<UseLink> link_;
};

// A server on ":3000" and a client that is connected to it.
class ConnectedTest : public LibstTest {
 protected:
  void SetUp() override;
  // Options that differ from the defaults, before the connection is made.
  virtual void configure() {}

  Endpoint server_{":3000"}, client_;
  st_chandle_t accepted_ = nullptr, connected_ = nullptr;
};

std::string way_name(const testing::TestParamInfo<Way>& info);
#define STP_BOTH_WAYS(Fixture)                                                                    \
  INSTANTIATE_TEST_SUITE_P(                                                                       \
      Link, Fixture, testing::Values(stp::test::Way::kInProcess, stp::test::Way::kThroughDaemon), \
      stp::test::way_name)

void set_option(void* handle, int option, unsigned value);
unsigned option(void* handle, int option);

// Memory of whole pages, filled with bytes that depend on their position.
class Buffer {
 public:
  explicit Buffer(std::size_t size, unsigned char seed = 0, bool filled = true);
  [[nodiscard]] unsigned char* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] int length() const { return static_cast<int>(size_); }
  unsigned char& operator[](std::size_t at) const { return data_.get()[at]; }

 private:
  std::size_t size_;
  std::unique_ptr<unsigned char[], void (*)(void*)> data_;
};

// st_rx with a timeout that is far longer than any successful test needs.
int receive(st_chandle_t chandle, st_header_t& header, void* payload = nullptr);
int poll(st_chandle_t chandle, st_header_t& header);
st_header_t header(unsigned op, unsigned flags = 0);
int send(st_chandle_t chandle, st_header_t header, void* payload = nullptr);

}  // namespace stp::test

// SPDX-License-Identifier: BSD-3-Clause
// A key-value store whose server only accepts connections: clients find, lock and change its table
// with Get, Put and Compare_And_Swap.
//
//   kv_store serve :3000
//   kv_store set HOST:3000 KEY VALUE
//   kv_store get HOST:3000 KEY
#include <stp/managed.hpp>

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "example.h"

namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 20s;

// An entry of the table, the same for all clients (kv_client.py is one in Python). They search the
// table linearly, beginning at the key's hash. `lock` is 0, or 1 while a client changes the entry.
struct Entry {
  std::uint64_t lock;
  char key[56];
  char value[192];
};
constexpr std::size_t kEntries = 4096;

// FNV-1a: any language has it in three lines.
std::uint64_t hash_of(const std::string& key) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char byte : key) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
  return hash;
}

int serve(const char* port) {
  const auto domain = stp::open_domain();
  const auto queue = stp::make_queue(domain, 1024);
  std::vector<Entry> table(kEntries);
  const auto size = table.size() * sizeof(Entry);
  constexpr unsigned kAccess = STM_REMOTE_READ | STM_REMOTE_WRITE | STM_REMOTE_ATOMIC;
  const auto memory = stp::register_memory(domain, table.data(), size, kAccess);
  const auto open = stp::open_region(memory, table.data(), size, kAccess);
  const auto listener = stp::listen(domain, port, queue);
  std::array<std::uint8_t, STM_REMOTE_SIZE> key{};
  stm_remote_encode(&open.remote, key.data());
  std::printf("serving %zu entries on %s\n", kEntries, port);
  std::fflush(stdout);
  for (;;) {
    const auto event = stp::next_event(queue);
    if (event.kind == STM_REQUEST) {  // the answer says where the table is
      const auto attr = stp::connection_attr(queue);
      const auto accepted = stm_accept(event.connection, &attr, key.data(), key.size());
      if (accepted != 0) stm_reject(event.connection, nullptr, 0);  // too many clients
    } else if (event.kind == STM_DISCONNECTED || event.kind == STM_FAILED) {
      stm_connection_close(event.connection);
    }
  }
}

class Store {
 public:
  explicit Store(const char* peer) {
    stp::checked(stm_connect(connection_, peer, -1, nullptr, 0), "connecting");
    stp::expect_event(queue_, STM_CONNECTED, kPatience);
    std::array<std::uint8_t, STM_REMOTE_SIZE> key{};
    if (stm_private_data(connection_, key.data(), key.size()) != STM_REMOTE_SIZE)
      throw stp::Error(-EPROTO, "the server names no table");
    stm_remote_decode(key.data(), &table_);
  }

  bool get(const std::string& key, std::string& value) {
    if (!find(key) || entry_.key[0] == '\0') return false;
    value = entry_.value;
    return true;
  }

  void set(const std::string& key, const std::string& value) {
    if (key.empty() || key.size() >= sizeof entry_.key || value.size() >= sizeof entry_.value)
      throw stp::Error(-EMSGSIZE, "key or value");
    for (;;) {
      if (!find(key)) throw stp::Error(-ENOSPC, "the table");
      const auto free = entry_.key[0] == '\0';
      lock();
      read();  // between finding and locking another client may have taken the entry
      const auto same = key == entry_.key;
      if (same || (free && entry_.key[0] == '\0')) break;
      unlock();
    }
    std::memcpy(entry_.key, key.c_str(), key.size() + 1);
    std::memcpy(entry_.value, value.c_str(), value.size() + 1);
    stp::checked(stm_put(connection_, 0, 0, memory_, entry_.key, sizeof entry_ - sizeof entry_.lock,
                         table_.key, at() + sizeof entry_.lock),
                 "put");
    stp::expect_event(queue_, STM_PUT, kPatience);
    unlock();
  }

 private:
  [[nodiscard]] std::uint64_t at() const { return table_.address + index_ * sizeof(Entry); }

  void read() {
    stp::checked(stm_get(connection_, 0, 0, memory_, &entry_, sizeof entry_, table_.key, at()),
                 "get");
    stp::expect_event(queue_, STM_GET, kPatience);
  }
  // Finds the key's entry or the free one where it belongs. Returns false if there is neither.
  bool find(const std::string& key) {
    const auto count = table_.length / sizeof(Entry);
    const auto start = hash_of(key);
    for (std::uint64_t i = 0; i < count; ++i) {
      index_ = (start + i) % count;
      read();
      if (entry_.key[0] == '\0' || key == entry_.key) return true;
    }
    return false;
  }
  std::uint64_t swap(std::uint64_t to, std::uint64_t from) {
    stp::checked(stm_fetch(connection_, 0, 0, STM_COMPARE_AND_SWAP, to, from, memory_, &before_,
                           table_.key, at()),
                 "compare and swap");
    stp::expect_event(queue_, STM_FETCH, kPatience);
    return before_;
  }
  void lock() {
    while (swap(1, 0) != 0) {
    }
  }
  void unlock() { swap(0, 1); }

  // Declared before domain_ and memory_, so that they are destroyed after the memory is
  // deregistered.
  Entry entry_{};
  alignas(8) std::uint64_t before_ = 0;
  stm_remote_t table_{};
  std::uint64_t index_ = 0;
  stp::Domain domain_ = stp::open_domain();
  stp::Queue queue_ = stp::make_queue(domain_, 64);
  stp::Memory memory_ = stp::register_memory(domain_, this, sizeof *this, STM_LOCAL_WRITE);
  stp::Connection connection_ = stp::make_connection(domain_, stp::connection_attr(queue_));
};

int run(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  const bool serves = what == "serve" && argc == 3, sets = what == "set" && argc == 5;
  if (!serves && !sets && !(what == "get" && argc == 4))
    return usage(argc, argv, "serve :PORT | set HOST:PORT KEY VALUE | get HOST:PORT KEY");
  tell_link();
  if (serves) return serve(argv[2]);
  // Not on the stack: through stpd its pages are shared with the daemon.
  const auto store = std::make_unique<Store>(argv[2]);
  if (sets) {
    store->set(argv[3], argv[4]);
    return 0;
  }
  std::string value;
  if (!store->get(argv[3], value)) return 1;
  std::puts(value.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(argc, argv);
} catch (const std::exception& error) {
  std::fprintf(stderr, "kv_store: %s\n", error.what());
  return 3;
}

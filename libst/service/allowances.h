// SPDX-License-Identifier: BSD-3-Clause
// What programs may do and make: quotas and what programs use of them, what this process has left,
// rules on ports, and the refusals.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "libst/ipc/requests.h"
#include "libst/service/budget.h"
#include "stp/types.h"

namespace stp::service {

// Limits of programs, so that none uses up the service: the defaults, and those that an operator
// can choose (Quotas). A request beyond a limit fails with -EDQUOT.

namespace limits {

// One client, all its endpoints together.
inline constexpr std::size_t kEndpoints = 1'024;
inline constexpr std::size_t kRegions = 65'536;
// Mx are 16-bit names, shared by all clients of a link.
inline constexpr std::size_t kMxs = 8'192;
// Channels of connections, and spare channels for connections to come.
inline constexpr std::uint32_t kChannels = 4'096;
inline constexpr std::uint64_t kChannelBytes = std::uint64_t{256} << 20;
// Slots of all channels together.
inline constexpr std::uint64_t kSlots = std::uint64_t{1} << 21;
// Bytes of the client's memory that the service maps. Memory of the service's own process costs the
// service nothing and is not counted.
inline constexpr std::uint64_t kMappedBytes = std::uint64_t{16} << 30;
// Limit for one request.
inline constexpr std::uint64_t kMapRequestBytes = std::uint64_t{4} << 30;
// Larger than any region, but small enough that sums of lengths do not overflow 64 bits.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
// Memory of the tables that map a client's Bufx to memory.
inline constexpr std::uint64_t kTableBytes = std::uint64_t{128} << 20;

// Spare channels per listening endpoint, for connections that nobody has accepted yet. Fewer if the
// channels are so large that they would take more than kStockBytes.
inline constexpr std::uint32_t kBacklog = 16;
inline constexpr std::size_t kStockBytes = std::size_t{4} << 20;

// Clients of one daemon.
inline constexpr std::size_t kClients = describe(Resource::kClients).usual;
// Additional places, reserved for administrators to watch from.
inline constexpr std::size_t kOperatorPlaces = 8;

}  // namespace limits

// For one client, all its endpoints together, and for all clients of a link.
struct Quotas {
  std::size_t clients = limits::kClients;  // of one link
  std::size_t endpoints = limits::kEndpoints;
  std::size_t regions = limits::kRegions;
  std::size_t mxs = limits::kMxs;
  std::uint32_t connections = limits::kChannels;
  std::uint64_t slots = limits::kSlots;
  std::uint64_t queue_bytes = limits::kChannelBytes;
  std::uint64_t mapped_bytes = limits::kMappedBytes;
  std::uint64_t map_bytes = limits::kMapRequestBytes;  // in one kMap request
  // For all clients together, and the share that one user may have (budget.h). The total of
  // Resource::kClients is `clients`.
  unsigned user_share = kUserShare;
  Totals totals{};
};

// What one program uses of a link, on all shards together: what its quotas limit, and
// its credit for address resolution.
// One thread at a time makes objects for a program; the threads of all shards remove them.
struct ProgramUse {
  using Count = std::atomic<std::uint64_t>;
  Count endpoints{0}, regions{0}, mapped_bytes{0}, mxs{0}, channels{0}, queue_bytes{0}, slots{0};
  Count table_bytes{0};  // of the Bufx of all its endpoints
  // Its credit for resolving unknown addresses: service.cpp.
  std::atomic<Time> asked_until{0};
};

// Adds an amount to one of these numbers while it exists. The ProgramUse must outlive it.
class Counted {
 public:
  Counted() = default;
  Counted(ProgramUse::Count& in, std::uint64_t amount) : in_(&in), amount_(amount) {
    in.fetch_add(amount, std::memory_order_relaxed);
  }
  ~Counted() { reset(); }
  Counted(Counted&& other) noexcept { *this = std::move(other); }
  Counted& operator=(Counted&& other) noexcept {
    if (this == &other) return *this;
    reset();
    in_ = std::exchange(other.in_, nullptr);
    amount_ = other.amount_;
    return *this;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  void reset() {
    if (in_ != nullptr) std::exchange(in_, nullptr)->fetch_sub(amount_, std::memory_order_relaxed);
  }

 private:
  ProgramUse::Count* in_ = nullptr;
  std::uint64_t amount_ = 0;
};

// What this process can still use of resources that the kernel limits per process.

// Memory mappings (vm.max_map_count) and open files (RLIMIT_NOFILE), minus those in use and a
// reserve for the process itself.
std::uint64_t free_mappings();
std::uint64_t free_files();
// All memory mappings that a process may have.
std::uint64_t most_mappings();

struct PortRule {
  enum class Who { kAll, kUser, kGroup };
  Who who = Who::kAll;
  std::uint32_t id = 0;  // a uid or gid
  std::uint32_t first = 0, last = 0;
};

// Decides who may listen on which port. Without rules, every user may listen on every port. With at
// least one rule, a user may listen only on ports that a rule gives to it. Root and the user of the
// daemon may listen on every port.
class PortRules {
 public:
  PortRules() = default;
  explicit PortRules(std::vector<PortRule> rules) : rules_(std::move(rules)) {}

  [[nodiscard]] bool permit(std::uint32_t port, uid_t uid, std::span<const gid_t> groups) const;

  // Parses "all:4000", "user:www-data:3000-3999" or "group:staff:5000"; a user or group is a name
  // or a number. nullopt: `error` has the text and what to write.
  static std::optional<PortRule> parse(const std::string& text, std::string& error);

 private:
  std::vector<PortRule> rules_;
};

// The accounts of a program: its user's budgets, of the link and of this shard's Ports.
struct Payer {
  Account account, ports;
};

// What programs may still make: the quotas of one program, the budgets of its user
// (budget.h), and this shard's Ports. A refusal is -EDQUOT, or -EACCES where the operator's rules
// forbid something; the reply's text says what is used up or missing, and what an operator can
// change.
class Allowances {
 public:
  // `of_link`: shared by the `shards` of one link. nullptr: makes its own. `shard`: from 0.
  Allowances(std::shared_ptr<Budgets> of_link, unsigned shard, unsigned shards);

  // For later requests; programs keep what they have.
  void set_quotas(const Quotas& quotas);
  // How many mappings and files of this process all programs together may use.
  void set_process_totals(std::uint64_t mappings, std::uint64_t files);
  // Objects of programs keep no file descriptor from `first` on.
  void reserve_files_from(int first) { first_reserved_file_ = first; }
  // Returns 0, or -EMFILE: `fd` is in the reserve.
  [[nodiscard]] int check_file(int fd) const { return fd < first_reserved_file_ ? 0 : -EMFILE; }
  [[nodiscard]] const Quotas& quotas() const { return quotas_; }
  [[nodiscard]] const Budgets& budgets() const { return *budgets_; }

  // Only the totals limit root, the user of this process, and kUnknownUser.
  [[nodiscard]] Payer payer(uid_t user);

  // Returns 0 or -EDQUOT, with the text for the reply of the present request.
  int reserve(const Payer& payer, Resource resource, std::uint64_t amount, Reservation& out);
  // The same for one of this shard's Ports.
  int reserve_port(const Payer& payer, Reservation& out);
  // Returns -EDQUOT: the program has all that the operator's `option` allows.
  int over_quota(const char* option, std::uint64_t value);
  // Returns -EDQUOT: the Bufx tables of the program take `taken` bytes and may not grow.
  int over_tables(std::uint64_t taken);

  // Returns -EACCES, with this text for the reply.
  int forbidden(std::string why);

  // Answers one request: puts the result of `work` into the reply, and the text of a refusal. An
  // exception becomes an error of this request, so that it affects only the asker.
  template <typename Work>
  int answer(ReplyMessage& reply, Work&& work) {
    why_.clear();
    answering_ = true;
    int result = 0;
    try {
      result = work();
    } catch (const std::bad_alloc&) {
      result = -ENOMEM;
    } catch (...) {
      result = -EIO;
    }
    answering_ = false;
    if (result != 0) reply.refuse(result, result == -EDQUOT || result == -EACCES ? why_ : "");
    return result;
  }

 private:
  Quotas quotas_;
  const unsigned shard_, shards_;
  const std::shared_ptr<Budgets> budgets_;
  // With several shards, what each user has of the Ports of this one: a user may have half of the
  // link's Ports, which are more than one shard has. Only Resource::kConnections has a total.
  const std::shared_ptr<Budgets> own_ports_ = std::make_shared<Budgets>();
  int first_reserved_file_ = std::numeric_limits<int>::max();
  bool answering_ = false;  // a refusal outside of a request needs no text
  std::string why_;
};

}  // namespace stp::service

// SPDX-License-Identifier: BSD-3-Clause
// What programs may do and make: quotas and what programs use of them, what this process has left,
// rules on ports, and the refusals.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "libst/ipc/requests.h"
#include "stp/base/mutex.h"
#include "stp/base/scarce_memory.h"
#include "stp/types.h"

namespace stp::host {

// What each user of a link may have. All programs of a user count together. A program reserves a
// resource before it makes it; the Reservation returns it when destroyed.
//
// The rule: a user may hold L / (N + 1), where L is what the other users have left of the total,
// and N counts the users that hold some of the resource, this one included. So the first user may
// have a half, and there is always something left for a newcomer: at least a sixth of the total for
// the second user, a twelfth for the third. Everybody may have 1/256 of the total while that much
// is left, and of open files as many as one program needs. Only the total limits root, the user of
// the daemon, and a program with a Node of its own.

// What decides the total of a resource: a number; the machine's memory, as others allocate it; the
// memory that this process may have, divided by a number; or what else the kernel lets this process
// have (set_process_totals). With an option of its own, an operator may choose another one.
enum class TotalBy : std::uint8_t { kNumber, kMachine, kPartOfMemory, kProcess };

// The resources: a name for programs (in JSON and of a metric), the heading of a column, words for
// use in a sentence, the option or setting that an operator raises, its total, and, if that option
// is for this alone, its help. Their order is that in a list for stpctl.
#define STP_RESOURCES(X)                                                                          \
  X(Clients, "clients", "CLIENTS", "places of programs", "--max-clients", kNumber, 256, nullptr)  \
  X(Endpoints, "endpoints", "ENDPOINTS", "endpoints", "--total-endpoints", kNumber, 65'536,       \
    "Endpoints")                                                                                  \
  /* With spare ones of listeners: each may take a Port, which is a 16-bit name. */               \
  X(Connections, "connections", "CONNECTIONS", "connections", "--user-share", kNumber, 65'535,    \
    nullptr)                                                                                      \
  X(QueueBytes, "queue_bytes", "QUEUES", "bytes of queues", "--total-queues", kPartOfMemory, 4,   \
    "Memory of the queues of connections [a quarter of what stpd may have]")                      \
  X(Regions, "regions", "REGIONS", "regions", "--total-regions", kNumber, 262'144,                \
    "Mapped regions")                                                                             \
  X(MappedBytes, "mapped_bytes", "MAPPED", "mapped bytes", "--total-mapped", kMachine, 1,         \
    "Mapped memory [as much as the machine has]")                                                 \
  X(Mx, "mx", "MX", "Mx", "--user-share", kNumber, 65'535, nullptr)                               \
  /* Memory of the Node's tables: Bufx entries. */                                                \
  X(TableBytes, "table_bytes", "TABLES", "bytes of Bufx tables", "--total-tables", kPartOfMemory, \
    16, "Memory of tables of Bufx [a sixteenth of what stpd may have]")                           \
  X(WindowBytes, "window_bytes", "WINDOWS", "bytes of windows", "--total-windows", kPartOfMemory, \
    16, "Memory to track incoming data [a sixteenth of what stpd may have]")                      \
  X(Mappings, "mappings", "MAPPINGS", "mappings of the daemon", "vm.max_map_count", kProcess, 0,  \
    nullptr)                                                                                      \
  X(Files, "files", "FILES", "open files of the daemon", "LimitNOFILE", kProcess, 0, nullptr)

enum class Resource : std::uint8_t {
#define STP_RESOURCE(Name, ...) k##Name,
  STP_RESOURCES(STP_RESOURCE)
#undef STP_RESOURCE
};

struct ResourceRule {
  Resource resource;
  const char* name;
  const char* heading;
  const char* plural;
  const char* remedy;
  TotalBy by;
  std::uint64_t usual;  // the number
  const char* help;     // of the option `remedy`; nullptr: that is not for this alone
};
inline constexpr std::array kResourceRules = std::to_array<ResourceRule>({
#define STP_RESOURCE(Name, name, heading, plural, remedy, by, usual, help) \
  {Resource::k##Name, name, heading, plural, remedy, TotalBy::by, usual, help},
    STP_RESOURCES(STP_RESOURCE)
#undef STP_RESOURCE
});
inline constexpr std::size_t kResources = kResourceRules.size();
constexpr const ResourceRule& describe(Resource resource) {
  return kResourceRules[static_cast<std::size_t>(resource)];
}

// The totals that an operator has chosen, or the numbers that are usual. 0: a part of memory.
class Totals {
 public:
  constexpr Totals() {
    for (const auto& rule : kResourceRules)
      if (rule.by == TotalBy::kNumber) (*this)[rule.resource] = rule.usual;
  }
  constexpr std::uint64_t& operator[](Resource resource) {
    return chosen_[static_cast<std::size_t>(resource)];
  }
  // Bytes: what the machine has, and what this process may have.
  struct Memory {
    std::uint64_t machine, process;
  };
  // Not for what the kernel decides.
  [[nodiscard]] constexpr std::uint64_t of(Resource resource, const Memory& memory) const {
    const auto chosen = chosen_[static_cast<std::size_t>(resource)];
    const auto& rule = describe(resource);
    if (chosen != 0) return chosen;
    if (rule.by == TotalBy::kMachine) return memory.machine / rule.usual;
    return rule.by == TotalBy::kPartOfMemory ? memory.process / rule.usual : chosen;
  }

 private:
  std::array<std::uint64_t, kResources> chosen_{};
};

inline constexpr std::uint64_t kNoBound = ~std::uint64_t{0};
inline constexpr unsigned kUserShare = 50;  // per cent of the total, for a user who is alone

// The most that one of `users` may hold while the others hold `others` of `total`. `percent`: what
// a single user may have; 50 gives the rule above. `least`: what everybody may have while there is
// something, if 1/256 is less.
std::uint64_t share_of(std::uint64_t total, std::uint64_t others, std::size_t users,
                       unsigned percent, std::uint64_t least = 1);

// Open files that the first program of a user takes: six, and some for connections and regions
// that are just being made.
inline constexpr std::uint64_t kFilesOfAProgram = 8;

// How much of each resource.
using Amounts = std::array<std::uint64_t, kResources>;

class Account;
class Reservation;

// Thread-safe.
class Budgets : public std::enable_shared_from_this<Budgets> {
 public:
  // Both apply to later reservations; existing ones stay. A resource without a total is not
  // limited.
  void set_total(Resource resource, std::uint64_t total);
  void set_share(unsigned percent);

  // `trusted`: only the totals limit this user.
  Account account(uid_t uid, bool trusted);

  struct Usage {
    uid_t uid = 0;
    bool trusted = false;
    Amounts used{};
    Amounts most{};  // what it may hold now; kNoBound: not limited
  };
  // Returns the user with the lowest uid above `uid`; for nullopt, the user with the lowest uid of
  // all. A user is listed while it has a program or holds a reservation.
  [[nodiscard]] std::optional<Usage> after(std::optional<uid_t> uid) const;

 private:
  friend class Account;
  friend class Reservation;
  struct User {
    uid_t uid = 0;
    bool trusted = false;
    std::size_t holders = 0;  // accounts and reservations
    Amounts used{};
  };
  // One resource, all users together.
  struct Whole {
    std::uint64_t total = kNoBound, used = 0;
    std::size_t users = 0;  // users that hold some
  };
  [[nodiscard]] std::uint64_t most_of(const User& user, std::size_t resource) const
      STP_REQUIRES(mutex_);
  bool take(User& user, Resource resource, std::uint64_t amount, bool first);
  void give(User& user, const Amounts& amounts, bool whole);
  void close(User& user);
  void forget_if_empty(User& user) STP_REQUIRES(mutex_);
  [[nodiscard]] std::string refusal(const User& user, Resource resource) const;

  mutable Mutex mutex_;
  std::array<Whole, kResources> wholes_ STP_GUARDED_BY(mutex_){};
  unsigned percent_ STP_GUARDED_BY(mutex_) = kUserShare;
  std::map<uid_t, User> users_ STP_GUARDED_BY(mutex_);
};

// What one object holds of its user's budgets: an amount of each resource. Returns it all when
// destroyed.
class Reservation {
 public:
  Reservation() = default;
  ~Reservation() { reset(); }
  Reservation(Reservation&& other) noexcept { *this = std::move(other); }
  Reservation& operator=(Reservation&& other) noexcept;
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  void reset();
  // Returns to the budget what exceeds `amount`.
  void shrink(Resource resource, std::uint64_t amount);
  // Takes over the other reservation. Both must be of the same user, or one of them empty.
  void join(Reservation&& other);
  [[nodiscard]] std::uint64_t amount(Resource resource) const {
    return amounts_[static_cast<std::size_t>(resource)];
  }

 private:
  friend class Account;
  std::shared_ptr<Budgets> budgets_;
  Budgets::User* user_ = nullptr;
  Amounts amounts_{};
};

// A program's access to the budgets of its user.
class Account {
 public:
  Account() = default;
  ~Account() { close(); }
  Account(Account&& other) noexcept { *this = std::move(other); }
  Account& operator=(Account&& other) noexcept;
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  // Adds it to `out`, which is empty or of the same user. Returns false if the user may not have
  // that much more.
  [[nodiscard]] bool reserve(Resource resource, std::uint64_t amount, Reservation& out) const;
  // Explains a refusal to the program: the total, what this user holds, and what an operator can
  // change.
  [[nodiscard]] std::string refusal(Resource resource) const;
  // Of an open account only.
  [[nodiscard]] uid_t uid() const { return user_->uid; }

 private:
  friend class Budgets;
  void close();
  std::shared_ptr<Budgets> budgets_;
  Budgets::User* user_ = nullptr;
};

// Quotas: limits of programs, so that none uses up the service. What one program may have, all its
// endpoints together. A row: its member in Quotas and ProgramUse, the default, stpd's option,
// whether that is a SIZE, and its help. A request beyond a quota fails with -EDQUOT. Their order is
// that of stpd --help.
#define STP_PROGRAM_QUOTAS(X)                                                                     \
  /* And spare ones for connections to come. */                                                   \
  X(connections, 4'096, "--max-connections", false,                                               \
    "Connections, including those kept ready for a listener")                                     \
  X(slots, std::uint64_t{1} << 21, "--max-slots", false, "Slots of all its connections together") \
  /* Memory of the service's own process costs the service nothing and is not counted. */         \
  X(mapped_bytes, std::uint64_t{16} << 30, "--max-mapped", true, "Memory it has mapped")          \
  X(regions, 65'536, "--max-regions", false, "Mapped regions")                                    \
  /* Mx are 16-bit names, shared by all clients of a link. */                                     \
  X(mxs, 8'192, "--max-mx", false, "Mx")                                                          \
  X(endpoints, 1'024, "--max-endpoints", false, "Endpoints")                                      \
  X(queue_bytes, std::uint64_t{256} << 20, "--max-queues", true,                                  \
    "Memory of the queues of its connections")                                                    \
  /* Of the tables that map Bufx to memory. No option: a program can map fewer buffers. */        \
  X(table_bytes, std::uint64_t{128} << 20, nullptr, true, nullptr)

// What else an operator may choose. A row as above.
#define STP_OTHER_QUOTAS(X)                                                       \
  X(map_bytes, std::uint64_t{4} << 30, "--max-map", true, "Memory in one st_map") \
  X(clients, describe(Resource::kClients).usual, "--max-clients", false,          \
    "Clients of a link at a time")

struct Quotas {
#define STP_QUOTA(name, usual, ...) std::uint64_t name = usual;
  STP_PROGRAM_QUOTAS(STP_QUOTA)
  STP_OTHER_QUOTAS(STP_QUOTA)
#undef STP_QUOTA
  // For all clients together, and the share that one user may have (above). The total of
  // Resource::kClients is `clients`.
  unsigned user_share = kUserShare;
  Totals totals{};
};

// What one program uses of a link, on all shards together: what its quotas limit, and
// its credit for address resolution.
// One thread at a time makes objects for a program; the threads of all shards remove them.
struct ProgramUse {
  using Count = std::atomic<std::uint64_t>;
#define STP_QUOTA(name, ...) Count name{0};
  STP_PROGRAM_QUOTAS(STP_QUOTA)
#undef STP_QUOTA
  // Its credit for resolving unknown addresses: service.cpp.
  std::atomic<Time> asked_until{0};
};

struct QuotaRule {
  std::uint64_t Quotas::*limit;
  ProgramUse::Count ProgramUse::*used;  // nullptr: it limits no sum of one program
  const char* option;                   // nullptr: no operator chooses it
  bool size;                            // the option's value is written as a SIZE
  const char* help;
};
inline constexpr std::array kQuotaRules = std::to_array<QuotaRule>({
#define STP_QUOTA(name, usual, ...) {&Quotas::name, &ProgramUse::name, __VA_ARGS__},
    STP_PROGRAM_QUOTAS(STP_QUOTA)
#undef STP_QUOTA
#define STP_QUOTA(name, usual, ...) {&Quotas::name, nullptr, __VA_ARGS__},
        STP_OTHER_QUOTAS(STP_QUOTA)
#undef STP_QUOTA
});

namespace limits {

// Larger than any region, but small enough that sums of lengths do not overflow 64 bits.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

// Spare channels per listening endpoint, for connections that nobody has accepted yet. Fewer if the
// channels are so large that they would take more than kStockBytes.
inline constexpr std::uint32_t kBacklog = 16;
inline constexpr std::size_t kStockBytes = std::size_t{4} << 20;

// Additional places, reserved for administrators to watch from.
inline constexpr std::size_t kOperatorPlaces = 8;

}  // namespace limits

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
// (above), and this shard's Ports. A refusal is -EDQUOT, or -EACCES where the operator's rules
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
  [[nodiscard]] const Budgets& budgets() const { return *budgets_; }

  // Only the totals limit root, the user of this process, and kUnknownUser.
  [[nodiscard]] Payer payer(uid_t user);

  // Returns 0 or -EDQUOT, with the text for the reply of the present request.
  int reserve(const Payer& payer, Resource resource, std::uint64_t amount, Reservation& out);
  // The same for one of this shard's Ports.
  int reserve_port(const Payer& payer, Reservation& out);
  // Returns 0, or -EDQUOT with the text: the program may not use that much more of what a quota
  // limits.
  int within(const ProgramUse& use, ProgramUse::Count ProgramUse::*of, std::uint64_t more);

  // Returns -EACCES, with this text for the reply.
  int forbidden(std::string why);

  // Answers one request: puts the result of `work` into the reply, and the text of a refusal. An
  // exception becomes an error of this request, so that it affects only the asker.
  template <typename Work>
  int answer(ipc::ReplyMessage& reply, Work&& work) {
    why_.clear();
    answering_ = true;
    int result = 0;
    try {
      result = within_memory(work, [] { return -ENOMEM; });
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

}  // namespace stp::host

// SPDX-License-Identifier: BSD-3-Clause
// What each user of a link may have. All programs of a user count together. A program reserves a
// resource before it makes it; the Reservation returns it when destroyed.
//
// The rule: a user may hold L / (N + 1), where L is what the other users have left of the total,
// and N counts the users that hold some of the resource, this one included. So the first user may
// have a half, and there is always something left for a newcomer: at least a sixth of the total for
// the second user, a twelfth for the third. Everybody may have 1/256 of the total while that much
// is left, and of open files as many as one program needs. Only the total limits root, the user of
// the daemon, and a program with a Node of its own.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace stp::service {

// What decides the total of a resource: a number; the machine's memory divided by a number; or what
// the kernel lets this process have (set_process_totals). With an option of its own, an operator
// may choose another one.
enum class TotalBy : std::uint8_t { kNumber, kPartOfMemory, kProcess };

// The resources: a name for programs (in JSON and of a metric), words for use in a sentence, the
// option or setting that an operator raises, its total, and, if that option is for this alone, its
// help. Their order is that in a list for stpctl.
#define STP_RESOURCES(X)                                                                      \
  X(Clients, "clients", "places of programs", "--max-clients", kNumber, 256, nullptr)         \
  X(Endpoints, "endpoints", "endpoints", "--total-endpoints", kNumber, 65'536, "Endpoints")   \
  /* With spare ones of listeners: each may take a Port, which is a 16-bit name. */           \
  X(Connections, "connections", "connections", "--user-share", kNumber, 65'535, nullptr)      \
  X(QueueBytes, "queue_bytes", "bytes of queues", "--total-queues", kPartOfMemory, 4,         \
    "Memory of the queues of connections [a quarter of the machine's]")                       \
  X(Regions, "regions", "regions", "--total-regions", kNumber, 262'144, "Mapped regions")     \
  X(MappedBytes, "mapped_bytes", "mapped bytes", "--total-mapped", kPartOfMemory, 1,          \
    "Mapped memory [as much as the machine has]")                                             \
  X(Mx, "mx", "Mx", "--user-share", kNumber, 65'535, nullptr)                                 \
  /* Memory of the Node's tables: Bufx entries. */                                            \
  X(TableBytes, "table_bytes", "bytes of Bufx tables", "--total-tables", kPartOfMemory, 16,   \
    "Memory of tables of Bufx [a sixteenth of the machine's]")                                \
  X(WindowBytes, "window_bytes", "bytes of windows", "--total-windows", kPartOfMemory, 16,    \
    "Memory to track incoming data [a sixteenth of the machine's]")                           \
  X(Mappings, "mappings", "mappings of the daemon", "vm.max_map_count", kProcess, 0, nullptr) \
  X(Files, "files", "open files of the daemon", "LimitNOFILE", kProcess, 0, nullptr)

enum class Resource : std::uint8_t {
#define STP_RESOURCE(Name, ...) k##Name,
  STP_RESOURCES(STP_RESOURCE)
#undef STP_RESOURCE
};

struct ResourceRule {
  Resource resource;
  const char* name;
  const char* plural;
  const char* remedy;
  TotalBy by;
  std::uint64_t usual;  // the number
  const char* help;     // of the option `remedy`; nullptr: that is not for this alone
};
inline constexpr std::array kResourceRules = std::to_array<ResourceRule>({
#define STP_RESOURCE(Name, name, plural, remedy, by, usual, help) \
  {Resource::k##Name, name, plural, remedy, TotalBy::by, usual, help},
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
  // For a machine with so much memory. Not for what the kernel decides.
  [[nodiscard]] constexpr std::uint64_t of(Resource resource, std::uint64_t memory) const {
    const auto chosen = chosen_[static_cast<std::size_t>(resource)];
    const auto& rule = describe(resource);
    return rule.by == TotalBy::kPartOfMemory && chosen == 0 ? memory / rule.usual : chosen;
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

// Open files that the first program of a user takes: five, and some for connections and regions
// that are just being made.
inline constexpr std::uint64_t kFilesOfAProgram = 8;

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
    std::array<std::uint64_t, kResources> used{};
    std::array<std::uint64_t, kResources> most{};  // what it may hold now; kNoBound: not limited
  };
  // Returns the user with the lowest uid above `uid`; for nullopt, the user with the lowest uid of
  // all. A user is listed while it has a program or holds a reservation.
  [[nodiscard]] std::optional<Usage> after(std::optional<uid_t> uid) const;
  [[nodiscard]] std::uint64_t used(Resource resource) const;
  [[nodiscard]] std::size_t users() const;

 private:
  friend class Account;
  friend class Reservation;
  struct User {
    uid_t uid = 0;
    bool trusted = false;
    std::size_t holders = 0;  // accounts and reservations
    std::array<std::uint64_t, kResources> used{};
  };
  // One resource, all users together.
  struct Whole {
    std::uint64_t total = kNoBound, used = 0;
    std::size_t users = 0;  // users that hold some
  };
  [[nodiscard]] std::uint64_t most_of(const User& user, std::size_t resource) const;
  bool take(User& user, Resource resource, std::uint64_t amount);
  void give(User& user, Resource resource, std::uint64_t amount, bool whole);
  void close(User& user);
  void forget_if_empty(User& user);
  [[nodiscard]] std::string refusal(const User& user, Resource resource) const;

  mutable std::mutex mutex_;
  std::array<Whole, kResources> wholes_{};
  unsigned percent_ = kUserShare;
  std::map<uid_t, User> users_;
};

// An amount of a resource. Returns it to the budget when destroyed.
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
  void shrink(std::uint64_t amount);
  // Takes over the other reservation. Both must be of the same user and resource, or one of them
  // empty.
  void join(Reservation&& other);
  [[nodiscard]] std::uint64_t amount() const { return amount_; }

 private:
  friend class Account;
  std::shared_ptr<Budgets> budgets_;
  Budgets::User* user_ = nullptr;
  Resource resource_{};
  std::uint64_t amount_ = 0;
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

  // Returns false if the user may not have that much more. First returns to the budget what `out`
  // held.
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

}  // namespace stp::service

// SPDX-License-Identifier: BSD-3-Clause
// What the users of one link may have, all programs of a user together. Whoever makes something
// reserves it before, and the reservation gives it back when it goes.
//
// The rule: a user may hold as much of a thing as the others have left of it, divided by the number
// of users that hold some (this one counts) and one more. So the first user may have a half and a
// newcomer finds something, always: the second a sixth of the whole at least, the third a twelfth.
// Anybody may have 1/256 of the whole while there is something. Root, the user of the daemon, and a
// program with a Node of its own are held by the whole only.
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

enum class Resource : std::uint8_t {
  kClients,      // places of programs
  kEndpoints,    // endpoints
  kConnections,  // connections and channels in stock: each may take a Port
  kQueueBytes,   // memory of channels
  kRegions,      // mapped regions
  kMappedBytes,  // the programs' memory that is mapped
  kMx,           // Mx
  kTableBytes,   // memory of the Node's tables: Bufx entries
  kWindowBytes,  // memory that keeps track of what is on its way to them
  kMappings,     // mappings of the daemon's address space
  kFiles,        // open files of the daemon
};
inline constexpr std::size_t kResources = 11;

struct ResourceName {
  const char* name;    // for programs: in JSON, and of a metric
  const char* plural;  // in a sentence
  const char* remedy;  // what an operator raises
};
const ResourceName& describe(Resource resource);

inline constexpr std::uint64_t kNoBound = ~std::uint64_t{0};
inline constexpr unsigned kUserShare = 50;  // per cent, of a user who is alone

// The most that one of `users` may hold where the others hold `others` of `total`. `percent`: what
// one who is alone may have; 50 is the rule above.
std::uint64_t share_of(std::uint64_t total, std::uint64_t others, std::size_t users,
                       unsigned percent);

class Account;
class Reservation;

// Safe to use from several threads.
class Budgets : public std::enable_shared_from_this<Budgets> {
 public:
  // Both hold for what is asked from now on. Without a total there is no bound.
  void set_total(Resource resource, std::uint64_t total);
  void set_share(unsigned percent);

  // `trusted`: held by the totals only.
  Account account(uid_t uid, bool trusted);

  struct Usage {
    uid_t uid = 0;
    bool trusted = false;
    std::array<std::uint64_t, kResources> used{};
    std::array<std::uint64_t, kResources> most{};  // that it may have now; kNoBound: no bound
  };
  // The user with the lowest uid above `uid`; nullopt for the lowest of all. A user is known while
  // it has a program or anything else.
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
  struct Whole {
    std::uint64_t total = kNoBound, used = 0;
    std::size_t users = 0;  // that hold some
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

// So much of something. Gives it back when it goes.
class Reservation {
 public:
  Reservation() = default;
  ~Reservation() { reset(); }
  Reservation(Reservation&& other) noexcept { *this = std::move(other); }
  Reservation& operator=(Reservation&& other) noexcept;
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  void reset();
  // What is beyond `amount` goes back.
  void shrink(std::uint64_t amount);
  // Both become this one; they are of the same user and resource, or one of them is of none.
  void join(Reservation&& other);
  [[nodiscard]] std::uint64_t amount() const { return amount_; }

 private:
  friend class Account;
  std::shared_ptr<Budgets> budgets_;
  Budgets::User* user_ = nullptr;
  Resource resource_{};
  std::uint64_t amount_ = 0;
};

// A program's way to what its user may have.
class Account {
 public:
  Account() = default;
  ~Account() { close(); }
  Account(Account&& other) noexcept { *this = std::move(other); }
  Account& operator=(Account&& other) noexcept;
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  // False: the user may not have that much more. What `out` held is given back first.
  [[nodiscard]] bool reserve(Resource resource, std::uint64_t amount, Reservation& out) const;
  // Why not, for who asked: what there is, how much of it this user has, and what would help.
  [[nodiscard]] std::string refusal(Resource resource) const;

 private:
  friend class Budgets;
  void close();
  std::shared_ptr<Budgets> budgets_;
  Budgets::User* user_ = nullptr;
};

}  // namespace stp::service

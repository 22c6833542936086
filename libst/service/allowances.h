// SPDX-License-Identifier: BSD-3-Clause
// What programs may still make: the quotas of one program (limits.h), the budgets of its user
// (budget.h), and this shard's Ports. A refusal is -EDQUOT, or -EACCES where the operator's rules
// forbid something; the reply's text says what is used up or missing, and what an operator can
// change.
#pragma once

#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string>

#include "libst/service/budget.h"
#include "libst/service/limits.h"
#include "libst/service/messages.h"
#include "libst/service/text_field.h"

namespace stp::service {

// The accounts of a program: its user's budgets, of the link and of this shard's Ports.
struct Payer {
  Account account, ports;
};

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
  int answer(Reply& reply, Work&& work) {
    why_.clear();
    answering_ = true;
    try {
      reply.result = work();
    } catch (const std::bad_alloc&) {
      reply.result = -ENOMEM;
    } catch (...) {
      reply.result = -EIO;
    }
    answering_ = false;
    if (reply.result == -EDQUOT || reply.result == -EACCES) set_text(reply.text, why_);
    return reply.result;
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

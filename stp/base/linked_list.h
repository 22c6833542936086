// SPDX-License-Identifier: BSD-3-Clause
// Intrusive lists: adding, removing and appending a whole list cost a few stores, whatever the
// length. A member leaves its list when it is destroyed.
#pragma once

#include "stp/base/assert.h"

namespace stp {

// The base of each member. `Tag`: a member may be in one list per tag.
template <typename Tag>
class ListHook {
 public:
  ListHook() = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { unlink(); }

  [[nodiscard]] bool linked() const { return next_ != nullptr; }
  // Does nothing if the member is in no list.
  void unlink() {
    if (next_ == nullptr) return;
    STP_ASSERT(previous_->next_ == this && next_->previous_ == this,
               "the neighbours of a member of a list point to it");
    previous_->next_ = next_;
    next_->previous_ = previous_;
    next_ = previous_ = nullptr;
  }

 private:
  template <typename T, typename Same>
  friend class LinkedList;
  ListHook* previous_ = nullptr;
  ListHook* next_ = nullptr;
};

template <typename T, typename Tag>
class LinkedList {
 public:
  LinkedList() { end_.next_ = end_.previous_ = &end_; }

  [[nodiscard]] bool empty() const { return end_.next_ == &end_; }
  // Requires a list that is not empty.
  [[nodiscard]] T& front() const {
    STP_ASSERT(!empty(), "a list that is asked for its first member has one");
    return static_cast<T&>(*end_.next_);
  }
  // nullptr: empty.
  [[nodiscard]] T* first() const { return member(end_.next_); }
  [[nodiscard]] T* after(const T& each) const {
    return member(static_cast<const ListHook<Tag>&>(each).next_);
  }
  // Requires a member that is in no list of this tag.
  void push_back(T& each) { insert(static_cast<ListHook<Tag>&>(each)); }
  T& pop_front() {
    auto& each = front();
    static_cast<ListHook<Tag>&>(each).unlink();
    return each;
  }
  // Moves all members of `other` to the end.
  void append(LinkedList& other) {
    STP_ASSERT(&other != this, "a list is appended to another one");
    if (other.empty()) return;
    auto* const from = other.end_.next_;
    auto* const to = other.end_.previous_;
    other.end_.next_ = other.end_.previous_ = &other.end_;
    from->previous_ = end_.previous_;
    end_.previous_->next_ = from;
    to->next_ = &end_;
    end_.previous_ = to;
  }
  // Empties the list without visiting the members. They stay linked to each other until they leave.
  void disband() {
    end_.unlink();
    end_.next_ = end_.previous_ = &end_;
  }

 private:
  [[nodiscard]] T* member(ListHook<Tag>* link) const {
    return link == &end_ ? nullptr : static_cast<T*>(link);
  }
  void insert(ListHook<Tag>& link) {
    STP_ASSERT(!link.linked(), "what enters a list is in no other of its tag");
    link.previous_ = end_.previous_;
    link.next_ = &end_;
    end_.previous_->next_ = &link;
    end_.previous_ = &link;
  }
  ListHook<Tag> end_;  // before the first and after the last
};

}  // namespace stp

#include "tercel/recsys/embedding/waiting_keys.h"

namespace tercel::recsys {

int64_t WaitingKeys::add(int64_t key, int64_t count) {
  int64_t place = free_;
  if (place == kNone) {
    place = static_cast<int64_t>(entries_.size());
    entries_.emplace_back();
  } else {
    free_ = entries_[static_cast<size_t>(place)].next;
  }
  entries_[static_cast<size_t>(place)] = {key, count, last_, kNone};
  (last_ == kNone ? first_ : entries_[static_cast<size_t>(last_)].next) = place;
  last_ = place;
  ++size_;
  return place;
}

void WaitingKeys::remove(int64_t place) {
  Entry& entry = entries_[static_cast<size_t>(place)];
  (entry.before == kNone ? first_ : entries_[static_cast<size_t>(entry.before)].next) = entry.next;
  (entry.next == kNone ? last_ : entries_[static_cast<size_t>(entry.next)].before) = entry.before;
  entry.next = free_;
  free_ = place;
  --size_;
}

}  // namespace tercel::recsys

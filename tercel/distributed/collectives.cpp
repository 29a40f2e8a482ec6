#include <algorithm>
#include <cstring>

#include "tercel/distributed/collectives_impl.h"

namespace tercel::distributed {

namespace {

// All-reduces whose scratch memory is no more than this are done with one message to each rank instead of two.
constexpr int64_t kFewBytes = int64_t{64} << 10;

std::byte* at(void* data, int64_t bytes) { return static_cast<std::byte*>(data) + bytes; }
const std::byte* at(const void* data, int64_t bytes) { return static_cast<const std::byte*>(data) + bytes; }

/** Of memory that may overlap with itself; either may be null where there are no bytes. */
void copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, static_cast<size_t>(bytes));
}

/** Calls f(peer) for the other ranks, beginning with the next one, so that not all send to the same one at once. */
template <class F>
void for_each_peer(const Exchange& exchange, F&& f) {
  for (int64_t step = 1; step < exchange.size(); ++step) f((exchange.rank() + step) % exchange.size());
}

/** Reduces `count` elements that are `mine` of this rank and those in `scratch` of the others, in the order of ranks.
 */
void reduce_parts(const Exchange& exchange, void* out, const void* mine, const std::byte* scratch,
                  const Elements& elements) {
  std::vector<const void*> parts;
  for (int64_t r = 0; r < exchange.size(); ++r)
    parts.push_back(r == exchange.rank() ? mine : at(scratch, r * elements.count * elements.bytes));
  if (elements.count > 0) elements.reduce(out, parts, elements.count);
}

}  // namespace

PartBounds equal_parts(int64_t elements, int64_t ranks) {
  PartBounds bounds;
  for (int64_t r = 0; r <= ranks; ++r) bounds.push_back(elements / ranks * r + std::min(r, elements % ranks));
  return bounds;
}

bool barrier(Exchange& exchange, int64_t phase) {
  // Dissemination (Hensgen, Finkel, Manber 1988): after phase k a rank knows of the 2^k before it.
  const int64_t distance = int64_t{1} << phase;
  if (distance >= exchange.size()) return false;
  exchange.receive((exchange.rank() + exchange.size() - distance) % exchange.size(), nullptr, 0);
  exchange.send((exchange.rank() + distance) % exchange.size(), nullptr, 0);
  return true;
}

bool broadcast(Exchange& exchange, int64_t phase, void* data, int64_t bytes, int64_t root) {
  // A binomial tree: in phase k those that have the data, which are the first 2^k behind the root, send it on.
  const int64_t size = exchange.size(), place = (exchange.rank() + size - root) % size, have = int64_t{1} << phase;
  if (have >= size) return false;
  if (place < have && place + have < size)
    exchange.send((place + have + root) % size, data, bytes);
  else if (place >= have && place < 2 * have)
    exchange.receive((place - have + root) % size, data, bytes);
  return true;
}

bool all_gather(Exchange& exchange, int64_t phase, void* out, const PartBounds& bounds, const void* in) {
  if (phase > 0) return false;
  const auto bytes = [&](int64_t r) { return bounds[static_cast<size_t>(r) + 1] - bounds[static_cast<size_t>(r)]; };
  const auto part = [&](int64_t r) { return at(out, bounds[static_cast<size_t>(r)]); };
  for_each_peer(exchange, [&](int64_t peer) { exchange.receive(peer, part(peer), bytes(peer)); });
  for_each_peer(exchange, [&](int64_t peer) { exchange.send(peer, in, bytes(exchange.rank())); });
  copy(part(exchange.rank()), in, bytes(exchange.rank()));
  return true;
}

bool all_to_all(Exchange& exchange, int64_t phase, void* out, const PartBounds& out_bounds, const void* in,
                const PartBounds& bounds) {
  if (phase > 0) return false;
  const auto size_of = [](const PartBounds& b, int64_t r) {
    return b[static_cast<size_t>(r) + 1] - b[static_cast<size_t>(r)];
  };
  const auto begin = [](const PartBounds& b, int64_t r) { return b[static_cast<size_t>(r)]; };
  for_each_peer(exchange, [&](int64_t peer) {
    exchange.receive(peer, at(out, begin(out_bounds, peer)), size_of(out_bounds, peer));
  });
  for_each_peer(exchange,
                [&](int64_t peer) { exchange.send(peer, at(in, begin(bounds, peer)), size_of(bounds, peer)); });
  const int64_t me = exchange.rank();
  copy(at(out, begin(out_bounds, me)), at(in, begin(bounds, me)), size_of(bounds, me));
  return true;
}

bool reduce_scatter(Exchange& exchange, int64_t phase, void* out, const void* in, const Elements& elements) {
  const int64_t part = elements.count * elements.bytes;
  std::byte* const scratch = exchange.scratch(part * exchange.size());
  if (phase == 0) {
    for_each_peer(exchange, [&](int64_t peer) { exchange.receive(peer, scratch + peer * part, part); });
    for_each_peer(exchange, [&](int64_t peer) { exchange.send(peer, at(in, peer * part), part); });
    return true;
  }
  reduce_parts(exchange, out, at(in, exchange.rank() * part), scratch, elements);
  return false;
}

namespace {

/** An all-reduce in which every rank has all elements of all ranks, and reduces them. */
bool all_reduce_at_once(Exchange& exchange, int64_t phase, void* data, const Elements& elements) {
  const int64_t bytes = elements.count * elements.bytes;
  std::byte* const scratch = exchange.scratch(bytes * exchange.size());
  if (phase == 0) {
    for_each_peer(exchange, [&](int64_t peer) { exchange.receive(peer, scratch + peer * bytes, bytes); });
    for_each_peer(exchange, [&](int64_t peer) { exchange.send(peer, data, bytes); });
    return true;
  }
  reduce_parts(exchange, data, data, scratch, elements);
  return false;
}

}  // namespace

bool all_reduce(Exchange& exchange, int64_t phase, void* data, const Elements& elements) {
  const int64_t bytes = elements.count * elements.bytes, size = exchange.size(), me = exchange.rank();
  if (size == 1) return false;
  // Two ranks send the same number of bytes either way.
  if (size == 2 || bytes <= kFewBytes / size) return all_reduce_at_once(exchange, phase, data, elements);
  PartBounds bounds = equal_parts(elements.count, size);
  for (int64_t& bound : bounds) bound *= elements.bytes;
  const auto begin = [&](int64_t r) { return bounds[static_cast<size_t>(r)]; };
  const int64_t mine = begin(me + 1) - begin(me);
  void* const part = at(data, begin(me));
  if (phase > 0) {
    if (phase == 1)
      reduce_parts(exchange, part, part, exchange.scratch(mine * size),
                   {mine / elements.bytes, elements.bytes, elements.reduce});
    return all_gather(exchange, phase - 1, data, bounds, part);
  }
  std::byte* const scratch = exchange.scratch(mine * size);
  for_each_peer(exchange, [&](int64_t peer) { exchange.receive(peer, scratch + peer * mine, mine); });
  for_each_peer(exchange, [&](int64_t peer) {
    exchange.send(peer, at(static_cast<const void*>(data), begin(peer)), begin(peer + 1) - begin(peer));
  });
  return true;
}

}  // namespace tercel::distributed

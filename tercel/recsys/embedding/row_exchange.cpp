#include "tercel/recsys/embedding/row_exchange.h"

#include <algorithm>
#include <array>
#include <bit>
#include <random>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

/** Numbers of different keys, in the order in which they come. */
struct RowExchange::UniqueKeys {
  struct Entry {
    int64_t key = 0;
    uint32_t number = 0;
    uint32_t call = 0;  // in which it was set
  };
  std::vector<Entry> entries;
  uint32_t call = 0;
  // Other in each process, so that nobody can choose keys that fall together; numbers do not depend on it.
  uint64_t salt = std::random_device()();

  size_t place_of(int64_t key) const {
    uint64_t hash = (static_cast<uint64_t>(key) ^ salt) * 0xd6e8feb86659fd93U;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93U;
    return (hash ^ hash >> 32) & (entries.size() - 1);
  }
  /** Gives numbers[i] the number of keys[i], and appends the different keys. */
  void number(Span<int64_t> keys, int64_t* numbers, std::vector<int64_t>& different) {
    const size_t wanted = std::bit_ceil(2 * keys.size() + 16);
    if (entries.size() < wanted || ++call == 0) {
      entries.assign(std::max(wanted, entries.size()), {});
      call = 1;
    }
    constexpr size_t kBlock = 32;  // keys whose cache misses overlap
    std::array<size_t, kBlock> places{};
    for (size_t begin = 0; begin < keys.size(); begin += kBlock) {
      const size_t count = std::min(kBlock, keys.size() - begin);
      for (size_t i = 0; i < count; ++i) {
        places[i] = place_of(keys[begin + i]);
        __builtin_prefetch(&entries[places[i]], 1);
      }
      for (size_t i = 0; i < count; ++i) {
        const int64_t key = keys[begin + i];
        for (size_t at = places[i];; at = (at + 1) & (entries.size() - 1)) {
          Entry& entry = entries[at];
          if (entry.call != call) {
            entry = {key, static_cast<uint32_t>(different.size()), call};
            different.push_back(key);
          }
          if (entry.key != key) continue;
          numbers[begin + i] = entry.number;
          break;
        }
      }
    }
  }
};

class RowExchange::Counts {
 public:
  Counts(int64_t ranks, size_t requests)
      : requests_(requests), counts_(empty({ranks * static_cast<int64_t>(requests)}, kInt64)) {}

  const Tensor& tensor() const { return counts_; }
  int64_t ranks() const { return requests_ == 0 ? 0 : counts_.numel() / static_cast<int64_t>(requests_); }
  int64_t& at(int64_t rank, size_t request) const {
    return counts_.data<int64_t>()[static_cast<size_t>(rank) * requests_ + request];
  }
  int64_t of_request(size_t request) const {
    int64_t sum = 0;
    for (int64_t r = 0; r < ranks(); ++r) sum += at(r, request);
    return sum;
  }
  /** Elements of each rank, with so many for a key of these requests. */
  std::vector<int64_t> elements(Span<size_t> requests, Span<int64_t> widths) const {
    std::vector<int64_t> all(static_cast<size_t>(ranks()), 0);
    for (int64_t r = 0; r < ranks(); ++r)
      for (size_t i = 0; i < requests.size(); ++i) all[static_cast<size_t>(r)] += at(r, requests[i]) * widths[i];
    return all;
  }

 private:
  size_t requests_;
  Tensor counts_;
};

RowExchange::RowExchange(distributed::ProcessGroup& group) : group_(group), unique_(std::make_unique<UniqueKeys>()) {}
RowExchange::~RowExchange() = default;

/** Sets the positions of a request's keys, and adds the keys to those for their owners. */
void RowExchange::number_keys(const Request& request, std::vector<std::vector<int64_t>>& keys_for) {
  const Tensor keys = contiguous(to(request.keys, kInt64));
  const auto* const all = keys.data<int64_t>();
  const int64_t n = keys.numel();
  const Tensor positions = empty({n}, kInt64);
  auto* const position = positions.data<int64_t>();
  std::vector<int64_t> different;
  if (request.is_unique) {
    different.reserve(static_cast<size_t>(n));
    unique_->number({all, static_cast<size_t>(n)}, position, different);
  } else {
    different.assign(all, all + n);
    for (int64_t i = 0; i < n; ++i) position[i] = i;
  }
  std::vector<int64_t> owners(different.size()), first(keys_for.size() + 1, 0);
  if (!request.table->owners(different, owners.data())) request.table->refuse_keys(keys);
  for (const int64_t owner : owners) ++first[static_cast<size_t>(owner) + 1];
  for (size_t r = 0; r < keys_for.size(); ++r) first[r + 1] += first[r];
  std::vector<int64_t> places(different.size());
  for (size_t i = 0; i < different.size(); ++i) {
    const auto owner = static_cast<size_t>(owners[i]);
    places[i] = first[owner]++;
    keys_for[owner].push_back(different[i]);
  }
  for (int64_t i = 0; i < n; ++i) position[i] = places[static_cast<size_t>(position[i])];
  positions_.push_back(positions);
}

std::vector<Tensor> RowExchange::send_keys(Span<Request> requests) {
  const NoGradGuard no_grad;
  const int64_t ranks = group_.size();
  positions_.clear();
  asked_ = std::make_unique<Counts>(ranks, requests.size());
  given_ = std::make_unique<Counts>(ranks, requests.size());
  if (requests.empty()) return {};
  std::vector<std::vector<int64_t>> keys_for(static_cast<size_t>(ranks));
  std::vector<int64_t> before(keys_for.size(), 0);
  for (size_t q = 0; q < requests.size(); ++q) {
    number_keys(requests[q], keys_for);
    for (size_t r = 0; r < keys_for.size(); ++r) {
      const auto now = static_cast<int64_t>(keys_for[r].size());
      asked_->at(static_cast<int64_t>(r), q) = now - before[r];
      before[r] = now;
    }
  }
  group_.all_to_all(given_->tensor(), asked_->tensor()).wait();

  std::vector<size_t> each(requests.size());
  for (size_t q = 0; q < each.size(); ++q) each[q] = q;
  const std::vector<int64_t> ones(requests.size(), 1);
  const std::vector<int64_t> out_counts = given_->elements(each, ones), counts = asked_->elements(each, ones);
  const auto total = [](const std::vector<int64_t>& parts) {
    int64_t sum = 0;
    for (const int64_t part : parts) sum += part;
    return sum;
  };
  const Tensor own = empty({total(counts)}, kInt64), come = empty({total(out_counts)}, kInt64);
  auto* next = own.data<int64_t>();
  for (const std::vector<int64_t>& keys : keys_for) next = std::copy(keys.begin(), keys.end(), next);
  group_.all_to_all(come, own, out_counts, counts).wait();

  std::vector<Tensor> found;
  std::vector<int64_t*> ends;
  for (const size_t q : each) {
    found.push_back(empty({given_->of_request(q)}, kInt64));
    ends.push_back(found.back().data<int64_t>());
  }
  const auto* from = come.data<int64_t>();
  for (int64_t r = 0; r < ranks; ++r)
    for (const size_t q : each) {
      const int64_t n = given_->at(r, q);
      ends[q] = std::copy_n(from, n, ends[q]);
      from += n;
    }
  return found;
}

/** Sends rows, by the rank they go to, and gives those that come, by the rank they come from. */
std::vector<Tensor> RowExchange::send_rows(Span<size_t> requests, Span<Tensor> rows, const Counts& sent,
                                           const Counts& received) {
  if (rows.empty()) return {};
  std::vector<int64_t> widths;
  for (const Tensor& part : rows) widths.push_back(part.size(1));
  const std::vector<int64_t> counts = sent.elements(requests, widths), out_counts = received.elements(requests, widths);
  const TensorOptions like(rows[0].dtype(), rows[0].device());

  Tensor own = reshape(rows[0], {-1});
  std::vector<Tensor> parts;
  if (rows.size() > 1) {
    std::vector<int64_t> done(rows.size(), 0);
    for (int64_t r = 0; r < group_.size(); ++r)
      for (size_t i = 0; i < rows.size(); ++i) {
        const int64_t n = sent.at(r, requests[i]);
        parts.push_back(reshape(rows[i].narrow(0, done[i], n), {n * widths[i]}));
        done[i] += n;
      }
    own = cat(parts, 0);
  }
  int64_t elements = 0;
  for (const int64_t count : out_counts) elements += count;
  const Tensor come = empty({elements}, like);
  group_.all_to_all(come, contiguous(own), out_counts, counts).wait();

  const auto shaped = [&](const Tensor& flat, size_t i) {
    return reshape(flat, {flat.numel() / std::max<int64_t>(1, widths[i]), widths[i]});
  };
  if (rows.size() == 1) return {shaped(come, 0)};
  std::vector<std::vector<Tensor>> of(rows.size());
  int64_t begin = 0;
  for (int64_t r = 0; r < group_.size(); ++r)
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t n = received.at(r, requests[i]) * widths[i];
      of[i].push_back(come.narrow(0, begin, n));
      begin += n;
    }
  std::vector<Tensor> found;
  for (size_t i = 0; i < rows.size(); ++i) found.push_back(shaped(cat(of[i], 0), i));
  return found;
}

std::vector<Tensor> RowExchange::send_vectors(Span<Rows> rows) {
  const NoGradGuard no_grad;
  std::vector<size_t> requests;
  std::vector<Tensor> vectors;
  for (const Rows& part : rows) {
    requests.push_back(part.request);
    vectors.push_back(index_select(part.weight.detach(), 0, part.rows));
  }
  return send_rows(requests, vectors, *given_, *asked_);
}

std::vector<Tensor> RowExchange::send_gradients(Span<Gradients> gradients) {
  const NoGradGuard no_grad;
  std::vector<size_t> requests;
  std::vector<Tensor> values;
  for (const Gradients& part : gradients) {
    requests.push_back(part.request);
    values.push_back(part.values);
  }
  return send_rows(requests, values, *asked_, *given_);
}

}  // namespace tercel::recsys

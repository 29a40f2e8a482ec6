#include "tercel/recsys/embedding/key_exchange.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tercel/ops/factories/factories.h"

namespace tercel::recsys {

namespace {

constexpr int64_t kNoBatch = -1;  // in place of a number of keys
constexpr int64_t kCounts = 3;

}  // namespace

KeyExchange::KeyExchange(distributed::ProcessGroup& group, std::vector<RowQuestions> questions)
    : group_(group), requests_(questions.size()), questions_(std::move(questions)) {
  std::vector<Counts> counts;
  for (int64_t r = 0; r < group_.size(); ++r)
    for (const RowQuestions& of : questions_) {
      const RowQuestions::Part& part = of.parts[static_cast<size_t>(r)];
      counts.push_back({static_cast<int64_t>(part.keys.size()), static_cast<int64_t>(part.summed_keys.size()),
                        static_cast<int64_t>(part.sum_sizes.size())});
    }
  begin(counts);
}

KeyExchange::KeyExchange(distributed::ProcessGroup& group, size_t requests) : group_(group), requests_(requests) {
  begin(std::vector<Counts>(static_cast<size_t>(group.size()) * requests, {kNoBatch, 0, 0}));
}

void KeyExchange::begin(const std::vector<Counts>& counts) {
  own_counts_ = empty({static_cast<int64_t>(counts.size()) * kCounts}, kInt64);
  counts_ = empty(own_counts_.sizes(), kInt64);
  auto* next = own_counts_.data<int64_t>();
  for (const Counts& of : counts)
    for (const int64_t count : {of.keys, of.summed_keys, of.sums}) *next++ = count;
  counting_ = group_.all_to_all(counts_, own_counts_);
}

KeyExchange::Counts KeyExchange::given(int64_t rank, size_t request) const {
  const int64_t* const counts =
      counts_.data<int64_t>() + (rank * static_cast<int64_t>(requests_) + static_cast<int64_t>(request)) * kCounts;
  return {counts[0], counts[1], counts[2]};
}

int64_t KeyExchange::vectors_from(int64_t rank, size_t request) const {
  return questions_[request].parts[static_cast<size_t>(rank)].vectors();
}

int64_t KeyExchange::vectors_for(int64_t rank, size_t request) const {
  const Counts counts = given(rank, request);
  return counts.keys + counts.sums;
}

bool KeyExchange::send() {
  counting_->wait();
  std::vector<int64_t> sent(static_cast<size_t>(group_.size()), 0), received(sent.size(), 0);
  bool have_all = questions_.size() == requests_;
  for (int64_t r = 0; r < group_.size(); ++r)
    for (size_t q = 0; q < requests_; ++q) {
      const Counts counts = given(r, q);
      have_all = have_all && counts.keys != kNoBatch;
      received[static_cast<size_t>(r)] += counts.numbers();
    }
  if (!have_all) return false;
  for (size_t r = 0; r < sent.size(); ++r)
    for (const RowQuestions& of : questions_) {
      const RowQuestions::Part& part = of.parts[r];
      sent[r] += static_cast<int64_t>(part.keys.size() + part.summed_keys.size() + part.sum_sizes.size());
    }
  own_keys_ = empty({std::accumulate(sent.begin(), sent.end(), int64_t{0})}, kInt64);
  keys_ = empty({std::accumulate(received.begin(), received.end(), int64_t{0})}, kInt64);
  auto* next = own_keys_.data<int64_t>();
  for (size_t r = 0; r < sent.size(); ++r)
    for (const RowQuestions& of : questions_)
      for (const std::vector<int64_t>* numbers : {&of.parts[r].keys, &of.parts[r].summed_keys, &of.parts[r].sum_sizes})
        next = std::copy(numbers->begin(), numbers->end(), next);
  sending_ = group_.all_to_all(keys_, own_keys_, received, sent);
  return true;
}

std::vector<AskedKeys> KeyExchange::receive() {
  sending_->wait();
  std::vector<AskedKeys> asked(requests_);
  std::vector<int64_t*> keys(requests_), ends(requests_, nullptr);
  for (size_t q = 0; q < requests_; ++q) {
    Counts all;
    for (int64_t r = 0; r < group_.size(); ++r) {
      const Counts counts = given(r, q);
      all.keys += counts.keys;
      all.summed_keys += counts.summed_keys;
      all.sums += counts.sums;
    }
    asked[q].keys = empty({all.keys + all.summed_keys}, kInt64);
    keys[q] = asked[q].keys.data<int64_t>();
    if (all.sums == 0) continue;
    asked[q].row_offsets = empty({all.keys + all.sums + 1}, kInt64);
    ends[q] = asked[q].row_offsets.data<int64_t>();
    *ends[q] = 0;
  }
  const auto* from = keys_.data<int64_t>();
  for (int64_t r = 0; r < group_.size(); ++r)
    for (size_t q = 0; q < requests_; ++q) {
      const Counts counts = given(r, q);
      keys[q] = std::copy_n(from, counts.keys + counts.summed_keys, keys[q]);
      from += counts.keys + counts.summed_keys;
      if (ends[q] != nullptr) {
        const auto add = [&](int64_t size) {
          ends[q][1] = ends[q][0] + size;
          ++ends[q];
        };
        for (int64_t i = 0; i < counts.keys; ++i) add(1);
        for (int64_t i = 0; i < counts.sums; ++i) add(from[i]);
      }
      from += counts.sums;
    }
  return asked;
}

}  // namespace tercel::recsys

#include "tercel/recsys/embedding/row_questions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <random>
#include <utility>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"

namespace tercel::recsys {

/** Numbers of different keys, in the order in which they come. */
struct RowAsker::UniqueKeys {
  // Without its key, which is different[number]: most keys of a batch are new, and then only an entry is read, of a
  // table of half the size.
  struct Entry {
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
  /** Gives numbers[i] the number of keys[i], and appends the different keys to `different`, which is empty. */
  void number(Span<int64_t> keys, int64_t* numbers, std::vector<int64_t>& different) {
    const size_t wanted = std::bit_ceil(2 * keys.size() + 16);
    if (entries.size() < wanted || ++call == 0) {
      entries.assign(std::max(wanted, entries.size()), {});
      call = 1;
    }
    different.resize(keys.size());
    uint32_t found = 0;
    constexpr size_t kAhead = 32;  // keys whose cache misses overlap
    std::array<size_t, kAhead> places{};
    const auto fetch = [&](size_t i) {
      places[i % kAhead] = place_of(keys[i]);
      __builtin_prefetch(&entries[places[i % kAhead]], 1);
    };
    for (size_t i = 0; i < std::min(kAhead, keys.size()); ++i) fetch(i);
    for (size_t i = 0; i < keys.size(); ++i) {
      const int64_t key = keys[i];
      size_t at = places[i % kAhead];
      if (i + kAhead < keys.size()) fetch(i + kAhead);
      for (;; at = (at + 1) & (entries.size() - 1)) {
        Entry& entry = entries[at];
        if (entry.call != call) {
          entry = {found, call};
          different[found++] = key;
        } else if (different[entry.number] != key) {
          continue;
        }
        numbers[i] = entry.number;
        break;
      }
    }
    different.resize(found);
  }
};

/** The bags of a request, with the owner of each key, and which slots are asked for as sums. */
struct RowAsker::Bags {
  Tensor row_offsets;
  Span<int64_t> keys;
  std::vector<int64_t> owners;
  std::vector<bool> summed;  // of slots
  int64_t slots = 0;

  int64_t count() const { return row_offsets.numel() - 1; }
  int64_t begin(int64_t bag) const { return row_offsets.data<int64_t>()[bag]; }
  int64_t end(int64_t bag) const { return row_offsets.data<int64_t>()[bag + 1]; }
  int64_t size(int64_t bag) const { return end(bag) - begin(bag); }
  bool is_summed(int64_t bag) const { return summed[static_cast<size_t>(bag % slots)]; }
  bool have_sums() const { return std::find(summed.begin(), summed.end(), true) != summed.end(); }

  bool have_several_keys() const {
    for (int64_t bag = 0; bag < count(); ++bag)
      if (size(bag) > 1) return true;
    return false;
  }
  /** The keys of the slots that are asked for as rows. */
  std::vector<int64_t> keys_of_rows() const {
    std::vector<int64_t> found;
    for (int64_t bag = 0; bag < count(); ++bag)
      if (!is_summed(bag)) found.insert(found.end(), keys.begin() + begin(bag), keys.begin() + end(bag));
    return found;
  }
};

/** Where a vector is among those of its rank. */
struct RowAsker::Place {
  int64_t owner = 0, number = 0;
};

/** The rows that are asked for. */
struct RowAsker::Rows {
  std::vector<int64_t> numbers;  // of each key: which of the places
  std::vector<Place> places;
};

RowAsker::RowAsker() : unique_(std::make_unique<UniqueKeys>()) {}
RowAsker::~RowAsker() = default;

/** Whether sums of a slot are fewer bytes than its rows; `rank` is this one. */
bool RowAsker::is_less_as_sums(const Bags& bags, int64_t slot, int64_t ranks, int64_t rank, int64_t bytes_of_vector) {
  constexpr int64_t kKey = sizeof(int64_t);
  std::vector<int64_t> sent, last_bag(static_cast<size_t>(ranks), -1);
  int64_t sums = 0;
  for (int64_t bag = slot; bag < bags.count(); bag += bags.slots)
    for (int64_t i = bags.begin(bag); i < bags.end(bag); ++i) {
      const int64_t owner = bags.owners[static_cast<size_t>(i)];
      if (owner == rank) continue;
      if (std::exchange(last_bag[static_cast<size_t>(owner)], bag) != bag) ++sums;
      sent.push_back(bags.keys[static_cast<size_t>(i)]);
    }
  const auto keys = static_cast<int64_t>(sent.size());
  if (keys == sums) return false;  // no bag has two keys of a rank
  std::vector<int64_t> numbers(sent.size()), different;
  unique_->number(sent, numbers.data(), different);
  const int64_t of_vector = kKey + 2 * bytes_of_vector;  // with its gradient, and its key or the size of the sum
  return keys * kKey + sums * of_vector < static_cast<int64_t>(different.size()) * of_vector;
}

/** Asks for the rows of keys. */
RowAsker::Rows RowAsker::ask_rows(const RowRequest& request, Span<int64_t> keys, RowQuestions& questions) {
  Rows rows;
  rows.numbers.resize(keys.size());
  std::vector<int64_t> different;
  if (request.is_unique) {
    unique_->number(keys, rows.numbers.data(), different);
  } else {
    different.assign(keys.begin(), keys.end());
    std::iota(rows.numbers.begin(), rows.numbers.end(), int64_t{0});
  }
  std::vector<int64_t> owners(different.size());
  if (!request.table->owners(different, owners.data())) request.table->refuse_keys(request.keys);
  for (RowQuestions::Part& part : questions.parts)
    part.keys.reserve(different.size() / questions.parts.size() * 5 / 4);  // of most batches
  rows.places.reserve(different.size());
  for (size_t i = 0; i < different.size(); ++i) {
    std::vector<int64_t>& own = questions.parts[static_cast<size_t>(owners[i])].keys;
    rows.places.push_back({owners[i], static_cast<int64_t>(own.size())});
    own.push_back(different[i]);
  }
  return rows;
}

/** Asks for sums, of each bag by rank. */
std::vector<RowAsker::Place> RowAsker::ask_sums(const Bags& bags, RowQuestions& questions,
                                                std::vector<int64_t>& sums_of_bag) {
  std::vector<Place> sums;
  sums_of_bag.assign(static_cast<size_t>(bags.count()), 0);
  std::vector<std::vector<int64_t>> keys_of(questions.parts.size());  // of a bag
  for (int64_t bag = 0; bag < bags.count(); ++bag) {
    if (!bags.is_summed(bag)) continue;
    for (int64_t i = bags.begin(bag); i < bags.end(bag); ++i)
      keys_of[static_cast<size_t>(bags.owners[static_cast<size_t>(i)])].push_back(bags.keys[static_cast<size_t>(i)]);
    for (size_t r = 0; r < keys_of.size(); ++r) {
      if (keys_of[r].empty()) continue;
      RowQuestions::Part& part = questions.parts[r];
      sums.push_back({static_cast<int64_t>(r), static_cast<int64_t>(part.sum_sizes.size())});
      part.sum_sizes.push_back(static_cast<int64_t>(keys_of[r].size()));
      part.summed_keys.insert(part.summed_keys.end(), keys_of[r].begin(), keys_of[r].end());
      ++sums_of_bag[static_cast<size_t>(bag)];
      keys_of[r].clear();
    }
  }
  return sums;
}

RowQuestions RowAsker::ask(const RowRequest& request, int64_t ranks, int64_t rank) {
  const NoGradGuard no_grad;
  const Tensor all = contiguous(to(request.keys, kInt64));
  const auto n = static_cast<size_t>(all.numel());
  RowQuestions questions;
  questions.parts.resize(static_cast<size_t>(ranks));
  Bags bags{{}, {all.data<int64_t>(), n}, {}, {}, request.slots};
  if (request.row_offsets.defined()) {
    bags.row_offsets = contiguous(to(request.row_offsets, kInt64));
    if (bags.have_several_keys()) {
      bags.owners.resize(n);
      if (!request.table->owners(bags.keys, bags.owners.data())) request.table->refuse_keys(request.keys);
      for (int64_t s = 0; s < bags.slots; ++s)
        bags.summed.push_back(is_less_as_sums(bags, s, ranks, rank, request.bytes_of_vector));
    }
  }
  const auto first_vectors = [&] {  // of each rank
    std::vector<int64_t> first(questions.parts.size(), 0);
    for (size_t r = 1; r < first.size(); ++r) first[r] = first[r - 1] + questions.parts[r - 1].vectors();
    return first;
  };
  const auto position_of = [](const std::vector<int64_t>& first, const Place& row) {
    return first[static_cast<size_t>(row.owner)] + row.number;
  };
  if (!bags.have_sums()) {
    const Rows rows = ask_rows(request, bags.keys, questions);
    const std::vector<int64_t> first = first_vectors();
    questions.positions = empty({all.numel()}, kInt64);
    auto* position = questions.positions.data<int64_t>();
    for (const int64_t number : rows.numbers)
      *position++ = position_of(first, rows.places[static_cast<size_t>(number)]);
    return questions;
  }

  const Rows rows = ask_rows(request, bags.keys_of_rows(), questions);
  std::vector<int64_t> sums_of_bag;
  const std::vector<Place> sums = ask_sums(bags, questions, sums_of_bag);
  const std::vector<int64_t> first = first_vectors();
  questions.positions = empty({static_cast<int64_t>(rows.numbers.size() + sums.size())}, kInt64);
  questions.row_offsets = empty({bags.count() + 1}, kInt64);
  auto* position = questions.positions.data<int64_t>();
  auto* const begins = questions.row_offsets.data<int64_t>();
  begins[0] = 0;
  auto number = rows.numbers.begin();
  auto sum = sums.begin();
  for (int64_t bag = 0; bag < bags.count(); ++bag) {
    const bool is_summed = bags.is_summed(bag);
    const int64_t count = is_summed ? sums_of_bag[static_cast<size_t>(bag)] : bags.size(bag);
    for (int64_t i = 0; i < count; ++i, ++position) {
      if (!is_summed) {
        *position = position_of(first, rows.places[static_cast<size_t>(*number++)]);
        continue;
      }
      const auto rows_there = static_cast<int64_t>(questions.parts[static_cast<size_t>(sum->owner)].keys.size());
      *position = position_of(first, *sum++) + rows_there;
    }
    begins[bag + 1] = begins[bag] + count;
  }
  return questions;
}

}  // namespace tercel::recsys

#include "tercel/recsys/embedding/row_questions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "tercel/ops/factories/tensor_of.h"
#include "tercel/recsys/embedding/static_table.h"
#include "tests/support/errors.h"

namespace tercel::recsys {
namespace {

constexpr int64_t kRanks = 3, kRank = 1, kRows = 1000;

/** With three slots of keys from 100, 400 and 700 on. */
std::unique_ptr<StaticTable> table_on(Placement placement) {
  auto table = std::make_unique<StaticTable>("t", 100, kRows, 4, nn::Init{});
  table->set_slots({300, 600, kRows});
  table->place({placement, {0, 1, 2}}, kRank);
  return table;
}

/** Bags of random keys: as many in each slot as `sizes` says, of a number of different ones. */
struct RandomBags {
  std::vector<int64_t> keys, offsets = {0};
  int64_t slots;

  RandomBags(int64_t samples, const std::vector<int64_t>& sizes, const std::vector<int64_t>& different)
      : slots(static_cast<int64_t>(sizes.size())) {
    uint64_t state = 7;
    const auto draw = [&state](int64_t below) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(below));
    };
    for (int64_t b = 0; b < samples; ++b)
      for (size_t s = 0; s < sizes.size(); ++s) {
        for (int64_t k = 0; k < sizes[s]; ++k) keys.push_back(100 + 300 * static_cast<int64_t>(s) + draw(different[s]));
        offsets.push_back(static_cast<int64_t>(keys.size()));
      }
  }
  RowRequest request(const EmbeddingTable& table, int64_t bytes_of_vector = 64) const {
    return {&table, tensor(keys), true, tensor(offsets), slots, bytes_of_vector};
  }
};

/** The sum of each bag's keys, if vectors are keys and sums of keys. */
std::vector<int64_t> sums_of_bags(const RandomBags& bags, const RowQuestions& questions) {
  std::vector<int64_t> vectors;
  for (const RowQuestions::Part& part : questions.parts) {
    vectors.insert(vectors.end(), part.keys.begin(), part.keys.end());
    auto key = part.summed_keys.begin();
    for (const int64_t size : part.sum_sizes) {
      EXPECT_GE(size, 1);
      vectors.push_back(0);
      for (int64_t i = 0; i < size; ++i) vectors.back() += *key++;
    }
    EXPECT_TRUE(key == part.summed_keys.end());
  }
  const Tensor offsets = questions.row_offsets.defined() ? questions.row_offsets : tensor(bags.offsets);
  std::vector<int64_t> sums;
  for (int64_t bag = 0; bag + 1 < offsets.numel(); ++bag) {
    sums.push_back(0);
    for (int64_t i = offsets.data<int64_t>()[bag]; i < offsets.data<int64_t>()[bag + 1]; ++i)
      sums.back() += vectors.at(static_cast<size_t>(questions.positions.data<int64_t>()[i]));
  }
  EXPECT_EQ(questions.positions.numel(), offsets.data<int64_t>()[offsets.numel() - 1]);
  return sums;
}

std::vector<int64_t> sums_of_bags(const RandomBags& bags) {
  std::vector<int64_t> sums;
  for (size_t bag = 0; bag + 1 < bags.offsets.size(); ++bag) {
    sums.push_back(0);
    for (int64_t i = bags.offsets[bag]; i < bags.offsets[bag + 1]; ++i)
      sums.back() += bags.keys[static_cast<size_t>(i)];
  }
  return sums;
}

size_t rows_asked(const RowQuestions& questions) {
  size_t rows = 0;
  for (const RowQuestions::Part& part : questions.parts) rows += part.keys.size();
  return rows;
}

TEST(RowQuestions, AskForEachKeyOnce) {
  const auto table = table_on(Placement::Distributed);
  const RandomBags bags(50, {1, 1}, {20, 5});
  RowAsker asker;
  for (int i = 0; i < 2; ++i) {
    const RowQuestions questions = asker.ask(bags.request(*table), kRanks, kRank);
    EXPECT_FALSE(questions.row_offsets.defined());
    EXPECT_EQ(rows_asked(questions), std::set<int64_t>(bags.keys.begin(), bags.keys.end()).size());
    for (int64_t r = 0; r < kRanks; ++r)
      for (const int64_t key : questions.parts[static_cast<size_t>(r)].keys) EXPECT_EQ((key - 100) % kRanks, r);
    EXPECT_EQ(sums_of_bags(bags, questions), sums_of_bags(bags));
  }
}

TEST(RowQuestions, AskForEachOccurrence) {
  const auto table = table_on(Placement::Distributed);
  const RandomBags bags(50, {3}, {10});
  RowRequest request = bags.request(*table);
  request.is_unique = false;
  request.row_offsets = {};
  const RowQuestions questions = RowAsker().ask(request, kRanks, kRank);
  EXPECT_EQ(rows_asked(questions), 150u);
  EXPECT_EQ(sums_of_bags(bags, questions), sums_of_bags(bags));
}

TEST(RowQuestions, AskForSumsOfSlotsWhereTheyAreFewerBytes) {
  for (const Placement placement : {Placement::Distributed, Placement::Localized}) {
    SCOPED_TRACE(to_string(placement));
    const auto table = table_on(placement);
    // The keys of the first slot are frequent, those of the third nearly all different. Localized, slot 0 is on rank 0
    // and slot 2 on rank 2.
    const RandomBags bags(40, {6, 1, 12}, {8, 300, 300});
    const RowQuestions questions = RowAsker().ask(bags.request(*table), kRanks, kRank);
    ASSERT_TRUE(questions.row_offsets.defined());
    EXPECT_EQ(sums_of_bags(bags, questions), sums_of_bags(bags));
    size_t sums = 0;
    for (const RowQuestions::Part& part : questions.parts) {
      sums += part.sum_sizes.size();
      for (const int64_t key : part.keys) EXPECT_LT(key, 700) << "of the third slot";
      for (const int64_t key : part.summed_keys) EXPECT_GE(key, 700) << "of another slot";
    }
    EXPECT_EQ(sums, placement == Placement::Localized ? 40u : sums);
    EXPECT_LE(sums, 120u);
    EXPECT_GE(sums, 40u);
    EXPECT_LE(rows_asked(questions), 8u + 40u);
  }
}

TEST(RowQuestions, AskForRowsWhereVectorsAreSmall) {
  // With vectors of no bytes, a sum only adds what says how many keys it has.
  const auto table = table_on(Placement::Distributed);
  const RandomBags bags(40, {12}, {300});
  EXPECT_FALSE(RowAsker().ask(bags.request(*table, 0), kRanks, kRank).row_offsets.defined());
  EXPECT_TRUE(RowAsker().ask(bags.request(*table, 256), kRanks, kRank).row_offsets.defined());
}

TEST(RowQuestions, HaveBagsWithoutKeys) {
  const auto table = table_on(Placement::Distributed);
  RandomBags bags(2, {0, 12}, {1, 300});
  const RowQuestions questions = RowAsker().ask(bags.request(*table, 256), kRanks, kRank);
  EXPECT_EQ(sums_of_bags(bags, questions), sums_of_bags(bags));
  const RandomBags none(0, {1, 1}, {1, 1});
  const RowQuestions nothing = RowAsker().ask(none.request(*table), kRanks, kRank);
  EXPECT_EQ(nothing.positions.numel(), 0);
  EXPECT_EQ(rows_asked(nothing), 0u);
}

TEST(RowQuestions, RefuseKeysWithoutARow) {
  const auto table = table_on(Placement::Distributed);
  RandomBags bags(4, {12}, {300});
  bags.keys[5] = 99;
  EXPECT_NE(tercel::test::message_of<IndexError>([&] {
              RowAsker().ask(bags.request(*table, 256), kRanks, kRank);
            }).find("99"),
            std::string::npos);
  bags.keys[5] = 1100;
  RowRequest request = bags.request(*table);
  request.row_offsets = {};
  EXPECT_NE(tercel::test::message_of<IndexError>([&] { RowAsker().ask(request, kRanks, kRank); }).find("1100"),
            std::string::npos);
}

}  // namespace
}  // namespace tercel::recsys

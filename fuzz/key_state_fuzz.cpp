// Any numbers are the state of a hashed table's keys, from which it goes on, or a DataError that changes nothing. The
// first bytes choose the table's options and the sizes of the tensors, the rest are their numbers: mostly small ones,
// so that they are often right. After a state that is taken, the table has it, and grows.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <vector>

#include "tercel/ops/factories/factories.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/embedding/hashed_table.h"
#include "tercel/util/error.h"

namespace {

using namespace tercel;
using recsys::HashedTable;

void expect(bool holds) {
  if (!holds) std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }
  /** One byte; 0xff: eight more. */
  int64_t number() {
    const uint8_t first = byte();
    if (first < 0xf0) return first;
    if (first < 0xff) return first - 0x100;
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return static_cast<int64_t>(value);
  }
  Tensor tensor() {
    const int64_t n = byte() % 32;
    Tensor t = empty({n}, kInt64);
    for (int64_t i = 0; i < n; ++i) t.data<int64_t>()[i] = number();
    return t;
  }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

std::vector<int64_t> values_of(const Tensor& t) { return {t.data<int64_t>(), t.data<int64_t>() + t.numel()}; }

/** The rows of the keys are different ones of the table, without those that are free. */
void check(HashedTable& table) {
  const Tensor keys = table.keys();
  const std::vector<int64_t> rows = values_of(table.find_rows(keys, recsys::NewKeys::Refuse));
  expect(table.statistics().keys == keys.numel());
  expect(std::set<int64_t>(rows.begin(), rows.end()).size() == rows.size());
  for (const int64_t row : rows) expect(row > 0 && row < table.rows());
  expect(table.weight().size(0) == table.rows());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  recsys::HashedTableOptions options;
  const uint8_t kind = input.byte();
  options.capacity = kind % 4 == 0 ? 0 : 20;
  options.eviction = kind % 4 == 2   ? recsys::Eviction::Frequency
                     : kind % 4 == 3 ? recsys::Eviction::Age
                                     : recsys::Eviction::None;
  options.admission = 1 + kind / 4 % 3;
  options.most_waiting = kind / 16 % 8;
  HashedTable table("t", 1, nn::Init::zero(), options);
  expect(table.allocate(1, {}, {}, [] { return true; }));
  std::vector<Tensor> state;
  for (size_t i = 0; i < 5; ++i) state.push_back(input.tensor());
  if (state[2].numel() % 2 == 0) state[2] = state[2].view({state[2].numel() / 2, 2});
  try {
    table.set_key_state(state);
  } catch (const DataError&) {
    expect(table.rows() == 1 && table.keys().numel() == 0);
    return 0;
  }
  check(table);
  const std::vector<Tensor> found = table.key_state();
  expect(values_of(found[2]) == values_of(state[2]));
  expect(values_of(found[1]) == values_of(state[1]));
  HashedTable again("t", 1, nn::Init::zero(), options);
  expect(again.allocate(1, {}, {}, [] { return true; }));
  again.set_key_state(found);
  for (int step = 0; step < 3; ++step) {
    const Tensor keys = input.tensor();
    std::vector<int64_t> rows;
    try {
      rows = values_of(table.find_rows(keys, recsys::NewKeys::Insert));
    } catch (const RuntimeError&) {  // of more keys than its capacity
      check(table);
      return 0;
    }
    expect(values_of(again.find_rows(keys, recsys::NewKeys::Insert)) == rows);
    check(table);
  }
  return 0;
}

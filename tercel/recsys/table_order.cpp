#include "tercel/recsys/table_order.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include "tercel/autograd/grad_mode.h"
#include "tercel/distributed/error.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/factories/tensor_of.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/embedding/table_rows.h"
#include "tercel/recsys/ranks.h"
#include "tercel/util/error.h"

namespace tercel::recsys {

namespace {

Span<int64_t> elements(const Tensor& t) { return {t.data<int64_t>(), static_cast<size_t>(t.numel())}; }

/** Of the rows of a table of a range, which are in the order of their keys. */
std::vector<int64_t> places_in_range(const TableShard& shard) {
  std::vector<int64_t> places;
  places.reserve(static_cast<size_t>(shard.rows()));
  for (const RowRun& run : shard.runs())
    for (int64_t i = 0; i < run.count; ++i) places.push_back(run.first + i * run.step);
  return places;
}

/**
 * Of keys, ascending, among those of all ranks, all of them different; and the number of all. In rounds, each rank
 * offers its next ones; those up to the least of the last ones that were offered are then known on all ranks.
 */
std::vector<int64_t> places_among_ranks(Span<int64_t> keys, distributed::ProcessGroup& group, int64_t keys_at_once,
                                        int64_t& count) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  const int64_t most = std::max<int64_t>(1, keys_at_once / group.size());
  std::vector<int64_t> places;
  places.reserve(keys.size());
  count = 0;
  while (true) {
    const Span<int64_t> left(keys.data() + places.size(), keys.size() - places.size());
    const Span<int64_t> offered(left.data(), std::min(left.size(), static_cast<size_t>(most)));
    const std::vector<int64_t> counts = numbers_of_ranks(group, static_cast<int64_t>(offered.size()));
    if (std::all_of(counts.begin(), counts.end(), [](int64_t n) { return n == 0; })) return places;
    const std::vector<int64_t> limits =
        numbers_of_ranks(group, offered.size() < left.size() ? offered[offered.size() - 1] : kAll);
    const int64_t limit = *std::min_element(limits.begin(), limits.end());
    const Tensor all = rows_of_ranks(group, tensor(std::vector<int64_t>(offered.begin(), offered.end())), counts);
    auto* const first = all.data<int64_t>();
    std::sort(first, first + all.numel());
    const auto* const known = std::upper_bound(first, first + all.numel(), limit);
    const auto* at = first;
    for (const int64_t key : offered) {
      if (key > limit) break;
      at = std::lower_bound(at, known, key);
      places.push_back(count + (at - first));
    }
    count += known - first;
  }
}

/** A window of the order on rank 0, of what the ranks have of it; nothing on others. */
Tensor window_of_ranks(distributed::ProcessGroup& group, const Tensor& places, const Tensor& values,
                       Span<int64_t> counts, int64_t rows) {
  const bool is_first = group.rank() == 0;
  const int64_t width = values.size(1), own = values.size(0);
  const auto to_first = [&](const Tensor& x, int64_t each) {
    std::vector<int64_t> from(counts.size(), 0), to(counts.size(), 0);
    to[0] = own * each;
    int64_t all = 0;
    for (size_t r = 0; is_first && r < counts.size(); ++r) all += from[r] = counts[r] * each;
    const Tensor found = empty({all}, TensorOptions(x.dtype(), x.device()));
    group.await([&] { return group.all_to_all(found, contiguous(x).flatten(), from, to); });
    return found;
  };
  const Tensor all_places = to_first(places, 1), all_values = to_first(values, width);
  if (!is_first) return {};
  TERCEL_ASSERT(all_places.numel() == rows);
  const Tensor window = empty({rows, width}, TensorOptions(values.dtype(), values.device()));
  index_copy_(window, 0, all_places, all_values.view({rows, width}));
  return window;
}

}  // namespace

RowRun RowOrder::within(int64_t begin, int64_t end) const {
  if (!places.defined()) return {begin, end - begin, 1};
  const Span<int64_t> all = elements(places);
  const auto first = std::lower_bound(all.begin(), all.end(), begin), last = std::lower_bound(first, all.end(), end);
  return {first - all.begin(), last - first, 1};
}

RowOrder order_of_keys(EmbeddingTable& table, distributed::ProcessGroup* group, int64_t keys_at_once) {
  KeyRows own = rows_of_keys(table);
  RowOrder order{own.keys.numel(), std::move(own.keys), std::move(own.rows), {}};
  if (table.shard().is_whole()) return order;
  TERCEL_CHECK(group != nullptr, RuntimeError, "embedding table '", table.name(),
               "': other ranks have a part of its rows");
  if (table.grows()) {
    order.places = tensor(places_among_ranks(elements(order.keys), *group, keys_at_once, order.count));
  } else {
    order.places = tensor(places_in_range(table.shard()));
    order.count = table.rows_of_all_ranks();
  }
  return order;
}

void take_in_order(const RowOrder& order, distributed::ProcessGroup* group, int64_t width,
                   FunctionRef<Tensor(int64_t first, int64_t count)> of, FunctionRef<void(const Tensor& window)> take,
                   int64_t most) {
  const NoGradGuard guard;
  const int64_t rows = std::max<int64_t>(1, most / std::max<int64_t>(1, width));
  if (!order.places.defined())
    return do_on_first(group, [&] {
      for (int64_t begin = 0; begin < order.count; begin += rows) take(of(begin, std::min(rows, order.count - begin)));
    });
  std::exception_ptr error;
  const auto attempt = [&error](auto&& work) {
    try {
      work();
    } catch (const DistributedError&) {
      throw;
    } catch (const std::exception&) {
      error = std::current_exception();
    }
  };
  for (int64_t begin = 0; begin < order.count; begin += rows) {
    const int64_t end = std::min(order.count, begin + rows);
    const RowRun own = order.within(begin, end);
    Tensor places, values;
    if (!error)
      attempt([&] {
        values = of(own.first, own.count);
        places = order.places.narrow(0, own.first, own.count).clone();
        for (int64_t i = 0; i < own.count; ++i) places.data<int64_t>()[i] -= begin;
      });
    const std::vector<int64_t> counts = numbers_of_ranks(*group, error ? -1 : own.count);
    if (std::any_of(counts.begin(), counts.end(), [](int64_t count) { return count < 0; })) break;
    const Tensor window = window_of_ranks(*group, places, values, counts, end - begin);
    if (group->rank() == 0) attempt([&] { take(window); });
  }
  do_together(group, [&] {
    if (error) std::rethrow_exception(error);
  });
}

void take_keys(const RowOrder& order, distributed::ProcessGroup* group, FunctionRef<void(const Tensor& window)> take) {
  take_in_order(
      order, group, /*width=*/1,
      [&](int64_t first, int64_t n) {
        return order.keys.narrow(0, first, n).view({n, 1});
      },
      [&](const Tensor& window) { take(window.flatten()); });
}

void take_rows(const RowOrder& order, distributed::ProcessGroup* group, const Tensor& matrix,
               FunctionRef<void(const Tensor& window)> take) {
  take_in_order(
      order, group, matrix.size(1),
      [&](int64_t first, int64_t n) { return index_select(matrix, 0, order.rows.narrow(0, first, n)); }, take);
}

}  // namespace tercel::recsys

#include "tercel/recsys/embedding/initialize_rows.h"

#include <algorithm>

#include "tercel/core/launch.h"
#include "tercel/ops/common/copy.h"
#include "tercel/recsys/embedding/initialize_rows_kernels.h"
#include "tercel/recsys/part_seed.h"
#include "tercel/util/ceil_div.h"

namespace tercel::recsys {

namespace {

constinit const KernelTable<InitialRowsFn> initialize_rows_kernels = TERCEL_CPU_KERNELS(initialize_rows);

constexpr int64_t kGrainElements = 1 << 14;

bool is_constant(const nn::Init& init) {
  return init.kind == nn::Init::Kind::Zero || init.kind == nn::Init::Kind::Constant;
}

/** With the keys from 0 on. */
InitialRowsLoop loop_of(const Tensor& rows, const nn::Init& init, uint64_t seed, std::string_view table) {
  TERCEL_CHECK(rows.dim() == 2 && (rows.dtype() == kFloat32 || rows.dtype() == kFloat64) &&
                   (rows.stride(1) == 1 || rows.size(1) <= 1),
               RuntimeError, "initialize_rows: expected float32 or float64 [n, dim] with contiguous rows but got ",
               describe(rows));
  InitialRowsLoop loop{};
  loop.dtype = rows.dtype();
  loop.normal = init.kind == nn::Init::Kind::Normal;
  loop.a = static_cast<float>(init.a);
  loop.b = static_cast<float>(init.b);
  loop.seed = seed_of_part(seed, table);
  loop.dim = rows.size(1);
  loop.stride = rows.stride(0);
  loop.rows = rows.data_ptr();
  return loop;
}

void run(const InitialRowsLoop& loop, const Tensor& rows, int64_t count) {
  if (loop.dim == 0) return;
  const auto kernel = initialize_rows_kernels[rows.device()];
  launch(rows.device(), 0, count, ceil_div(kGrainElements, loop.dim),
         [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
  rows.impl().bump_version();
}

template <class T>
void fill_rows_of(const Tensor& weight, Span<int64_t> row_numbers, double value) {
  const int64_t dim = weight.size(1), stride = weight.stride(0);
  auto* const first = weight.data<T>();
  launch(weight.device(), 0, static_cast<int64_t>(row_numbers.size()),
         ceil_div(kGrainElements, std::max<int64_t>(1, dim)), [&](int64_t begin, int64_t end) {
           for (int64_t i = begin; i < end; ++i)
             std::fill_n(first + row_numbers[static_cast<size_t>(i)] * stride, dim, static_cast<T>(value));
         });
}

}  // namespace

void fill_rows(const Tensor& weight, Span<int64_t> row_numbers, double value) {
  if (weight.dtype() == kFloat64)
    fill_rows_of<double>(weight, row_numbers, value);
  else
    fill_rows_of<float>(weight, row_numbers, value);
  weight.impl().bump_version();
}

void initialize_rows(const Tensor& rows, const nn::Init& init, uint64_t seed, std::string_view table,
                     int64_t first_key) {
  InitialRowsLoop loop = loop_of(rows, init, seed, table);
  loop.first_key = static_cast<uint64_t>(first_key);
  if (is_constant(init))
    fill_(rows, init.a);
  else
    run(loop, rows, rows.size(0));
}

void initialize_rows(const Tensor& weight, const nn::Init& init, uint64_t seed, std::string_view table,
                     Span<int64_t> keys, Span<int64_t> row_numbers) {
  TERCEL_CHECK(keys.size() == row_numbers.size(), RuntimeError, "initialize_rows: ", keys.size(), " keys for ",
               row_numbers.size(), " rows");
  InitialRowsLoop loop = loop_of(weight, init, seed, table);
  loop.keys = keys.data();
  loop.row_numbers = row_numbers.data();
  if (is_constant(init))
    fill_rows(weight, row_numbers, init.a);
  else
    run(loop, weight, static_cast<int64_t>(keys.size()));
}

}  // namespace tercel::recsys

#include "tercel/recsys/embedding/initialize_rows.h"

#include "tercel/core/launch.h"
#include "tercel/ops/common/copy.h"
#include "tercel/recsys/embedding/initialize_rows_kernels.h"
#include "tercel/recsys/part_seed.h"
#include "tercel/util/ceil_div.h"

namespace tercel::recsys {

namespace {

constinit const KernelTable<InitialRowsFn> initialize_rows_kernels = TERCEL_CPU_KERNELS(initialize_rows);

constexpr int64_t kGrainElements = 1 << 14;

}  // namespace

void initialize_rows(const Tensor& rows, const nn::Init& init, uint64_t seed, std::string_view table,
                     int64_t first_key) {
  TERCEL_CHECK(rows.dim() == 2 && (rows.dtype() == kFloat32 || rows.dtype() == kFloat64) &&
                   (rows.stride(1) == 1 || rows.size(1) <= 1),
               RuntimeError, "initialize_rows: expected float32 or float64 [n, dim] with contiguous rows but got ",
               describe(rows));
  if (init.kind == nn::Init::Kind::Zero || init.kind == nn::Init::Kind::Constant) {
    fill_(rows, init.a);
    return;
  }
  if (rows.numel() == 0) return;
  InitialRowsLoop loop{};
  loop.dtype = rows.dtype();
  loop.normal = init.kind == nn::Init::Kind::Normal;
  loop.a = static_cast<float>(init.a);
  loop.b = static_cast<float>(init.b);
  loop.seed = seed_of_part(seed, table);
  loop.first_key = static_cast<uint64_t>(first_key);
  loop.dim = rows.size(1);
  loop.stride = rows.stride(0);
  loop.rows = rows.data_ptr();
  const auto kernel = initialize_rows_kernels[rows.device()];
  launch(rows.device(), 0, rows.size(0), ceil_div(kGrainElements, loop.dim),
         [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
  rows.impl().bump_version();
}

}  // namespace tercel::recsys

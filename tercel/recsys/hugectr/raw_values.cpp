#include <algorithm>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/hugectr/raw_values_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::recsys::hugectr {

namespace {

constexpr int64_t kPart = int64_t{1} << 20;  // elements

}  // namespace

Tensor read_values(const std::string& path, ScalarType dtype, int64_t count, std::string_view what, int64_t header) {
  const File file = File::open_read(path);
  const int64_t size = file.size();
  int64_t expected = 0;
  const bool overflows = __builtin_mul_overflow(count, static_cast<int64_t>(item_size(dtype)), &expected) ||
                         __builtin_add_overflow(expected, header, &expected);
  TERCEL_CHECK(!overflows && size == expected, DataError, printable(path), ": expected ",
               overflows ? std::string("more") : format_count(expected), " bytes, ", what, ", found ",
               format_count(size));
  Tensor values = empty({count}, dtype);
  file.pread_exact(values.data_ptr(), values.nbytes(), header);
  return values;
}

void check_finite(const std::string& path, const Tensor& values, std::string_view what) {
  const NoGradGuard guard;
  const Tensor flat = values.flatten();
  for (int64_t start = 0; start < flat.numel(); start += kPart)
    TERCEL_CHECK(all(isfinite(flat.narrow(0, start, std::min(kPart, flat.numel() - start)))).item<bool>(), DataError,
                 printable(path), ": expected finite numbers, found NaN or an infinity in ", what);
}

void write_floats(FileWriter& out, const Tensor& values) {
  const NoGradGuard guard;
  const Tensor floats = contiguous(to(values, kFloat32));
  out.write(floats.data_ptr(), floats.nbytes());
}

void write_rows(FileWriter& out, const Tensor& matrix, const Tensor& rows) {
  const NoGradGuard guard;
  const int64_t part = std::max<int64_t>(1, kPart / std::max<int64_t>(1, matrix.size(1)));
  for (int64_t begin = 0; begin < rows.numel(); begin += part)
    write_floats(out, index_select(matrix, 0, rows.narrow(0, begin, std::min(part, rows.numel() - begin))));
}

}  // namespace tercel::recsys::hugectr

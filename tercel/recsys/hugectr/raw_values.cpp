#include <algorithm>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/hugectr/raw_values_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/file.h"
#include "tercel/util/format.h"

namespace tercel::recsys::hugectr {

ValuesFile::ValuesFile(const std::string& path, ScalarType dtype, int64_t count, std::string_view what, int64_t header)
    : file_(File::open_read(path)), dtype_(dtype), header_(header) {
  const int64_t size = file_.size();
  int64_t expected = 0;
  const bool overflows = __builtin_mul_overflow(count, static_cast<int64_t>(item_size(dtype)), &expected) ||
                         __builtin_add_overflow(expected, header, &expected);
  TERCEL_CHECK(!overflows && size == expected, DataError, printable(path), ": expected ",
               overflows ? std::string("more") : format_count(expected), " bytes, ", what, ", found ",
               format_count(size));
}

Tensor ValuesFile::read(int64_t first, int64_t n) const {
  Tensor values = empty({n}, dtype_);
  file_.pread_exact(values.data_ptr(), values.nbytes(), header_ + first * static_cast<int64_t>(item_size(dtype_)));
  return values;
}

Tensor read_values(const std::string& path, ScalarType dtype, int64_t count, std::string_view what, int64_t header) {
  return ValuesFile(path, dtype, count, what, header).read(0, count);
}

void check_finite(const std::string& path, const Tensor& values, std::string_view what) {
  const NoGradGuard guard;
  const Tensor flat = values.flatten();
  for (int64_t start = 0; start < flat.numel(); start += kPartElements)
    TERCEL_CHECK(all(isfinite(flat.narrow(0, start, std::min(kPartElements, flat.numel() - start)))).item<bool>(),
                 DataError, printable(path), ": expected finite numbers, found NaN or an infinity in ", what);
}

void write_floats(FileWriter& out, const Tensor& values) {
  const NoGradGuard guard;
  const Tensor floats = contiguous(to(values, kFloat32));
  out.write(floats.data_ptr(), floats.nbytes());
}

}  // namespace tercel::recsys::hugectr

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/factories/tensor_of.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/index_put.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/embedding/table_rows.h"
#include "tercel/recsys/hugectr/table_vectors_impl.h"
#include "tercel/recsys/ranks.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::recsys::hugectr {

namespace {

/** Errors of work with what a file has are those of the file. */
template <class F>
void name_file(const std::string& path, F&& work) {
  try {
    work();
  } catch (const ValueError& e) {  // of a key twice, or a number
    throw_error<DataError>({printable(path), ": ", e.what()});
  } catch (const IndexError& e) {  // of a key that the table does not have
    throw_error<DataError>({printable(path), ": ", e.what()});
  } catch (const RuntimeError& e) {  // of more keys than its capacity
    throw_error<DataError>({printable(path), ": ", e.what()});
  }
}

/** The keys of this rank. */
RowOrder find_keys(const VectorFiles& files, const EmbeddingTable& table) {
  RowOrder order{files.count, {}, {}, {}};
  if (table.shard().is_whole()) {
    order.keys = files.read_keys(0, files.count);
    table.refuse_keys(order.keys);
  } else {
    OwnKeys own;
    for (int64_t begin = 0; begin < files.count; begin += kPartElements) {
      const Tensor keys = files.read_keys(begin, std::min(kPartElements, files.count - begin));
      table.refuse_keys(keys);
      const OwnKeys part = keys_of_rank(table, keys);
      own.keys.insert(own.keys.end(), part.keys.begin(), part.keys.end());
      for (const int64_t place : part.places) own.places.push_back(begin + place);
    }
    order.keys = tensor(own.keys);
    order.places = tensor(own.places);
  }
  check_unique_keys(table, order.keys);
  return order;
}

/** The vectors of a rank's rows, in parts: which of them, and their vectors. */
void for_each_part(const VectorFiles& files, const RowOrder& order, int64_t dim,
                   FunctionRef<void(const RowRun& own, const Tensor& vectors)> f) {
  const int64_t rows = std::max<int64_t>(1, kPartElements / dim);
  for (int64_t begin = 0; begin < files.count; begin += rows) {
    const int64_t n = std::min(rows, files.count - begin);
    const RowRun own = order.within(begin, begin + n);
    if (own.count == 0) continue;
    Tensor vectors = files.vectors.read(begin * dim, n * dim).view({n, dim});
    if (order.places.defined()) {
      Tensor places = order.places.narrow(0, own.first, own.count).clone();
      for (int64_t i = 0; i < own.count; ++i) places.data<int64_t>()[i] -= begin;
      vectors = index_select(vectors, 0, places);
    }
    f(own, vectors);
  }
}

}  // namespace

Tensor VectorFiles::read_keys(int64_t first, int64_t n) const {
  const Tensor found = keys.read(first, n);
  if (wide_keys) return found;
  Tensor wide = empty({n}, kInt64);
  for (int64_t i = 0; i < n; ++i)
    wide.data<int64_t>()[i] = static_cast<int64_t>(static_cast<uint32_t>(found.data<int32_t>()[i]));
  return wide;
}

RowOrder set_file_vectors(FunctionRef<VectorFiles()> open, EmbeddingTable& table, distributed::ProcessGroup* group) {
  const NoGradGuard guard;
  std::optional<VectorFiles> files;
  RowOrder order;
  do_together(group, [&] {
    files.emplace(open());
    name_file(files->path, [&] {
      TERCEL_CHECK(table.weight().defined(), RuntimeError, "embedding table '", table.name(),
                   "': it is not initialised");
      order = find_keys(*files, table);
      for_each_part(*files, order, table.dim(), [&](const RowRun& own, const Tensor& vectors) {
        check_finite_vectors(table, order.keys.narrow(0, own.first, own.count), vectors);
      });
    });
  });
  do_together(group, [&] {
    name_file(files->path, [&] {
      if (order.keys.numel() == 0) return;
      order.rows = to(table.find_rows(order.keys, NewKeys::Admit), kInt64);
      const Tensor weight = table.weight().detach();
      for_each_part(*files, order, table.dim(), [&](const RowRun& own, const Tensor& vectors) {
        index_copy_(weight, 0, order.rows.narrow(0, own.first, own.count), to(vectors, weight.dtype()));
      });
    });
  });
  return order;
}

}  // namespace tercel::recsys::hugectr

#include "tercel/ops/views/cat.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "tercel/autograd/record.h"
#include "tercel/core/dtype_words.h"
#include "tercel/core/object_allocator.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/common/copy_impl.h"
#include "tercel/ops/common/operand_checks_impl.h"
#include "tercel/ops/common/out.h"
#include "tercel/ops/common/overlap_checks_impl.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/sparse/sparse_ops_impl.h"
#include "tercel/ops/views/cat_kernels.h"
#include "tercel/ops/views/views.h"
#include "tercel/util/parallel.h"
#include "tercel/util/profile.h"

namespace tercel {

namespace {

constinit const KernelTable<CatFn> cat_kernels = TERCEL_CPU_KERNELS(cat);

constexpr int64_t kGrainBytes = 128 * 1024;

bool is_passed_over(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

struct CatResult {
  DimVector sizes;
  int64_t dim = 0;
  ScalarType dtype = ScalarType::Undefined;
};

// Sizes and dtype of the result; checks the list.
CatResult cat_result(const char* op, Span<Tensor> tensors, int64_t dim) {
  TERCEL_CHECK(!tensors.empty(), ValueError, op, "(): expected a non-empty list of Tensors, but got an empty one");
  CatResult shape;
  const Tensor* first = nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    check_strided(op, t, "tensors");
    TERCEL_CHECK(t.dim() > 0, RuntimeError, op, "(): zero-dimensional tensor (at position ", i,
                 ") cannot be concatenated");
    TERCEL_CHECK(t.device() == tensors[0].device(), RuntimeError, op, "(): expected all tensors on one device but got ",
                 describe(tensors[0]), " and ", describe(t));
    shape.dtype = i == 0 ? t.dtype() : promote_types(shape.dtype, t.dtype());
    if (is_passed_over(t)) continue;
    if (!first) {
      first = &t;
      shape.dim = wrap_dim(dim, t.dim());
      shape.sizes = DimVector(t.sizes());
      continue;
    }
    TERCEL_CHECK(t.dim() == first->dim(), RuntimeError, op, "(): Tensors must have same number of dimensions: got ",
                 first->dim(), " and ", t.dim());
    for (size_t d = 0; d < shape.sizes.size(); ++d) {
      if (static_cast<int64_t>(d) == shape.dim) {
        TERCEL_CHECK(!__builtin_add_overflow(shape.sizes[d], t.sizes()[d], &shape.sizes[d]), RuntimeError, op,
                     "(): the sizes of dimension ", d, " add up to more than 64 bits hold");
        continue;
      }
      TERCEL_CHECK(t.sizes()[d] == shape.sizes[d], RuntimeError, op,
                   "(): Sizes of tensors must match except in dimension ", shape.dim, ". Expected size ",
                   shape.sizes[d], " but got size ", t.sizes()[d], " for tensor number ", i, " in the list.");
    }
  }
  if (!first) {
    shape.sizes = {0};  // for any dim
  }
  return shape;
}

/**
 * The distance between rows, contiguous runs that are enumerated by the dimensions before `dim`; none if it is not
 * constant. Dimensions of size 1 are ignored.
 */
std::optional<int64_t> row_step(const Tensor& t, int64_t dim) {
  const size_t d = static_cast<size_t>(dim), n = t.sizes().size();
  if (!is_contiguous_strides(t.sizes().subspan(d, n - d), t.strides().subspan(d, n - d))) return {};
  int64_t step = 0, rows = 1;
  for (size_t i = d; i-- > 0;) {
    if (t.sizes()[i] == 1) continue;
    if (rows == 1) step = t.strides()[i];
    if (t.strides()[i] != step * rows) return {};
    rows *= t.sizes()[i];
  }
  return step;
}

/** Concatenates into a contiguous tensor of the result's shape and dtype. */
void join(const Tensor& out, Span<Tensor> tensors, const CatResult& shape) {
  const ProfileRange range("cat", RangeKind::Op);
  if (out.numel() == 0) return;
  const size_t d = static_cast<size_t>(shape.dim);
  const int64_t item = static_cast<int64_t>(item_size(shape.dtype));
  int64_t inner = item, rows = 1;
  for (size_t i = d + 1; i < shape.sizes.size(); ++i) inner *= shape.sizes[i];
  for (size_t i = 0; i < d; ++i) rows *= shape.sizes[i];

  std::vector<Tensor> copies;  // of inputs that cannot be read in place
  SmallVector<CatPart, 32> parts;
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    Tensor source = to(t, shape.dtype);
    std::optional<int64_t> step = row_step(source, shape.dim);
    const int64_t run = t.sizes()[d] * inner;
    if (!step) source = clone(source, MemoryFormat::Contiguous);
    parts.push_back({static_cast<const char*>(source.data_ptr()), step ? *step * item : run, run});
    if (!source.is_same(t)) copies.push_back(std::move(source));
  }
  CatLoop loop{parts.data(), static_cast<int64_t>(parts.size()), static_cast<char*>(out.data_ptr()),
               shape.sizes[d] * inner};
  const auto kernel = cat_kernels[out.device()];
  if (rows > 1) {
    parallel_for(0, rows, std::max<int64_t>(1, kGrainBytes / loop.row),
                 [&](int64_t begin, int64_t end) { kernel(loop, begin, end); });
    return;
  }
  // One row: each part is a single run, which several threads can copy.
  char* to_bytes = loop.out;
  for (const CatPart& part : parts) {
    parallel_for(0, part.run, 8 * kGrainBytes, [&](int64_t begin, int64_t end) {
      std::memcpy(to_bytes + begin, part.data + begin, static_cast<size_t>(end - begin));
    });
    to_bytes += part.run;
  }
}

/** The common channels-last format of all tensors, if there is one. */
MemoryFormat common_format(Span<Tensor> tensors) {
  if (tensors[0].dim() < 4) return MemoryFormat::Contiguous;
  const MemoryFormat format = tensors[0].suggest_memory_format();
  for (const Tensor& t : tensors)
    if (t.suggest_memory_format() != format) return MemoryFormat::Contiguous;
  return format;
}

Tensor joined(Span<Tensor> tensors, const CatResult& shape) {
  const TensorOptions options(shape.dtype, tensors[0].device());
  const MemoryFormat format = common_format(tensors);
  if (format == MemoryFormat::Contiguous) {
    Tensor out = empty(shape.sizes, options);
    join(out, tensors, shape);
    return out;
  }
  // Row-major, with the channels as last dimension.
  DimVector order;
  for (int64_t d = 0; d < tensors[0].dim(); ++d)
    if (d != 1) order.push_back(d);
  order.push_back(1);
  Tensor out = empty(shape.sizes, options, format);
  std::vector<Tensor> turned;
  for (const Tensor& t : tensors) turned.push_back(permute(t, order));
  CatResult turned_shape = shape;
  for (size_t d = 0; d < order.size(); ++d) {
    turned_shape.sizes[d] = shape.sizes[static_cast<size_t>(order[d])];
    if (order[d] == shape.dim) turned_shape.dim = static_cast<int64_t>(d);
  }
  join(permute(out, order), turned, turned_shape);
  return out;
}

struct Piece {
  int64_t size;
  ScalarType dtype;
  bool passed_over;
};

std::vector<Tensor> copies_of(const Tensor& x, const std::vector<Tensor>& views, int64_t d) {
  std::vector<Tensor> out;
  {
    const NoRecordGuard no_record;
    for (const Tensor& piece : views) out.push_back(clone(piece, MemoryFormat::Contiguous));
  }
  if (!should_record(x) || out.empty()) return out;
  const int64_t dim = wrap_dim(d, x.dim());
  std::vector<DimVector> sizes;
  for (const Tensor& piece : out) sizes.emplace_back(piece.sizes());
  record_outputs("SplitCopyBackward0", out, {x},
                 [dim, sizes = std::move(sizes), options = x.options()](BackwardCall& call) {
                   std::vector<Tensor> grads;
                   for (size_t i = 0; i < sizes.size(); ++i)
                     grads.push_back(call.grad(i).defined() ? call.grad(i) : zeros(sizes[i], options));
                   call.set(0, cat(grads, dim));
                 });
  return out;
}

}  // namespace

Tensor cat(Span<Tensor> tensors, int64_t d) {
  if (has_sparse(tensors)) [[unlikely]]
    return sparse_cat(tensors, d);
  const CatResult shape = cat_result("cat", tensors, d);
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = joined(tensors, shape);
  }
  bool records = false;
  for (const Tensor& t : tensors) records |= should_record(t);
  if (!records) return out;
  std::vector<Piece, ObjectAllocator<Piece>> pieces;
  pieces.reserve(tensors.size());
  const size_t dim = static_cast<size_t>(shape.dim);
  for (const Tensor& t : tensors) {
    const bool none = is_passed_over(t);
    pieces.push_back({none ? 0 : t.sizes()[dim], t.dtype(), none});
  }
  record_list("CatBackward0", out, tensors, [pieces = std::move(pieces), dim](BackwardCall& call) {
    const Tensor& grad = call.grad();
    int64_t start = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Piece& piece = pieces[i];
      if (call.needs(i))
        call.set(i, piece.passed_over ? zeros({0}, TensorOptions(piece.dtype, grad.device()))
                                      : to(narrow(grad, static_cast<int64_t>(dim), start, piece.size), piece.dtype));
      start += piece.size;
    }
  });
  return out;
}

Tensor concat(Span<Tensor> tensors, int64_t dim) { return cat(tensors, dim); }
Tensor concatenate(Span<Tensor> tensors, int64_t dim) { return cat(tensors, dim); }

const Tensor& cat_out(const Tensor& out, Span<Tensor> tensors, int64_t d) {
  check_strided("cat", out, "out");
  const CatResult shape = cat_result("cat", tensors, d);
  TERCEL_CHECK(can_cast(shape.dtype, out.dtype()), RuntimeError,
               "cat(): input types can't be cast to the desired output type ", scalar_type_word(out.dtype()));
  TERCEL_CHECK(out.device() == tensors[0].device(), RuntimeError, "cat(): expected an out on ",
               to_string(tensors[0].device()), " but got ", describe(out));
  for (const Tensor& t : tensors) check_out_gradients("cat", t);
  check_out_gradients("cat", out);
  check_out_apart("cat", {out}, {tensors});
  if (out.sizes() != IntSpan(shape.sizes)) {
    const NoRecordGuard no_record;
    return put_out("cat", out, cat(tensors, d));
  }
  check_no_internal_overlap("cat", out);
  if (out.is_contiguous() && out.dtype() == shape.dtype)
    join(out, tensors, shape);
  else
    copy_elements_out(out, joined(tensors, shape));
  out.impl().bump_version();
  return out;
}

namespace {

/** `coo`: COO tensors are taken too. */
void check_list(const char* op, Span<Tensor> tensors, bool coo = false) {
  TERCEL_CHECK(!tensors.empty(), RuntimeError, op, " expects a non-empty TensorList");
  for (const Tensor& t : tensors)
    if (!coo || t.layout() != Layout::SparseCoo) check_strided(op, t, "tensors");
}

}  // namespace

Tensor stack(Span<Tensor> tensors, int64_t d) {
  if (has_sparse(tensors)) [[unlikely]]
    return sparse_stack(tensors, d);
  check_list("stack", tensors);
  std::vector<Tensor> views;
  for (const Tensor& t : tensors) {
    TERCEL_CHECK(t.sizes() == tensors[0].sizes(), RuntimeError, "stack expects each tensor to be equal size, but got ",
                 tensors[0].sizes(), " at entry 0 and ", t.sizes(), " at entry ", views.size());
    views.push_back(unsqueeze(t, wrap_dim(d, t.dim() + 1)));
  }
  return cat(views, wrap_dim(d, tensors[0].dim() + 1));
}

Tensor hstack(Span<Tensor> tensors) {
  check_list("hstack", tensors, true);
  const std::vector<Tensor> rows = atleast_1d(tensors);
  return cat(rows, rows[0].dim() == 1 ? 0 : 1);
}
Tensor vstack(Span<Tensor> tensors) {
  check_list("vstack", tensors, true);
  return cat(atleast_2d(tensors), 0);
}
Tensor row_stack(Span<Tensor> tensors) { return vstack(tensors); }
Tensor dstack(Span<Tensor> tensors) {
  check_list("dstack", tensors, true);
  return cat(atleast_3d(tensors), 2);
}
Tensor column_stack(Span<Tensor> tensors) {
  check_list("column_stack", tensors, true);
  std::vector<Tensor> columns;
  for (const Tensor& t : tensors)
    columns.push_back(t.dim() > 1 ? t : has_sparse(t) ? unsqueeze(atleast_1d(t), 1) : reshape(t, {t.numel(), 1}));
  return hstack(columns);
}

namespace {

struct Block {
  DimVector sizes;  // original sizes of the tensor
  ScalarType dtype;
  int64_t row, column, rows, columns;

  Tensor of(const Tensor& whole) const { return narrow(narrow(whole, 0, row, rows), 1, column, columns); }
};

}  // namespace

Tensor block_diag(Span<Tensor> tensors) {
  if (tensors.empty()) return empty({1, 0});
  std::vector<Block> blocks;
  int64_t rows = 0, columns = 0;
  ScalarType dtype = ScalarType::Undefined;
  bool records = false;
  for (const Tensor& t : tensors) {
    check_strided("block_diag", t, "tensors");
    TERCEL_CHECK(t.dim() <= 2, RuntimeError, "block_diag(): Input tensors must have 2 or fewer dimensions. Input ",
                 blocks.size(), " has ", t.dim(), " dimensions");
    TERCEL_CHECK(t.device() == tensors[0].device(), RuntimeError,
                 "block_diag(): input tensors must all be on the same device. Input 0 is on device ",
                 to_string(tensors[0].device()), " and input ", blocks.size(), " is on device ", to_string(t.device()));
    const Block block{DimVector(t.sizes()),         t.dtype(), rows, columns, t.dim() == 2 ? t.size(0) : 1,
                      t.dim() == 0 ? 1 : t.size(-1)};
    TERCEL_CHECK(
        !__builtin_add_overflow(rows, block.rows, &rows) && !__builtin_add_overflow(columns, block.columns, &columns),
        RuntimeError, "block_diag: the sizes add up to more than 64 bits hold");
    dtype = blocks.empty() ? t.dtype() : promote_types(dtype, t.dtype());
    records |= should_record(t);
    blocks.push_back(block);
  }
  Tensor out;
  {
    const NoRecordGuard no_record;
    out = zeros({rows, columns}, TensorOptions(dtype, tensors[0].device()));
    for (size_t i = 0; i < blocks.size(); ++i)
      copy_elements_out(blocks[i].of(out), reshape(tensors[i], {blocks[i].rows, blocks[i].columns}));
  }
  if (records)
    record_list("BlockDiagBackward0", out, tensors, [blocks = std::move(blocks)](BackwardCall& call) {
      for (size_t i = 0; i < blocks.size(); ++i)
        if (call.needs(i)) call.set(i, to(reshape(blocks[i].of(call.grad()), blocks[i].sizes), blocks[i].dtype));
    });
  return out;
}

std::vector<Tensor> split_copy(const Tensor& x, int64_t split_size, int64_t dim) {
  return copies_of(x, split(x.detach(), split_size, dim), dim);
}
std::vector<Tensor> split_copy(const Tensor& x, IntSpan sizes, int64_t dim) {
  return copies_of(x, split(x.detach(), sizes, dim), dim);
}
std::vector<Tensor> split_with_sizes_copy(const Tensor& x, IntSpan split_sizes, int64_t dim) {
  return split_copy(x, split_sizes, dim);
}

}  // namespace tercel

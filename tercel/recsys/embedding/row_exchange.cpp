#include "tercel/recsys/embedding/row_exchange.h"

#include <algorithm>
#include <numeric>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/embedding/batched_embedding_bag.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/factories/huge_pages_impl.h"
#include "tercel/ops/index/gather.h"
#include "tercel/ops/index/gather_impl.h"
#include "tercel/ops/views/cat.h"
#include "tercel/ops/views/views.h"

namespace tercel::recsys {

namespace {

/** Rows of several requests that are sent together: a rank's, request by request. */
class RowMessage {
 public:
  RowMessage(const KeyExchange& keys, std::vector<size_t> requests, Span<Tensor> rows, bool are_vectors)
      : keys_(keys), requests_(std::move(requests)), are_vectors_(are_vectors) {
    for (const Tensor& part : rows) widths_.push_back(part.size(1));
  }

  /** Sends rows, by the rank they go to, and gives those that come, by the rank they come from. */
  std::vector<Tensor> send(Span<Tensor> rows) const {
    const std::vector<int64_t> counts = elements(true), out_counts = elements(false);
    const TensorOptions like(rows[0].dtype(), rows[0].device());
    const Tensor come = empty_in_huge_pages({std::accumulate(out_counts.begin(), out_counts.end(), int64_t{0})}, like);
    distributed::ProcessGroup& group = keys_.group();
    group.await([&] { return group.all_to_all(come, contiguous(packed(rows)), out_counts, counts); });
    return unpacked(come);
  }

 private:
  int64_t ranks() const { return keys_.group().size(); }
  int64_t rows(int64_t rank, size_t i, bool is_sent) const {
    return is_sent == are_vectors_ ? keys_.vectors_for(rank, requests_[i]) : keys_.vectors_from(rank, requests_[i]);
  }
  std::vector<int64_t> elements(bool are_sent) const {
    std::vector<int64_t> all(static_cast<size_t>(ranks()), 0);
    for (int64_t r = 0; r < ranks(); ++r)
      for (size_t i = 0; i < widths_.size(); ++i) all[static_cast<size_t>(r)] += rows(r, i, are_sent) * widths_[i];
    return all;
  }
  Tensor packed(Span<Tensor> parts) const {
    if (parts.size() == 1) return reshape(parts[0], {-1});
    std::vector<Tensor> all;
    std::vector<int64_t> done(parts.size(), 0);
    for (int64_t r = 0; r < ranks(); ++r)
      for (size_t i = 0; i < parts.size(); ++i) {
        const int64_t n = rows(r, i, true);
        all.push_back(reshape(parts[i].narrow(0, done[i], n), {n * widths_[i]}));
        done[i] += n;
      }
    return cat(all, 0);
  }
  std::vector<Tensor> unpacked(const Tensor& come) const {
    const auto shaped = [&](const Tensor& flat, size_t i) {
      return reshape(flat, {flat.numel() / std::max<int64_t>(1, widths_[i]), widths_[i]});
    };
    if (widths_.size() == 1) return {shaped(come, 0)};
    std::vector<std::vector<Tensor>> of(widths_.size());
    int64_t begin = 0;
    for (int64_t r = 0; r < ranks(); ++r)
      for (size_t i = 0; i < widths_.size(); ++i) {
        const int64_t n = rows(r, i, false) * widths_[i];
        of[i].push_back(come.narrow(0, begin, n));
        begin += n;
      }
    std::vector<Tensor> found;
    for (size_t i = 0; i < of.size(); ++i) found.push_back(shaped(cat(of[i], 0), i));
    return found;
  }

  const KeyExchange& keys_;
  std::vector<size_t> requests_;
  std::vector<int64_t> widths_;
  bool are_vectors_;  // and not gradients
};

/** Rows of a weight, for another process. */
Tensor selected(const Tensor& weight, const Tensor& rows) {
  Tensor found = empty_in_huge_pages({rows.numel(), weight.size(1)}, TensorOptions(weight.dtype(), weight.device()));
  select_rows_to(found, weight, rows);
  return found;
}

/** Of each key, the number of the vector that has it. */
Tensor vectors_of_keys(const Tensor& row_offsets) {
  const auto* const offsets = row_offsets.data<int64_t>();
  const int64_t vectors = row_offsets.numel() - 1;
  Tensor found = empty({offsets[vectors]}, kInt64);
  for (int64_t v = 0; v < vectors; ++v)
    std::fill(found.data<int64_t>() + offsets[v], found.data<int64_t>() + offsets[v + 1], v);
  return found;
}

}  // namespace

std::vector<Tensor> send_vectors(const KeyExchange& keys, Span<AskedRows> rows) {
  if (rows.empty()) return {};
  const NoGradGuard no_grad;
  std::vector<size_t> requests;
  std::vector<Tensor> vectors;
  for (const AskedRows& part : rows) {
    requests.push_back(part.request);
    const Tensor weight = part.weight.detach();
    vectors.push_back(part.row_offsets.defined()
                          ? batched_embedding_bag(weight, part.rows, part.row_offsets, 1).select(1, 0)
                          : selected(weight, part.rows));
  }
  return RowMessage(keys, std::move(requests), vectors, /*are_vectors=*/true).send(vectors);
}

std::vector<Tensor> send_gradients(const KeyExchange& keys, Span<VectorGradients> gradients) {
  if (gradients.empty()) return {};
  const NoGradGuard no_grad;
  std::vector<size_t> requests;
  std::vector<Tensor> values;
  for (const VectorGradients& part : gradients) {
    requests.push_back(part.request);
    values.push_back(part.values);
  }
  std::vector<Tensor> found = RowMessage(keys, std::move(requests), values, /*are_vectors=*/false).send(values);
  for (size_t i = 0; i < found.size(); ++i)
    if (const Tensor& row_offsets = gradients[i].row_offsets; row_offsets.defined())
      found[i] = index_select(found[i], 0, vectors_of_keys(row_offsets));
  return found;
}

}  // namespace tercel::recsys

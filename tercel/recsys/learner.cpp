#include "tercel/recsys/learner.h"

#include <algorithm>
#include <cmath>

#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/common/copy.h"
#include "tercel/ops/elementwise/unary.h"
#include "tercel/ops/factories/factories.h"
#include "tercel/ops/reduce/reduce.h"
#include "tercel/ops/views/views.h"
#include "tercel/recsys/model/batch_memory_impl.h"
#include "tercel/util/profile.h"

namespace tercel::recsys {

namespace {

/** Adds the parameters' parts of an arena-sized tensor, under their names. */
void add_parts(CheckpointFile& file, const nn::ParameterArena& arena, const Tensor& all, const std::string& suffix) {
  for (const auto& entry : arena.entries())
    file.tensors.push_back(
        {entry.name + suffix,
         Tensor(make_intrusive<TensorImpl>(all.storage(), all.dtype(), IntSpan(entry.sizes),
                                           contiguous_strides(entry.sizes), all.storage_offset() + entry.offset))});
}

bool all_finite(const Tensor& t) {
  // In parts, so that a large table does not need a flag for each element at once.
  constexpr int64_t kPart = int64_t{1} << 20;
  const Tensor flat = t.flatten();
  for (int64_t start = 0; start < flat.numel(); start += kPart)
    if (!all(isfinite(flat.narrow(0, start, std::min(kPart, flat.numel() - start)))).item<bool>()) return false;
  return true;
}

}  // namespace

Learner::Learner(Model model, const ModelConfig& config)
    : model_(std::move(model)), dense_(config.optimizer, model_.parameters().weights()) {
  for (const auto& [name, buffer] : model_.buffers()) {
    buffers_.push_back(buffer);
    kept_buffers_.push_back(empty_like(buffer));
  }
}

void Learner::keep_forward_state() {
  kept_generator_ = model_.generator().state();
  for (size_t i = 0; i < buffers_.size(); ++i) copy_(kept_buffers_[i], buffers_[i]);
}

void Learner::restore_forward_state() {
  model_.generator().set_state(kept_generator_);
  for (size_t i = 0; i < buffers_.size(); ++i) copy_(buffers_[i], kept_buffers_[i]);
}

/** Loss of a batch; NumericError if it is not finite. */
Tensor Learner::forward(const data::Batch& batch, int64_t step) {
  const ProfileRange range("forward", RangeKind::Annotation);
  model_.forward(batch, /*training=*/true, result_);
  Tensor loss = std::move(result_.loss);
  result_.logits.clear();
  const auto value = loss.item<float>();
  if (!std::isfinite(value)) {
    restore_forward_state();
    const std::string layer = model_.first_nonfinite_layer(batch);
    throw_error<NumericError>({"step ", step, ": the loss is ", std::isnan(value) ? "NaN" : "infinite",
                               layer.empty() ? "; the outputs of all layers are finite, but not the sum of the losses"
                                             : "; the first layer that gives a NaN or an infinity is ",
                               layer});
  }
  return loss;
}

float Learner::train(const data::Batch& batch, double learning_rate, int64_t step) {
  model_.parameters().zero_gradients();
  keep_forward_state();
  float value = 0;
  try {
    const Tensor loss = forward(batch, step);
    value = loss.item<float>();
    const ProfileRange range("backward", RangeKind::Annotation);
    name_batch_without_memory([] { return "backward"; }, batch.rows, /*training=*/true, [&] { loss.backward(); });
  } catch (...) {
    restore_forward_state();
    model_.embeddings().clear_gradients();
    throw;
  }
  const ProfileRange range("update", RangeKind::Annotation);
  updating_ = true;
  name_batch_without_memory([] { return "update"; }, batch.rows, /*training=*/true,
                            [&] { update(learning_rate, step); });
  updating_ = false;
  return value;
}

void Learner::update(double learning_rate, int64_t step) {
  dense_.update_dense(model_.parameters().gradients(), learning_rate, step);
  model_.embeddings().update(learning_rate, step);
}

void Learner::check_finite(int64_t step) {
  const NoGradGuard guard;
  if (dense_.is_finite() && model_.embeddings().is_finite()) {
    // The update kernels check everything except the buffers that forward passes change.
    for (const auto& [name, buffer] : model_.buffers())
      TERCEL_CHECK(all_finite(buffer), NumericError, "step ", step, ": its update made ", name, " NaN or infinite");
    return;
  }
  for (const CheckpointFile& file : files())
    for (const io::NamedTensor& t : file.tensors)
      TERCEL_CHECK(!t.tensor.is_floating_point() || all_finite(t.tensor), NumericError, "step ", step,
                   ": its update made ", t.name, " NaN or infinite");
}

CheckpointFile dense_file(Model& model) {
  CheckpointFile file{"dense", {}};
  add_parts(file, model.parameters(), model.parameters().weights(), "");
  for (const auto& [name, tensor] : model.buffers()) file.tensors.push_back({name, tensor});
  return file;
}

std::string table_file(size_t table) { return "table-" + std::to_string(table); }

std::vector<CheckpointFile> Learner::files() {
  std::vector<CheckpointFile> files{dense_file(model_)};
  const auto dense_names = optim::Optimizer::state_names(dense_.options().type);
  for (size_t i = 0; i < dense_names.size(); ++i)
    add_parts(files[0], model_.parameters(), dense_.states()[i], std::string("/") + dense_names[i]);
  const EmbeddingCollection& embeddings = model_.embeddings();
  for (size_t t = 0; t < embeddings.tables().size(); ++t) {
    const EmbeddingTable& table = *embeddings.tables()[t];
    CheckpointFile& file = files.emplace_back(CheckpointFile{table_file(t), {{table.name(), table.weight()}}});
    const auto names = optim::Optimizer::state_names(embeddings.optimizer(t).type);
    for (size_t i = 0; i < names.size(); ++i)
      file.tensors.push_back({table.name() + "/" + names[i], table.store().states()[i]});
  }
  return files;
}

}  // namespace tercel::recsys

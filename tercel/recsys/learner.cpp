#include "tercel/recsys/learner.h"

#include <algorithm>
#include <cmath>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/grad_mode.h"
#include "tercel/ops/reduce.h"
#include "tercel/ops/unary.h"
#include "tercel/ops/views.h"

namespace tercel::recsys {

namespace {

std::vector<optim::Optimizer> make_table_optimizers(Model& model) {
  std::vector<optim::Optimizer> all;
  for (size_t t = 0; t < model.tables().size(); ++t)
    all.emplace_back(model.table_optimizers()[t], model.tables()[t].weight());
  return all;
}

/** The parameters' parts of something as large as the arena, under their names. */
void add_parts(CheckpointFile& file, const nn::ParameterArena& arena, const Tensor& all, const std::string& suffix) {
  for (const auto& entry : arena.entries())
    file.tensors.push_back(
        {entry.name + suffix,
         Tensor(make_intrusive<TensorImpl>(all.storage(), all.dtype(), IntSpan(entry.sizes),
                                           contiguous_strides(entry.sizes), all.storage_offset() + entry.offset))});
}

bool all_finite(const Tensor& t) {
  // By parts, so that a table of many gigabytes needs no flags of a quarter of that.
  constexpr int64_t kPart = int64_t{1} << 20;
  const Tensor flat = t.flatten();
  for (int64_t start = 0; start < flat.numel(); start += kPart)
    if (!all(isfinite(flat.narrow(0, start, std::min(kPart, flat.numel() - start)))).item<bool>()) return false;
  return true;
}

std::string blame(Model& model, const data::Batch& batch) {
  const std::string layer = model.first_nonfinite_layer(batch);
  return layer.empty() ? "outside training no layer gives a NaN or an infinity for this batch"
                       : "the first layer that gives a NaN or an infinity is " + layer;
}

}  // namespace

Learner::Learner(Model model, const ModelConfig& config)
    : model_(std::move(model)),
      dense_(config.optimizer, model_.parameters().weights()),
      tables_(make_table_optimizers(model_)) {}

float Learner::train(const data::Batch& batch, double learning_rate, int64_t step) {
  model_.parameters().zero_gradients();
  const Model::Result result = model_.forward(batch, /*training=*/true);
  const float loss = result.loss.item<float>();
  TERCEL_CHECK(std::isfinite(loss), NumericError, "step ", step, ": the loss is ",
               std::isnan(loss) ? "NaN" : "infinite", "; ", blame(model_, batch));
  result.loss.backward();
  dense_.update_dense(model_.parameters().gradients(), learning_rate, step);
  for (size_t t = 0; t < tables_.size(); ++t) {
    const Tensor& weight = model_.tables()[t].weight();
    if (const Gradient g = gradient_of(weight); g.defined()) tables_[t].update_rows(g, learning_rate, step);
    clear_gradient(weight);
  }
  return loss;
}

void Learner::check_finite(int64_t step) {
  const NoGradGuard guard;
  for (const CheckpointFile& file : files())
    for (const io::NamedTensor& t : file.tensors)
      TERCEL_CHECK(!t.tensor.is_floating_point() || all_finite(t.tensor), NumericError, "step ", step,
                   ": its update made ", t.name, " NaN or infinite");
}

std::vector<CheckpointFile> model_files(Model& model) {
  std::vector<CheckpointFile> files{{"dense", {}}};
  add_parts(files[0], model.parameters(), model.parameters().weights(), "");
  for (const auto& [name, tensor] : model.buffers()) files[0].tensors.push_back({name, tensor});
  for (size_t t = 0; t < model.tables().size(); ++t)
    files.push_back({"table-" + std::to_string(t), {{model.tables()[t].name(), model.tables()[t].weight()}}});
  return files;
}

std::vector<CheckpointFile> Learner::files() {
  std::vector<CheckpointFile> files = model_files(model_);
  const auto dense_names = optim::Optimizer::state_names(dense_.options().type);
  for (size_t i = 0; i < dense_names.size(); ++i)
    add_parts(files[0], model_.parameters(), dense_.states()[i], std::string("/") + dense_names[i]);
  for (size_t t = 0; t < tables_.size(); ++t) {
    const auto names = optim::Optimizer::state_names(tables_[t].options().type);
    for (size_t i = 0; i < names.size(); ++i)
      files[t + 1].tensors.push_back({model_.tables()[t].name() + "/" + names[i], tables_[t].states()[i]});
  }
  return files;
}

}  // namespace tercel::recsys

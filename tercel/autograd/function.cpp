#include "tercel/autograd/function.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "tercel/autograd/autograd.h"
#include "tercel/autograd/forward_mode.h"
#include "tercel/autograd/record.h"

namespace tercel {

namespace {

bool contains(const std::vector<Tensor>& tensors, const Tensor& t) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& other) { return other.is_same(t); });
}

Tensor zeros_of(const DimVector& sizes, TensorOptions options) {
  Tensor out = empty(sizes, options);
  if (out.numel() > 0) std::memset(out.data_ptr(), 0, out.nbytes());
  return out;
}

}  // namespace

std::string detail::function_name(const char* pretty) {
  // "... [with Args = {...}; F = ns::Cube]" or "... [F = ns::Cube, ...]"
  const std::string_view text(pretty);
  size_t begin = text.find("F = ");
  while (begin != std::string_view::npos && begin > 0 && text[begin - 1] != ' ' && text[begin - 1] != '[')
    begin = text.find("F = ", begin + 1);
  if (begin == std::string_view::npos) return "FunctionBackward";
  std::string_view name = text.substr(begin + 4);
  name = name.substr(0, name.find_first_of(",;]"));
  if (const size_t scope = name.rfind("::"); scope != std::string_view::npos) name = name.substr(scope + 2);
  return std::string(name) + "Backward";
}

std::vector<Tensor> FunctionContext::saved_tensors() const {
  TERCEL_CHECK(node_ != nullptr, RuntimeError, "saved_tensors: only backward() has saved tensors");
  return node_->saved_in(*call_);
}

std::vector<Tensor> CustomNode::saved_in(const BackwardCall& call) const {
  if (freed_) detail::refuse_second_backward();
  std::vector<Tensor> out;
  for (const SavedTensor& saved : saved_) out.push_back(saved.get(call));
  return out;
}

std::vector<Tensor> CustomNode::saved_tensors() const { return saved_in(BackwardCall(*this, nullptr, nullptr)); }

CustomNode::CustomNode(std::string name, Span<Tensor> inputs) : Node("", 0, inputs.size()), own_name_(std::move(name)) {
  set_name(own_name_.c_str());
  for (size_t i = 0; i < inputs.size(); ++i) {
    context_.needs_input_grad_.push_back(should_record(inputs[i]) ? 1 : 0);
    inputs_.emplace_back(inputs[i]);
  }
  detail::connect_inputs(*this, inputs);
}

void CustomNode::save(const std::vector<Tensor>& outputs) {
  for (const Tensor& t : context_.to_save_) {
    const auto at =
        std::find_if(outputs.begin(), outputs.end(), [&](const Tensor& output) { return output.is_same(t); });
    if (at != outputs.end() && t.defined())
      saved_.push_back(SavedTensor::output(t, static_cast<uint32_t>(at - outputs.begin())));
    else
      saved_.push_back(SavedTensor(t));
  }
  context_.to_save_.clear();
}

std::vector<Tensor> CustomNode::wrap_outputs(const intrusive_ptr<CustomNode>& node, Span<Tensor> inputs,
                                             std::vector<Tensor> outputs, bool records) {
  FunctionContext& context = node->context_;
  const std::vector<Tensor> input_list(inputs.begin(), inputs.end());
  for (const Tensor& dirty : context.dirty_) {
    TERCEL_CHECK(contains(input_list, dirty), RuntimeError, node->name(), ": mark_dirty() is for inputs");
    TERCEL_CHECK(contains(outputs, dirty), RuntimeError,
                 "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                 "are modified inplace must all be outputs of the Function.");
    check_inplace(dirty, records);
    dirty.impl().bump_version();
  }
  std::vector<Tensor> results;
  for (const Tensor& output : outputs) {
    const bool is_input = output.defined() && contains(input_list, output);
    if (!output.defined() || contains(context.dirty_, output)) {
      results.push_back(output);
      continue;
    }
    // An input returned unchanged becomes a new tensor over the same data.
    Tensor result = output;
    if (is_input) {
      result =
          Tensor(make_intrusive<TensorImpl>(output.impl(), output.sizes(), output.strides(), output.storage_offset()));
      detail::init_view(result, output, ViewOrigin::CustomFunction);
    }
    if (grad_enabled() && view_base(result).defined()) result.impl().set_view_origin(ViewOrigin::CustomFunction);
    results.push_back(std::move(result));
  }
  if (!records) return results;
  node->set_num_outputs(static_cast<uint32_t>(results.size()));
  std::vector<Tensor> recorded;  // the others undefined
  size_t differentiable = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& result = results[i];
    node->outputs_.emplace_back(result);
    const bool can = result.defined() && result.is_differentiable();
    differentiable += can ? 1 : 0;
    recorded.push_back(can && !contains(context.non_differentiable_, outputs[i]) ? result : Tensor());
  }
  node->save(outputs);
  if (!forward_mode_enabled() || detail::carry_tangents(*node, recorded))
    node->set_histories(recorded, differentiable > 1);
  context.dirty_.clear();
  context.non_differentiable_.clear();
  return results;
}

void CustomNode::set_histories(const std::vector<Tensor>& recorded, bool several) {
  const intrusive_ptr<Node> node = intrusive_ptr<Node>::reclaim_copy(this);
  for (uint32_t i = 0; i < recorded.size(); ++i) {
    const Tensor& result = recorded[i];
    if (!result.defined()) continue;
    const bool is_view = view_base(result).defined();
    if (contains(context_.dirty_, result) && is_view) {
      TERCEL_CHECK(recorded.size() == 1, RuntimeError,
                   "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot "
                   "return more than one Tensor.");
      detail::rebase_history(result, node);
    } else {
      detail::set_history(result, node, i);
    }
    if (several && is_view) result.impl().set_view_origin(ViewOrigin::MultiOutput);
  }
}

std::vector<Tensor> CustomNode::run_backward(BackwardCall& call) {
  struct Bind {
    FunctionContext& context;
    Bind(FunctionContext& c, const BackwardCall& now, const CustomNode& node) : context(c) {
      context.call_ = &now;
      context.node_ = &node;
    }
    ~Bind() {
      context.call_ = nullptr;
      context.node_ = nullptr;
    }
  } bind(context_, call, *this);
  std::vector<Tensor> grads;
  for (size_t i = 0; i < outputs_.size(); ++i)
    grads.push_back(call.grad(i).defined() || !context_.materialize_grads_ ||
                            outputs_[i].dtype() == ScalarType::Undefined
                        ? call.grad(i)
                        : zeros_of(outputs_[i].sizes, outputs_[i].options));
  return backward(grads);
}

void CustomNode::apply(BackwardCall& call) {
  std::vector<Tensor> grads;
  if (context_.once_differentiable_) detail::check_no_tangents(call);
  if (context_.once_differentiable_ && grad_enabled()) {
    const NoGradGuard no_grad;
    grads = run_backward(call);
  } else {
    grads = run_backward(call);
  }
  while (grads.size() > num_edges() && !grads.back().defined()) grads.pop_back();
  TERCEL_CHECK(grads.size() == num_edges(), RuntimeError, "function ", name(),
               " returned an incorrect number of gradients (expected ", num_edges(), ", got ", grads.size(), ")");
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined() || !call.needs(i)) continue;
    TERCEL_CHECK(grads[i].sizes() == IntSpan(inputs_[i].sizes) && grads[i].dtype() == inputs_[i].dtype(), RuntimeError,
                 "Function ", name(), " returned an invalid gradient at index ", i, " - got ", describe(grads[i]),
                 " but expected shape compatible with ", IntSpan(inputs_[i].sizes), " of ",
                 to_string(inputs_[i].dtype()));
    call.set(i, std::move(grads[i]));
  }
  if (context_.once_differentiable_ && grad_enabled()) detail::forbid_second_derivative(call);
}

std::vector<SavedTensor*> CustomNode::saved() {
  if (freed_) detail::refuse_second_backward();
  std::vector<SavedTensor*> out;
  for (SavedTensor& s : saved_) out.push_back(&s);
  return out;
}

void CustomNode::release_saved() {
  freed_ = freed_ || !saved_.empty();
  saved_.clear();
}

}  // namespace tercel

// Saved tensors of nodes in Python: y.grad_fn._saved_self, and SavedTensor objects, which accept
// hooks.
#include <algorithm>
#include <string>
#include <string_view>

#include "python/src/autograd.h"
#include "python/src/tensor_object.h"
#include "tercel/autograd/grad_mode.h"

namespace tercel::python {

namespace {

/** One of the tensors that a node has saved. */
struct SavedPlace {
  intrusive_ptr<Node> node;
  size_t index = 0;
};

/** Names of saved tensors of these ops where saved_name() differs from PyTorch; "indices" names the rest. */
struct SavedNames {
  std::string_view node;
  std::string_view names[5];
};
constexpr SavedNames kSavedNames[] = {
    {"AddmmBackward0", {"mat1", "mat2"}},
    {"BaddbmmBackward0", {"batch1", "batch2"}},
    {"AddbmmBackward0", {"batch1", "batch2"}},
    {"MmBackward0", {"self", "mat2"}},
    {"BmmBackward0", {"self", "mat2"}},
    {"LinearBackward0", {"input", "weight"}},
    {"ConvolutionBackward0", {"input", "weight"}},
    {"NativeBatchNormBackward0", {"input", "result1", "result2", "weight"}},
    {"NativeLayerNormBackward0", {"input", "weight", "result1", "result2"}},
    {"NativeGroupNormBackward0", {"input", "weight", "result1", "result2"}},
    {"IndexBackward0", {"indices..."}},
    {"IndexPutBackward0", {"indices..."}},
    {"IndexSelectBackward0", {"index"}},
    {"GatherBackward0", {"index"}},
    {"ScatterBackward0", {"index"}},
    {"ScatterAddBackward0", {"index"}},
    {"TakeBackward0", {"index"}},
    {"EmbeddingBackward0", {"indices"}},
    {"MaxBackward0", {"indices"}},
    {"MinBackward0", {"indices"}},
    {"SortBackward0", {"indices"}},
    {"TopkBackward0", {"indices"}},
    {"KthvalueBackward0", {"indices"}},
    {"MedianBackward0", {"indices"}},
    {"ModeBackward0", {"indices"}},
    {"CummaxBackward0", {"indices"}},
    {"CumminBackward0", {"indices"}},
    {"MaxPool2DWithIndicesBackward0", {"result1"}},
    {"WhereBackward0", {"condition"}},
    {"MaskedFillBackward0", {"mask"}},
    {"MaskedSelectBackward0", {"mask"}},
};

constexpr std::string_view kRest = "...";

/** Results are "result", operands "self", "other" ... in their order. */
std::string saved_name(const std::vector<SavedTensor*>& saved, size_t index) {
  constexpr std::string_view kOperands[] = {"self", "other", "tensor2"}, kResults[] = {"result", "result1", "result2"};
  const bool output = saved[index]->is_output();
  const auto before =
      static_cast<size_t>(std::count_if(saved.begin(), saved.begin() + static_cast<std::ptrdiff_t>(index),
                                        [&](const SavedTensor* s) { return s->is_output() == output; }));
  const Span<std::string_view> names = output ? Span<std::string_view>(kResults) : Span<std::string_view>(kOperands);
  return before < names.size() ? std::string(names[before]) : str_cat({"tensor", before + 1});
}

/** The saved tensors of a name: one, or for a list all that follow. */
struct SavedEntry {
  std::string name;
  size_t first;
  bool is_list = false;
};

std::vector<SavedEntry> saved_entries(const Node& node, const std::vector<SavedTensor*>& saved) {
  const std::string_view node_name = node.name();
  const auto* known = std::find_if(std::begin(kSavedNames), std::end(kSavedNames),
                                   [&](const SavedNames& n) { return n.node == node_name; });
  std::vector<SavedEntry> out;
  for (size_t i = 0; i < saved.size(); ++i) {
    const std::string_view name =
        known != std::end(kSavedNames) && i < std::size(known->names) ? known->names[i] : std::string_view();
    if (name.ends_with(kRest)) {
      out.push_back({std::string(name.substr(0, name.size() - kRest.size())), i, true});
      break;
    }
    out.push_back({name.empty() ? saved_name(saved, i) : std::string(name), i});
  }
  return out;
}

/** The tensor that backward would get. */
Tensor unpacked(const Node& node, const SavedTensor& saved) {
  // An output keeps its history even if recording is disabled here.
  const GradModeGuard recording(true);
  return saved.defined() ? saved.get(BackwardCall(node, nullptr, nullptr)) : Tensor();
}

nb::object value_of(const intrusive_ptr<Node>& node, const std::vector<SavedTensor*>& saved, size_t index, bool raw) {
  if (raw) return nb::cast(SavedPlace{node, index});
  return own(wrap(unpacked(*node, *saved[index])));
}

nb::object values_of(const intrusive_ptr<Node>& node, const std::vector<SavedTensor*>& saved, size_t first, bool raw) {
  nb::list values;
  for (size_t i = first; i < saved.size(); ++i) values.append(value_of(node, saved, i, raw));
  return nb::tuple(values);
}

void register_hooks(const SavedPlace& place, const nb::callable& pack, const nb::callable& unpack) {
  std::vector<SavedTensor*> saved;
  try {
    saved = place.node->saved();
  } catch (const RuntimeError&) {
    throw_error<RuntimeError>(
        {"Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
         "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
         "through the graph a second time or if you need to access saved variables after calling backward."});
  }
  TERCEL_ASSERT(place.index < saved.size());
  saved[place.index]->register_hooks(python_saved_hooks(pack, unpack));
}

constexpr std::string_view kSaved = "_saved_", kRawSaved = "_raw_saved_";

}  // namespace

nb::object saved_attribute(const intrusive_ptr<Node>& node, std::string_view name) {
  const bool raw = name.starts_with(kRawSaved);
  if (!raw && !name.starts_with(kSaved)) return {};
  std::vector<SavedTensor*> saved;
  try {
    saved = node->saved();
  } catch (const RuntimeError&) {
    if (!raw) throw;
    return nb::cast(SavedPlace{node, 0});
  }
  name.remove_prefix(raw ? kRawSaved.size() : kSaved.size());
  for (const SavedEntry& entry : saved_entries(*node, saved))
    if (entry.name == name)
      return entry.is_list ? values_of(node, saved, entry.first, raw) : value_of(node, saved, entry.first, raw);
  return {};
}

nb::list saved_attribute_names(Node& node) {
  nb::list names;
  try {
    for (const SavedEntry& entry : saved_entries(node, node.saved()))
      for (const std::string_view prefix : {kSaved, kRawSaved})
        names.append(nb::str((std::string(prefix) + entry.name).c_str()));
  } catch (const RuntimeError&) {
    // It was freed, so it has no name.
  }
  return names;
}

nb::object raw_saved_tensors(const intrusive_ptr<Node>& node) { return values_of(node, node->saved(), 0, true); }

void register_saved_tensor(nb::module_& m) {
  nb::module_ part = m.def_submodule("_autograd");
  nb::class_<SavedPlace>(part, "SavedTensor",
                         "A tensor saved by a node of the graph, such as y.grad_fn._raw_saved_self.")
      .def("__init__",
           [](SavedPlace*) {
             throw_error<RuntimeError>({"Trying to create a SavedTensor object from Python is forbidden."});
           })
      .def("register_hooks", register_hooks, nb::arg("pack_hook"), nb::arg("unpack_hook"),
           "Stores pack_hook(tensor) instead of the tensor; unpack_hook turns it back into a tensor for backward.");
}

}  // namespace tercel::python

#include <cstring>
#include <memory>

#include "tercel/core/load_element.h"
#include "tercel/io/arrow.h"
#include "tercel/io/elements_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::io {

namespace {

constexpr int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE

/** Data that an exported struct points to; destroyed with all children that were not moved out. */
template <class T>
struct Node {
  std::vector<T> children;
  std::vector<T*> pointers;
  std::string format, name, metadata;  // of a schema
  int64_t flags = 0;
  const void* buffers[2] = {nullptr, nullptr};  // of an array; the first one is the validity bitmap
  Storage validity, storage;                    // owners of the buffers

  Node() = default;
  ~Node() {
    for (T& child : children)
      if (child.release) child.release(&child);
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void reserve_children(size_t count) {
    children.resize(count);
    for (T& child : children) pointers.push_back(&child);
  }
};

template <class T>
void release_node(T* self) {
  delete static_cast<Node<T>*>(self->private_data);
  self->release = nullptr;
}

/** Fills a struct with its node, to which it then belongs. */
void finish(std::unique_ptr<Node<ArrowSchema>> node, ArrowSchema& out) {
  out = {node->format.c_str(),
         node->name.c_str(),
         node->metadata.empty() ? nullptr : node->metadata.data(),
         node->flags,
         static_cast<int64_t>(node->children.size()),
         node->pointers.data(),
         nullptr,
         release_node<ArrowSchema>,
         nullptr};
  out.private_data = node.release();
}
void finish(std::unique_ptr<Node<ArrowArray>> node, int64_t length, int64_t buffers, ArrowArray& out) {
  constexpr int64_t kUnknown = -1;
  out = {length,
         node->buffers[0] ? kUnknown : 0,
         0,
         buffers,
         static_cast<int64_t>(node->children.size()),
         node->buffers,
         node->pointers.data(),
         nullptr,
         release_node<ArrowArray>,
         nullptr};
  out.private_data = node.release();
}

std::string encode_metadata(Span<std::pair<std::string, std::string>> entries) {
  std::string out;
  const auto put = [&](size_t value) {
    const auto number = static_cast<int32_t>(value);
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  put(entries.size());
  for (const auto& [key, value] : entries) {
    put(key.size());
    out += key;
    put(value.size());
    out += value;
  }
  return out;
}

std::string tensor_metadata(IntSpan element) {
  std::string json = "{\"shape\":[";
  for (size_t d = 0; d < element.size(); ++d) json += (d > 0 ? "," : "") + std::to_string(element[d]);
  return encode_metadata(
      {{"ARROW:extension:name", "arrow.fixed_shape_tensor"}, {"ARROW:extension:metadata", json + "]}"}});
}

const ElementType& check_column(const Tensor& t, std::string_view name) {
  check_exportable(t, "to_arrow", name);
  TERCEL_CHECK(!t.requires_grad(), RuntimeError, "Can't export tensors that require gradient, use tensor.detach()");
  TERCEL_CHECK(t.dim() > 0, RuntimeError, "to_arrow: column '", printable(name),
               "': expected at least one dimension, that of the rows, but got ", describe(t));
  TERCEL_CHECK(name.find('\0') == std::string_view::npos, ValueError, "to_arrow: the name '", printable(name),
               "' has a NUL byte");
  const ElementType* type = find_element_type(t.dtype());
  TERCEL_CHECK(type && type->arrow != 0, TypeError, "to_arrow: column '", printable(name), "': Arrow has no type for ",
               to_string(t.dtype()));
  return *type;
}

/** Packs bools into bits, lowest bit first. */
Tensor pack_bools(const Tensor& t) {
  const Tensor plain = t.is_contiguous() ? t : row_major_copy(t);
  Tensor bits = empty({(t.numel() + 7) / 8}, kUInt8);
  if (bits.numel() > 0) std::memset(bits.data_ptr(), 0, bits.nbytes());
  for (int64_t i = 0; i < t.numel(); ++i)
    if (load_element(plain.data<bool>() + i)) bits.data<uint8_t>()[i / 8] |= static_cast<uint8_t>(1 << (i % 8));
  return bits;
}

/** Elements, or lists, are missing where `valid` is false, if it is defined. */
void set_validity(const Tensor& valid, Node<ArrowArray>& node) {
  if (!valid.defined() || valid.numel() == 0) return;
  const Tensor bits = pack_bools(valid);
  node.buffers[0] = bits.data_ptr();
  node.validity = lend_storage(bits);
}

void export_numbers(const Tensor& t, const Tensor& valid, ArrowArray& out) {
  static constexpr uint64_t kNothing = 0;  // consumers may refuse null even where there is nothing to point to
  auto node = std::make_unique<Node<ArrowArray>>();
  const Tensor values = t.dtype() == kBool ? pack_bools(t) : t.is_contiguous() ? t : row_major_copy(t);
  node->buffers[1] = t.numel() > 0 ? values.data_ptr() : &kNothing;
  node->storage = lend_storage(values);
  set_validity(valid, *node);
  finish(std::move(node), t.numel(), 2, out);
}

void export_column(const Tensor& t, const Tensor& valid, std::string_view name, ArrowSchema& schema,
                   ArrowArray& array) {
  const ElementType& type = check_column(t, name);
  const bool of_elements = valid.defined() && valid.dim() == t.dim();
  TERCEL_CHECK(!valid.defined() ||
                   (valid.dtype() == kBool &&
                    (of_elements ? valid.sizes() == t.sizes() : valid.dim() == 1 && valid.sizes()[0] == t.sizes()[0])),
               RuntimeError, "to_arrow: column '", printable(name), "': expected bools which values are valid, for ",
               describe(t), ", but got ", describe(valid));
  auto node = std::make_unique<Node<ArrowSchema>>();
  node->name = name;
  if (valid.defined()) node->flags = kNullable;
  if (t.dim() == 1) {
    node->format = std::string(1, type.arrow);
    export_numbers(t, valid, array);
    finish(std::move(node), schema);
    return;
  }
  const IntSpan element = t.sizes().subspan(1, t.sizes().size() - 1);
  const int64_t size = numel_of(element);
  TERCEL_CHECK(size <= INT32_MAX, RuntimeError, "to_arrow: column '", printable(name), "': rows of ", size,
               " elements are more than a fixed-size list can have");
  node->format = str_cat({"+w:", size});
  node->metadata = tensor_metadata(element);
  node->reserve_children(1);
  auto item = std::make_unique<Node<ArrowSchema>>();
  item->format = std::string(1, type.arrow);
  item->name = "item";
  item->flags = node->flags;
  finish(std::move(item), node->children[0]);
  auto lists = std::make_unique<Node<ArrowArray>>();
  lists->reserve_children(1);
  export_numbers(t, of_elements ? valid : Tensor(), lists->children[0]);
  if (!of_elements) set_validity(valid, *lists);
  finish(std::move(lists), t.sizes()[0], 1, array);
  finish(std::move(node), schema);
}

}  // namespace

void to_arrow(const Tensor& tensor, std::string_view name, ArrowSchema* schema, ArrowArray* array) {
  export_column(tensor, {}, name, *schema, *array);
}

void columns_to_arrow(Span<ArrowColumn> columns, ArrowSchema* schema, ArrowArray* array) {
  auto schemas = std::make_unique<Node<ArrowSchema>>();
  auto arrays = std::make_unique<Node<ArrowArray>>();
  schemas->format = "+s";
  schemas->reserve_children(columns.size());
  arrays->reserve_children(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    const ArrowColumn& column = columns[i];
    export_column(column.values, column.valid, column.name, schemas->children[i], arrays->children[i]);
    TERCEL_CHECK(column.values.sizes()[0] == columns[0].values.sizes()[0], RuntimeError, "to_arrow: column '",
                 printable(column.name), "': expected ", columns[0].values.sizes()[0],
                 " rows as in the first one but got ", column.values.sizes()[0]);
  }
  const int64_t rows = columns.empty() ? 0 : columns[0].values.sizes()[0];
  finish(std::move(arrays), rows, 1, *array);
  finish(std::move(schemas), *schema);
}

}  // namespace tercel::io

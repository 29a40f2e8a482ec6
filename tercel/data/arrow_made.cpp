#include <utility>

#include "tercel/data/arrow_made_impl.h"

namespace tercel::data {

namespace {

/** A schema or array that owns its children and what it points to. */
template <class Struct>
struct Node {
  std::string format, name;
  std::vector<Struct> children;
  std::vector<Struct*> pointers;
  std::vector<const void*> buffers;
  std::shared_ptr<const void> data;
  Struct dictionary{};
};

template <class Struct>
void release_if_held(Struct& held) {
  if (held.release) held.release(&held);
}

template <class Struct>
void release_node(Struct* self) {
  std::unique_ptr<Node<Struct>> node(static_cast<Node<Struct>*>(self->private_data));
  for (Struct& child : node->children) release_if_held(child);
  release_if_held(node->dictionary);
  self->release = nullptr;
}

template <class Struct>
Struct own(std::unique_ptr<Node<Struct>> node) {
  Struct made{};
  for (Struct& child : node->children) node->pointers.push_back(&child);
  made.n_children = static_cast<int64_t>(node->children.size());
  made.children = node->pointers.data();
  made.release = release_node<Struct>;
  made.private_data = node.release();
  return made;
}

template <class Struct>
void add_dictionary(Struct& to, Struct values) {
  auto& node = *static_cast<Node<Struct>*>(to.private_data);
  node.dictionary = values;
  to.dictionary = &node.dictionary;
}

}  // namespace

void set_dictionary(ArrowSchema& field, ArrowSchema values) { add_dictionary(field, values); }
void set_dictionary(ArrowArray& array, ArrowArray values) { add_dictionary(array, values); }

ArrowSchema make_field(std::string format, std::string name, bool nullable, std::vector<ArrowSchema> children) {
  constexpr int64_t kNullable = 2;
  auto node = std::make_unique<Node<ArrowSchema>>();
  node->format = std::move(format);
  node->name = std::move(name);
  node->children = std::move(children);
  const Node<ArrowSchema>& names = *node;
  ArrowSchema field = own(std::move(node));
  field.format = names.format.c_str();
  field.name = names.name.c_str();
  field.flags = nullable ? kNullable : 0;
  return field;
}

ArrowArray make_array(int64_t length, int64_t nulls, std::vector<const void*> buffers, std::shared_ptr<const void> data,
                      std::vector<ArrowArray> children) {
  auto node = std::make_unique<Node<ArrowArray>>();
  node->buffers = std::move(buffers);
  node->children = std::move(children);
  node->data = std::move(data);
  const Node<ArrowArray>& parts = *node;
  ArrowArray array = own(std::move(node));
  array.length = length;
  array.null_count = nulls;
  array.n_buffers = static_cast<int64_t>(parts.buffers.size());
  array.buffers = const_cast<const void**>(parts.buffers.data());
  return array;
}

}  // namespace tercel::data

#include <algorithm>
#include <array>
#include <bit>

#include "tercel/io/elements_impl.h"
#include "tercel/io/pickle_impl.h"
#include "tercel/io/pickled_tensors_impl.h"
#include "tercel/util/cursor.h"
#include "tercel/util/format.h"

namespace tercel::io {

namespace {

constexpr size_t kMaxDims = 64;
constexpr size_t kMaxNameBytes = 128;
// Limit on the size of a value with all sharing expanded, since users may traverse it without regard to sharing.
constexpr int64_t kLeastExpanded = int64_t{64} << 20;
constexpr int64_t kExpandedPerByte = 256;

enum class NodeKind : uint8_t {
  None,
  Bool,
  Int,
  Float,
  String,
  List,
  Tuple,
  Dict,
  Dtype,
  Device,
  Global,
  Storage,
  Tensor,
  Bytes,
  Layout
};

std::string_view to_string(NodeKind kind) {
  static constexpr std::array<std::string_view, 15> kNames = {"None",
                                                              "a bool",
                                                              "an int",
                                                              "a float",
                                                              "a string",
                                                              "a list",
                                                              "a tuple",
                                                              "a dict",
                                                              "a dtype",
                                                              "a device",
                                                              "a class or function",
                                                              "a storage",
                                                              "a tensor",
                                                              "bytes",
                                                              "a layout"};
  return kNames[static_cast<size_t>(kind)];
}

enum class Function : uint8_t {
  OrderedDict,
  RebuildTensor,
  RebuildTensor2,
  RebuildTensor3,
  RebuildParameter,
  RebuildSparse,
  GetLayout,
  Size,
  Device,
  StorageClass,
  Encode,
  MakeBytes,
};

struct GlobalName {
  std::string_view module, name;
  Function function;
};

// See Note [Unpickling]. Classes of storages and dtypes come from element_types().
constexpr GlobalName kGlobals[] = {
    {"collections", "OrderedDict", Function::OrderedDict},
    {"torch._utils", "_rebuild_tensor", Function::RebuildTensor},
    {"torch._utils", "_rebuild_tensor_v2", Function::RebuildTensor2},
    {"torch._utils", "_rebuild_tensor_v3", Function::RebuildTensor3},
    {"torch._utils", "_rebuild_parameter", Function::RebuildParameter},
    {"torch._utils", "_rebuild_sparse_tensor", Function::RebuildSparse},
    {"torch.serialization", "_get_layout", Function::GetLayout},
    {"_codecs", "encode", Function::Encode},
    {"__builtin__", "bytes", Function::MakeBytes},
    {"torch", "Size", Function::Size},
    {"torch", "device", Function::Device},
    {"torch.storage", "UntypedStorage", Function::StorageClass},
    {"torch", "UntypedStorage", Function::StorageClass},
};

using Index = uint32_t;

/** Position of a string in the program. */
struct TextRange {
  uint32_t offset, bytes;
};

struct GlobalValue {
  Function function;
  ScalarType dtype;  // of a class of storages; Undefined for the untyped one
};

struct Node {
  NodeKind kind = NodeKind::None;
  bool special = false;  // a dict that is an OrderedDict, a tuple that is a Size
  union {
    int64_t number = 0;  // Int, Bool, Dtype; of a list, tuple, dict, storage, tensor: its place in the vector of these
    double real;
    TextRange text;  // of Bytes: the code points are the bytes
    GlobalValue global;
    tercel::Device device;
  };
};

class Unpickler {
 public:
  Unpickler(std::string_view bytes, const std::string& name, LoadStorage load)
      : bytes_(bytes), cursor_(bytes, {name}), tensors_(errors_, load) {
    if (bytes.size() > UINT32_MAX)
      cursor_.fail("a pickle of less than 4 GiB", format_bytes(static_cast<int64_t>(bytes.size())));
  }

  Value run() {
    while (step()) continue;
    cursor_.expect_end("the end of the pickle");
    if (stack_.size() != 1 || !marks_.empty()) fail("one value at the end", str_cat({stack_.size()}));
    states_.resize(nodes_.size());
    values_.resize(nodes_.size());
    costs_.resize(nodes_.size());
    return value_of(stack_[0], 0);
  }

 private:
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const { errors_.fail(expected, found); }

  // The machine.

  bool step() {
    errors_.at = cursor_.position();
    const auto op = cursor_.read<uint8_t>("opcode");
    switch (op) {
      case 0x80: {
        const auto protocol = cursor_.read<uint8_t>("protocol");
        if (protocol != 2) fail("pickle protocol 2, as torch.save() writes", str_cat({int{protocol}}));
        return true;
      }
      case '}': return push_container(NodeKind::Dict);
      case ']': return push_container(NodeKind::List);
      case ')': return push_tuple(0);
      case '(': marks_.push_back(stack_.size()); return true;
      case 't': return push_tuple(count_to_mark());
      case 0x85:
      case 0x86:
      case 0x87: return push_tuple(op - size_t{0x84});
      case 'N': return push({});
      case 0x88:
      case 0x89: return push_number(NodeKind::Bool, op == 0x88);
      case 'J': return push_number(NodeKind::Int, cursor_.read<int32_t>("number"));
      case 'K': return push_number(NodeKind::Int, cursor_.read<uint8_t>("number"));
      case 'M': return push_number(NodeKind::Int, cursor_.read<uint16_t>("number"));
      case 0x8a: return push_long();
      case 'G': {
        // The only big-endian number in a pickle.
        const auto bits = __builtin_bswap64(cursor_.read<uint64_t>("number"));
        Node node{NodeKind::Float, false, {}};
        node.real = std::bit_cast<double>(bits);
        return push(node);
      }
      case 'X': return push_text();
      case 'c': return push_global();
      case 'q': return put(cursor_.read<uint8_t>("memo index"));
      case 'r': return put(cursor_.read<uint32_t>("memo index"));
      case 'h': return get(cursor_.read<uint8_t>("memo index"));
      case 'j': return get(cursor_.read<uint32_t>("memo index"));
      case 'a': return append(1, NodeKind::List);
      case 'e': return append(count_to_mark(), NodeKind::List);
      case 's': return append(2, NodeKind::Dict);
      case 'u': return append(count_to_mark(), NodeKind::Dict);
      case 'Q': return push_storage();
      case 'R': return reduce();
      case 'b': return build();
      case '.': return false;
      default: fail("an opcode that torch.save() writes", str_cat({int{op}}));
    }
  }

  bool push(const Node& node) {
    nodes_.push_back(node);
    stack_.push_back(static_cast<Index>(nodes_.size() - 1));
    return true;
  }
  bool push_number(NodeKind kind, int64_t number) {
    Node node{kind, false, {}};
    node.number = number;
    return push(node);
  }
  bool push_place(NodeKind kind, size_t place) { return push_number(kind, static_cast<int64_t>(place)); }
  bool push_text(NodeKind kind, TextRange text) {
    Node node{kind, false, {}};
    node.text = text;
    return push(node);
  }
  bool push_container(NodeKind kind) {
    children_.emplace_back();
    return push_number(kind, static_cast<int64_t>(children_.size() - 1));
  }

  /** Number of values above the topmost mark, which an opcode may pop. */
  size_t available() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }
  void need(size_t count) const {
    if (available() < count) fail(str_cat({count, " values on the stack"}), str_cat({available()}));
  }
  Index pop() {
    need(1);
    const Index top = stack_.back();
    stack_.pop_back();
    return top;
  }
  size_t count_to_mark() {
    if (marks_.empty()) fail("a mark on the stack", "none");
    const size_t count = available();
    marks_.pop_back();
    return count;
  }

  bool push_tuple(size_t count) {
    need(count);
    std::vector<Index> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    push_container(NodeKind::Tuple);
    children_.back() = std::move(items);
    return true;
  }

  bool append(size_t count, NodeKind kind) {
    need(count + 1);
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
    const Node& target = nodes_[*(first - 1)];
    if (target.kind != kind) fail(str_cat({to_string(kind), " to add to"}), to_string(target.kind));
    if (kind == NodeKind::Dict && count % 2 != 0) fail("a value for every key", "a key without one");
    auto& items = children_[static_cast<size_t>(target.number)];
    items.insert(items.end(), first, stack_.end());
    stack_.resize(stack_.size() - count);
    return true;
  }

  bool push_long() {
    const auto bytes = cursor_.read<uint8_t>("size of a number");
    if (bytes > 8) fail("an integer of at most 64 bits", str_cat({int{bytes}, " bytes"}));
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value |= uint64_t{cursor_.read<uint8_t>("number")} << (8 * i);
    const int unused = 64 - 8 * bytes;
    return push_number(NodeKind::Int, bytes == 0 ? 0 : static_cast<int64_t>(value << unused) >> unused);
  }

  bool push_text() {
    const auto bytes = cursor_.read<uint32_t>("size of a string");
    const auto offset = static_cast<uint32_t>(cursor_.position());
    if (!is_utf8(cursor_.text(bytes, "text"))) fail("a string in UTF-8", "other bytes");
    return push_text(NodeKind::String, {offset, bytes});
  }

  std::string_view line(std::string_view what) {
    const auto at = static_cast<size_t>(cursor_.position());
    const size_t end = bytes_.substr(at, kMaxNameBytes + 1).find('\n');
    if (end == std::string_view::npos) fail(str_cat({what, " of at most ", kMaxNameBytes, " bytes"}), "a longer one");
    const std::string_view text = cursor_.text(end, what);
    cursor_.skip(1, what);
    return text;
  }

  bool push_global() {
    const std::string_view module = line("a module"), name = line("a name");
    Node node{NodeKind::Global, false, {}};
    for (const GlobalName& known : kGlobals)
      if (known.module == module && known.name == name) {
        node.global = {known.function, ScalarType::Undefined};
        return push(node);
      }
    if (module == "torch")
      for (const ElementType& type : element_types()) {
        if (name == tercel::to_string(type.type)) return push_number(NodeKind::Dtype, static_cast<int64_t>(type.type));
        if (!type.torch.empty() && name == type.torch) {
          node.global = {Function::StorageClass, type.type};
          return push(node);
        }
      }
    fail("a name that files of tensors, numbers, strings and containers need",
         str_cat({module, ".", name, ", which could be anything and is not run"}));
  }

  bool put(uint32_t index) {
    need(1);
    // Picklers number their entries; this check bounds the memo by the program's size.
    if (index > memo_.size()) fail(str_cat({"a memo index of at most ", memo_.size()}), str_cat({index}));
    if (index == memo_.size()) memo_.emplace_back();
    memo_[index] = stack_.back();
    return true;
  }
  bool get(uint32_t index) {
    if (index >= memo_.size()) fail(str_cat({"one of ", memo_.size(), " memo entries"}), str_cat({index}));
    stack_.push_back(memo_[index]);
    return true;
  }

  // Implementations of the names.

  const Node& node_of(Index index, NodeKind kind, std::string_view what) const {
    const Node& node = nodes_[index];
    if (node.kind != kind) fail(str_cat({to_string(kind), " for ", what}), to_string(node.kind));
    return node;
  }
  size_t place_of(Index index, NodeKind kind, std::string_view what) const {
    return static_cast<size_t>(node_of(index, kind, what).number);
  }
  int64_t number_of(Index index, std::string_view what) const { return node_of(index, NodeKind::Int, what).number; }
  std::string_view text_of(Index index, std::string_view what) const {
    const Node& node = node_of(index, NodeKind::String, what);
    return bytes_.substr(node.text.offset, node.text.bytes);
  }
  const std::vector<Index>& items_of(Index index, std::string_view what) const {
    return children_[static_cast<size_t>(node_of(index, NodeKind::Tuple, what).number)];
  }
  DimVector numbers_of(Index index, std::string_view what) const {
    const std::vector<Index>& items = items_of(index, what);
    if (items.size() > kMaxDims) fail(str_cat({"at most ", kMaxDims, " ", what}), str_cat({items.size()}));
    DimVector out;
    for (const Index item : items) {
      const int64_t value = number_of(item, what);
      if (value < 0) fail(str_cat({what, " of at least 0"}), str_cat({value}));
      out.push_back(value);
    }
    return out;
  }

  bool push_storage() {
    const std::vector<Index>& id = items_of(pop(), "a persistent id");
    if (id.size() != 5 || text_of(id[0], "the kind of a persistent id") != "storage")
      fail("a persistent id ('storage', class, key, device, size)", str_cat({"one of ", id.size(), " items"}));
    const Node& type = node_of(id[1], NodeKind::Global, "the class of a storage");
    if (type.global.function != Function::StorageClass) fail("the class of a storage", "another class or function");
    const std::string_view key = text_of(id[2], "the key of a storage");
    static_cast<void>(text_of(id[3], "the device of a storage"));
    const int64_t count = number_of(id[4], "the size of a storage");
    return push_place(NodeKind::Storage, tensors_.add_storage(key, count, type.global.dtype));
  }

  bool reduce() {
    const std::vector<Index>& args = items_of(pop(), "arguments");
    const Function function = node_of(pop(), NodeKind::Global, "a function to call").global.function;
    switch (function) {
      case Function::OrderedDict:
        if (!args.empty()) fail("no arguments of OrderedDict", str_cat({args.size()}));
        push_container(NodeKind::Dict);
        nodes_.back().special = true;
        return true;
      case Function::Size: {
        if (args.size() != 1) fail("one argument of torch.Size", str_cat({args.size()}));
        static_cast<void>(numbers_of(args[0], "sizes"));
        const std::vector<Index> sizes = items_of(args[0], "sizes");
        push_container(NodeKind::Tuple);
        nodes_.back().special = true;
        children_.back() = sizes;
        return true;
      }
      case Function::Encode: return push_bytes(args);
      case Function::MakeBytes:
        if (!args.empty()) fail("no arguments of bytes", str_cat({args.size()}));
        return push_text(NodeKind::Bytes, {0, 0});
      case Function::Device: return push_device(args);
      case Function::RebuildTensor: return push_tensor(args, 4, 4);
      case Function::RebuildTensor2: return push_tensor(args, 6, 7);
      case Function::RebuildTensor3: return push_tensor(args, 7, 8);
      case Function::RebuildParameter: {
        if (args.size() != 3) fail("three arguments of _rebuild_parameter", str_cat({args.size()}));
        TensorInfo info = tensors_[place_of(args[0], NodeKind::Tensor, "a parameter")];
        info.requires_grad = node_of(args[1], NodeKind::Bool, "requires_grad").number != 0;
        check_hooks(args[2]);
        info.parameter = true;
        return push_place(NodeKind::Tensor, tensors_.add(std::move(info)));
      }
      case Function::RebuildSparse: return push_sparse(args);
      case Function::GetLayout: {
        const std::string_view layout = args.size() == 1 ? text_of(args[0], "a layout") : "";
        for (const Layout known :
             {Layout::SparseCoo, Layout::SparseCsr, Layout::SparseCsc, Layout::SparseBsr, Layout::SparseBsc})
          if (layout == str_cat({"torch.", to_string(known)}))
            return push_number(NodeKind::Layout, static_cast<int64_t>(known));
        fail("a sparse layout, such as torch.sparse_coo", str_cat({"'", printable(layout), "'"}));
      }
      case Function::StorageClass: break;
    }
    fail("a function to call", "the class of a storage");
  }

  /** _codecs.encode(text, 'latin1'), which is how protocol 2 has bytes. */
  bool push_bytes(const std::vector<Index>& args) {
    if (args.size() != 2 || text_of(args[1], "an encoding") != "latin1")
      fail("a string and 'latin1' for _codecs.encode", str_cat({args.size(), " other arguments"}));
    if (!utf8_to_latin1(text_of(args[0], "bytes"))) fail("code points of bytes", "one above 255");
    return push_text(NodeKind::Bytes, nodes_[args[0]].text);
  }

  bool push_device(const std::vector<Index>& args) {
    if (args.empty() || args.size() > 2) fail("one or two arguments of torch.device", str_cat({args.size()}));
    const std::string_view type = text_of(args[0], "a device");
    const int64_t index = args.size() == 2 ? number_of(args[1], "the index of a device") : -1;
    if ((type != "cpu" && type != "cuda") || index < -1 || index > 127)
      fail("a device of type cpu or cuda", str_cat({type, ":", index}));
    Node node{NodeKind::Device, false, {}};
    node.device = tercel::Device(type == "cpu" ? DeviceType::Cpu : DeviceType::Cuda, static_cast<int8_t>(index));
    return push(node);
  }

  void check_hooks(Index index) const {
    const Node& hooks = node_of(index, NodeKind::Dict, "hooks");
    if (!children_[static_cast<size_t>(hooks.number)].empty()) fail("a tensor without hooks", "hooks, which are code");
  }

  bool push_tensor(const std::vector<Index>& args, size_t least, size_t most) {
    if (args.size() < least || args.size() > most)
      fail(str_cat({least, " arguments of a tensor"}), str_cat({args.size()}));
    TensorInfo info;
    info.storage = place_of(args[0], NodeKind::Storage, "the storage of a tensor");
    if (least == 7)
      info.dtype = static_cast<ScalarType>(node_of(args[6], NodeKind::Dtype, "the dtype of a tensor").number);
    info.offset = number_of(args[1], "the offset of a tensor");
    info.sizes = numbers_of(args[2], "sizes");
    info.strides = numbers_of(args[3], "strides");
    if (least > 4) {
      info.requires_grad = node_of(args[4], NodeKind::Bool, "requires_grad").number != 0;
      check_hooks(args[5]);
    }
    return push_place(NodeKind::Tensor, tensors_.add_strided(std::move(info)));
  }

  /**
   * A layout, and (indices, values, sizes) with, since torch 2.1, whether they are coalesced; of a compressed layout
   * (offsets, indices, values, sizes).
   */
  bool push_sparse(const std::vector<Index>& args) {
    if (args.size() != 2) fail("two arguments of _rebuild_sparse_tensor", str_cat({args.size()}));
    TensorInfo info;
    info.layout = static_cast<Layout>(node_of(args[0], NodeKind::Layout, "the layout of a sparse tensor").number);
    const bool compressed = is_compressed(info.layout);
    const std::vector<Index>& parts = items_of(args[1], "parts of a sparse tensor");
    if (parts.size() != 4 && (compressed || parts.size() != 3))
      fail(compressed ? "four parts of a compressed tensor" : "three or four parts of a sparse tensor",
           str_cat({parts.size()}));
    size_t next = 0;
    info.indices = place_of(parts[next++], NodeKind::Tensor, "indices");
    if (compressed) info.plain_indices = place_of(parts[next++], NodeKind::Tensor, "indices");
    info.values = place_of(parts[next++], NodeKind::Tensor, "values");
    info.sizes = numbers_of(parts[next++], "sizes");
    if (next < parts.size()) info.coalesced = node_of(parts[next], NodeKind::Bool, "is_coalesced").number != 0;
    return push_place(NodeKind::Tensor, tensors_.add_sparse(std::move(info)));
  }

  // Attributes of an OrderedDict, such as the versions of modules in a state_dict, are ignored.
  bool build() {
    const Index state = pop();
    need(1);
    static_cast<void>(node_of(state, NodeKind::Dict, "attributes"));
    static_cast<void>(node_of(stack_.back(), NodeKind::Dict, "an object that may have attributes"));
    return true;
  }

  // From nodes to values.

  enum class State : uint8_t { Untouched, Open, Done };

  const Value& value_of(Index index, int64_t depth) {
    if (states_[index] == State::Done) return values_[index];
    if (states_[index] == State::Open) fail("nested values without cycles", "one that contains itself");
    if (depth > kMaxPickleDepth) fail(str_cat({"at most ", kMaxPickleDepth, " containers inside each other"}), "more");
    states_[index] = State::Open;
    int64_t cost = 1;
    values_[index] = make_value(index, depth, cost);
    costs_[index] = cost;
    states_[index] = State::Done;
    return values_[index];
  }

  Value make_value(Index index, int64_t depth, int64_t& cost) {
    const Node& node = nodes_[index];
    switch (node.kind) {
      case NodeKind::None: return {};
      case NodeKind::Bool: return node.number != 0;
      case NodeKind::Int: return node.number;
      case NodeKind::Float: return node.real;
      case NodeKind::Dtype: return static_cast<ScalarType>(node.number);
      case NodeKind::Device: return node.device;
      case NodeKind::String: cost += node.text.bytes; return bytes_.substr(node.text.offset, node.text.bytes);
      case NodeKind::Bytes:
        cost += node.text.bytes;
        return Value::bytes(*utf8_to_latin1(bytes_.substr(node.text.offset, node.text.bytes)));
      case NodeKind::Tensor: {
        const auto place = static_cast<size_t>(node.number);
        const Tensor t = tensors_.make(place);
        return tensors_[place].parameter ? Value::parameter(t) : Value(t);
      }
      case NodeKind::List:
      case NodeKind::Tuple:
      case NodeKind::Dict:
        if (node.special && node.kind == NodeKind::Tuple) return Value::size(numbers_of(index, "sizes"));
        return make_container(node, depth, cost);
      case NodeKind::Global:
      case NodeKind::Layout:
      case NodeKind::Storage: break;
    }
    fail("a value", to_string(node.kind));
  }

  Value make_container(const Node& node, int64_t depth, int64_t& cost) {
    const std::vector<Index>& items = children_[static_cast<size_t>(node.number)];
    // Checked before a dict compares its keys.
    const int64_t limit = std::max(kLeastExpanded, static_cast<int64_t>(bytes_.size()) * kExpandedPerByte);
    std::vector<Value> values;
    values.reserve(items.size());
    for (const Index item : items) {
      values.push_back(value_of(item, depth + 1));
      // No sum can overflow: each cost is within the limit, or this would have ended.
      cost += costs_[item];
      if (cost > limit) fail(str_cat({"values of at most ", limit, " bytes when nothing is shared"}), "more");
    }
    if (node.kind == NodeKind::List) return Value::list(std::move(values));
    if (node.kind == NodeKind::Tuple) return Value::tuple(std::move(values));
    std::vector<Value::Item> entries;
    entries.reserve(values.size() / 2);
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      entries.emplace_back(std::move(values[i]), std::move(values[i + 1]));
    try {
      return node.special ? Value::ordered_dict(std::move(entries)) : Value::dict(std::move(entries));
    } catch (const ValueError& e) {
      fail("a dict with every key once", e.what());
    }
  }

  std::string_view bytes_;
  ByteCursor cursor_;
  PickleErrors errors_{cursor_};

  std::vector<Node> nodes_;
  std::vector<std::vector<Index>> children_;
  PickledTensors tensors_;
  std::vector<Index> stack_, memo_;
  std::vector<size_t> marks_;

  std::vector<State> states_;
  std::vector<Value> values_;
  std::vector<int64_t> costs_;
};

}  // namespace

Value unpickle(std::string_view bytes, const std::string& name, LoadStorage load) {
  return Unpickler(bytes, name, load).run();
}

}  // namespace tercel::io

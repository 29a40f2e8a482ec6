#include <bit>
#include <unordered_map>

#include "tercel/core/sparse_data.h"
#include "tercel/io/elements_impl.h"
#include "tercel/io/pickle_impl.h"
#include "tercel/util/format.h"

namespace tercel::io {

namespace {

class Pickler {
 public:
  explicit Pickler(const std::string& name) : name_(name) {}

  Pickle run(const Value& value) {
    TERCEL_CHECK(value.depth() <= kMaxPickleDepth, ValueError, printable(name_), ": expected at most ", kMaxPickleDepth,
                 " containers inside each other but got ", value.depth());
    op('\x80');
    op(2);
    save(value);
    op('.');
    return {std::move(out_), std::move(storages_)};
  }

 private:
  void op(char code) { out_ += code; }
  template <class T>
  void little(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  void save(const Value& value) {
    // Strings are memoised by value, everything else by identity.
    if (value.identity() && !value.is(Value::Kind::String)) {
      if (const auto found = memo_.find(value.identity()); found != memo_.end()) return get(found->second);
      save_new(value);
      memo_.emplace(value.identity(), put());
      return;
    }
    save_new(value);
  }

  void save_new(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::None: return op('N');
      case Value::Kind::Bool: return op(value.to_bool() ? '\x88' : '\x89');
      case Value::Kind::Int: return number(value.to_int());
      case Value::Kind::Float: op('G'); return little(__builtin_bswap64(std::bit_cast<uint64_t>(value.to_double())));
      case Value::Kind::String: return text(value.to_string());
      case Value::Kind::List: return list(value);
      case Value::Kind::Tuple: return value.is_size() ? size(value) : tuple(value.items());
      case Value::Kind::Dict: return dict(value);
      case Value::Kind::Tensor: {
        const Tensor& t = value.to_tensor();
        return value.is_parameter() ? parameter(t) : tensor(t, t.requires_grad());
      }
      case Value::Kind::Dtype: return global("torch", to_string(value.to_dtype()));
      case Value::Kind::Device: return device(value.to_device());
      case Value::Kind::Bytes: return bytes(value.to_bytes());
    }
  }

  void number(int64_t value) {
    if (value >= 0 && value <= UINT8_MAX) {
      op('K');
      little(static_cast<uint8_t>(value));
    } else if (value >= 0 && value <= UINT16_MAX) {
      op('M');
      little(static_cast<uint16_t>(value));
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      op('J');
      little(static_cast<int32_t>(value));
    } else {
      op('\x8a');
      op(8);
      little(value);
    }
  }

  uint32_t put() {
    const uint32_t index = memo_size_++;
    if (index <= UINT8_MAX) {
      op('q');
      little(static_cast<uint8_t>(index));
    } else {
      op('r');
      little(index);
    }
    return index;
  }
  void get(uint32_t index) {
    if (index <= UINT8_MAX) {
      op('h');
      little(static_cast<uint8_t>(index));
    } else {
      op('j');
      little(index);
    }
  }

  void text(const std::string& value) {
    if (const auto found = texts_.find(value); found != texts_.end()) return get(found->second);
    TERCEL_CHECK(is_utf8(value) && value.size() <= UINT32_MAX, ValueError, printable(name_), ": the string '",
                 printable(value), "' is not UTF-8 or is longer than 4 GiB");
    op('X');
    little(static_cast<uint32_t>(value.size()));
    out_ += value;
    texts_.emplace(value, put());
  }

  void global(std::string_view module, std::string_view name) {
    std::string line = str_cat({module, "\n", name, "\n"});
    if (const auto found = globals_.find(line); found != globals_.end()) return get(found->second);
    op('c');
    out_ += line;
    globals_.emplace(std::move(line), put());
  }

  // Lists and dicts enter the memo only once they are complete: nothing in them can refer to them.
  void list(const Value& value) {
    op(']');
    if (value.items().empty()) return;
    op('(');
    for (const Value& item : value.items()) save(item);
    op('e');
  }
  void dict(const Value& value) {
    if (value.is_ordered()) {
      global("collections", "OrderedDict");
      op(')');
      op('R');
    } else {
      op('}');
    }
    if (value.entries().empty()) return;
    op('(');
    for (const auto& [key, item] : value.entries()) {
      save(key);
      save(item);
    }
    op('u');
  }
  void tuple(const std::vector<Value>& items) {
    if (items.empty()) return op(')');
    if (items.size() > 3) op('(');
    for (const Value& item : items) save(item);
    op(items.size() > 3 ? 't' : static_cast<char>(0x84 + items.size()));
  }
  void size(const Value& value) {
    global("torch", "Size");
    tuple(value.items());
    op('\x85');
    op('R');
  }
  void numbers(IntSpan values) {
    if (values.empty()) return op(')');
    if (values.size() > 3) op('(');
    for (const int64_t value : values) number(value);
    op(values.size() > 3 ? 't' : static_cast<char>(0x84 + values.size()));
  }

  /** Protocol 2 has no opcode for bytes: they are a Latin-1 string that the reader encodes. */
  void bytes(const std::string& value) {
    global("_codecs", "encode");
    text(latin1_to_utf8(value));
    text("latin1");
    op('\x86');
    op('R');
  }

  void device(Device value) {
    global("torch", "device");
    text(std::string(to_string(value.type)));
    if (value.index >= 0) number(value.index);
    op(value.index >= 0 ? '\x86' : '\x85');
    op('R');
  }

  void parameter(const Tensor& t) {
    global("torch._utils", "_rebuild_parameter");
    tensor(t, false);
    op(t.requires_grad() ? '\x88' : '\x89');
    no_hooks();
    op('\x87');
    op('R');
  }
  void no_hooks() {
    global("collections", "OrderedDict");
    op(')');
    op('R');
  }

  /** As in torch, whether it requires a gradient is said by the values of a compressed tensor, and not by COO. */
  void sparse(const Tensor& t, bool requires_grad) {
    const SparseData& parts = *t.impl().sparse();
    global("torch._utils", "_rebuild_sparse_tensor");
    global("torch.serialization", "_get_layout");
    text(str_cat({"torch.", to_string(t.layout())}));
    op('\x85');
    op('R');
    op('(');
    tensor(parts.indices, false);
    if (is_compressed(t.layout())) tensor(parts.plain_indices, false);
    tensor(parts.values, is_compressed(t.layout()) && requires_grad);
    global("torch", "Size");
    numbers(t.sizes());
    op('\x85');
    op('R');
    if (!is_compressed(t.layout())) op(parts.coalesced ? '\x88' : '\x89');
    op('t');
    op('\x86');
    op('R');
  }

  void tensor(const Tensor& t, bool requires_grad) {
    if (is_sparse(t.layout())) return sparse(t, requires_grad);
    check_exportable(t, name_, "");
    const ElementType* type = find_element_type(t.dtype());
    TERCEL_CHECK(type, TypeError, printable(name_), ": torch has no storage for ", to_string(t.dtype()));
    const bool untyped = type->torch.empty();
    global("torch._utils", untyped ? "_rebuild_tensor_v3" : "_rebuild_tensor_v2");
    op('(');
    storage(t, *type);
    number(t.storage_offset());
    numbers(t.sizes());
    numbers(t.strides());
    op(requires_grad ? '\x88' : '\x89');
    no_hooks();
    if (untyped) global("torch", to_string(t.dtype()));
    op('t');
    op('R');
  }

  void storage(const Tensor& t, const ElementType& type) {
    const auto [found, is_new] = keys_.try_emplace(t.storage().get(), StorageKey{storages_.size(), t.dtype()});
    const size_t count = t.storage()->nbytes() / t.itemsize();
    if (is_new) storages_.push_back({t.storage(), count * t.itemsize()});
    TERCEL_CHECK(found->second.dtype == t.dtype(), RuntimeError,
                 "Cannot save multiple tensors or storages that view the same data as different types");
    op('(');
    text("storage");
    if (type.torch.empty())
      global("torch.storage", "UntypedStorage");
    else
      global("torch", type.torch);
    text(std::to_string(found->second.index));
    text("cpu");
    number(static_cast<int64_t>(type.torch.empty() ? count * t.itemsize() : count));
    op('t');
    op('Q');
  }

  struct StorageKey {
    size_t index;
    ScalarType dtype;
  };

  const std::string& name_;
  std::string out_;
  std::vector<Pickle::Part> storages_;
  std::unordered_map<const StorageImpl*, StorageKey> keys_;
  std::unordered_map<const void*, uint32_t> memo_;
  std::unordered_map<std::string, uint32_t> texts_, globals_;
  uint32_t memo_size_ = 0;
};

}  // namespace

std::string latin1_to_utf8(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x80) {
      out += c;
    } else {
      out += static_cast<char>(0xc0 | (code >> 6));
      out += static_cast<char>(0x80 | (code & 0x3f));
    }
  }
  return out;
}

std::optional<std::string> utf8_to_latin1(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      out += text[i];
    } else {
      if (lead > 0xc3 || i + 1 == text.size()) return {};
      out += static_cast<char>(((lead & 0x03) << 6) | (static_cast<unsigned char>(text[++i]) & 0x3f));
    }
  }
  return out;
}

Pickle pickle(const Value& value, const std::string& name) { return Pickler(name).run(value); }

}  // namespace tercel::io

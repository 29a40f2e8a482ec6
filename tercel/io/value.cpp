#include "tercel/io/value.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::io {

struct Value::Sequence {
  std::vector<Value> items;
  int64_t depth = 1;
  bool is_size = false;
};

struct Value::Mapping {
  std::vector<Item> items;
  std::vector<size_t> order;  // of the items by key
  int64_t depth = 1;
  bool ordered = false;
};

namespace {

constexpr size_t kList = static_cast<size_t>(Value::Kind::List), kTuple = static_cast<size_t>(Value::Kind::Tuple),
                 kBytes = static_cast<size_t>(Value::Kind::Bytes);

/** A total order of keys: by kind, then by value; -1, 0 or 1. */
int compare_keys(const Value& a, const Value& b) {
  const auto order = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.kind() != b.kind()) return order(a.kind(), b.kind());
  switch (a.kind()) {
    case Value::Kind::None: return 0;
    case Value::Kind::Bool: return order(a.to_bool(), b.to_bool());
    case Value::Kind::Int: return order(a.to_int(), b.to_int());
    case Value::Kind::Float: return order(a.to_double(), b.to_double());
    case Value::Kind::String: return order(a.to_string(), b.to_string());
    case Value::Kind::Bytes: return order(a.to_bytes(), b.to_bytes());
    case Value::Kind::Tuple: {
      const auto &x = a.items(), &y = b.items();
      for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
        if (const int result = compare_keys(x[i], y[i]); result != 0) return result;
      return order(x.size(), y.size());
    }
    default: break;
  }
  throw_error<ValueError>(
      {"a dict: expected a number, string, bytes, None, bool or tuple for a key but got a ", to_string(a.kind())});
}

int64_t depth_of(const std::vector<Value>& items) {
  int64_t depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  return depth + 1;
}

}  // namespace

Value::Value(tercel::Tensor tensor) : data_(std::move(tensor)) {
  TERCEL_CHECK(to_tensor().defined(), ValueError, "a value cannot be an undefined tensor");
}

Value Value::parameter(tercel::Tensor tensor) {
  Value out(std::move(tensor));
  out.parameter_ = true;
  return out;
}

Value Value::bytes(std::string content) {
  Value out;
  out.data_.emplace<kBytes>(std::make_shared<const std::string>(std::move(content)));
  return out;
}

Value Value::list(std::vector<Value> items) {
  const int64_t depth = depth_of(items);
  Value out;
  out.data_.emplace<kList>(std::make_shared<const Sequence>(Sequence{std::move(items), depth, false}));
  return out;
}

Value Value::tuple(std::vector<Value> items) {
  const int64_t depth = depth_of(items);
  Value out;
  out.data_.emplace<kTuple>(std::make_shared<const Sequence>(Sequence{std::move(items), depth, false}));
  return out;
}

Value Value::size(IntSpan sizes) {
  Value out;
  out.data_.emplace<kTuple>(std::make_shared<const Sequence>(Sequence{{sizes.begin(), sizes.end()}, 1, true}));
  return out;
}

Value Value::dict(std::vector<Item> items) { return make_dict(std::move(items), false); }

Value Value::ordered_dict(std::vector<Item> items) { return make_dict(std::move(items), true); }

Value Value::state_dict(const std::vector<std::pair<std::string, tercel::Tensor>>& tensors) {
  std::vector<Item> items;
  for (const auto& [name, tensor] : tensors) items.emplace_back(name, tensor);
  return ordered_dict(std::move(items));
}

Value Value::make_dict(std::vector<Item> items, bool ordered) {
  Mapping mapping{std::move(items), {}, 1, ordered};
  mapping.order.resize(mapping.items.size());
  std::iota(mapping.order.begin(), mapping.order.end(), size_t{0});
  const auto key = [&](size_t i) -> const Value& { return mapping.items[i].first; };
  if (mapping.items.size() == 1) compare_keys(key(0), key(0));  // throws if it is not a dict
  std::sort(mapping.order.begin(), mapping.order.end(),
            [&](size_t a, size_t b) { return compare_keys(key(a), key(b)) < 0; });
  for (size_t i = 1; i < mapping.order.size(); ++i) {
    const Value& k = key(mapping.order[i]);
    TERCEL_CHECK(compare_keys(key(mapping.order[i - 1]), k) != 0, ValueError, "a dict: the key ",
                 k.is(Kind::String) ? printable(k.to_string())
                 : k.is(Kind::Int)  ? std::to_string(k.to_int())
                                    : std::string(io::to_string(k.kind())),
                 " is a duplicate");
  }
  for (const Item& item : mapping.items)
    mapping.depth = std::max({mapping.depth, item.first.depth() + 1, item.second.depth() + 1});
  Value out;
  out.data_ = std::make_shared<const Mapping>(std::move(mapping));
  return out;
}

void Value::refuse_number(uint64_t value) { throw_error<ValueError>({"the number ", value, " does not fit 63 bits"}); }

void Value::refuse(Kind wanted) const {
  throw_error<TypeError>({"expected a value of kind ", io::to_string(wanted), " but got ", io::to_string(kind())});
}

bool Value::to_bool() const {
  if (const auto* value = std::get_if<bool>(&data_)) return *value;
  refuse(Kind::Bool);
}

int64_t Value::to_int() const {
  if (const auto* value = std::get_if<int64_t>(&data_)) return *value;
  refuse(Kind::Int);
}

double Value::to_double() const {
  if (const auto* value = std::get_if<double>(&data_)) return *value;
  if (const auto* value = std::get_if<int64_t>(&data_)) return static_cast<double>(*value);
  refuse(Kind::Float);
}

const std::string& Value::to_string() const {
  if (is(Kind::String)) return *std::get<kString>(data_);
  refuse(Kind::String);
}

const std::string& Value::to_bytes() const {
  if (is(Kind::Bytes)) return *std::get<kBytes>(data_);
  refuse(Kind::Bytes);
}

const std::vector<Value>& Value::items() const {
  if (is(Kind::List)) return std::get<kList>(data_)->items;
  if (is(Kind::Tuple)) return std::get<kTuple>(data_)->items;
  refuse(Kind::List);
}

const std::vector<Value::Item>& Value::entries() const {
  if (const auto* value = std::get_if<std::shared_ptr<const Mapping>>(&data_)) return (*value)->items;
  refuse(Kind::Dict);
}

const tercel::Tensor& Value::to_tensor() const {
  if (const auto* value = std::get_if<tercel::Tensor>(&data_)) return *value;
  refuse(Kind::Tensor);
}

std::vector<std::pair<std::string, tercel::Tensor>> Value::to_state_dict() const {
  std::vector<std::pair<std::string, tercel::Tensor>> out;
  for (const Item& item : entries()) out.emplace_back(item.first.to_string(), item.second.to_tensor());
  return out;
}

ScalarType Value::to_dtype() const {
  if (const auto* value = std::get_if<ScalarType>(&data_)) return *value;
  refuse(Kind::Dtype);
}

tercel::Device Value::to_device() const {
  if (const auto* value = std::get_if<tercel::Device>(&data_)) return *value;
  refuse(Kind::Device);
}

bool Value::is_size() const { return is(Kind::Tuple) && std::get<kTuple>(data_)->is_size; }

bool Value::is_ordered() const { return is(Kind::Dict) && std::get<std::shared_ptr<const Mapping>>(data_)->ordered; }

const Value* Value::find(std::string_view key) const {
  const auto* value = std::get_if<std::shared_ptr<const Mapping>>(&data_);
  if (!value) refuse(Kind::Dict);
  const Mapping& mapping = **value;
  const auto before = [&](size_t i, std::string_view wanted) {
    const Value& k = mapping.items[i].first;
    return k.is(Kind::String) ? std::string_view(k.to_string()) < wanted : k.kind() < Kind::String;
  };
  const auto found = std::lower_bound(mapping.order.begin(), mapping.order.end(), key, before);
  if (found == mapping.order.end()) return nullptr;
  const Item& item = mapping.items[*found];
  return item.first.is(Kind::String) && item.first.to_string() == key ? &item.second : nullptr;
}

const Value& Value::at(std::string_view key) const {
  const Value* value = find(key);
  TERCEL_CHECK(value, DataError, "no entry '", printable(key), "' in a dict of ", entries().size());
  return *value;
}

const void* Value::identity() const {
  switch (kind()) {
    case Kind::String: return std::get<kString>(data_).get();
    case Kind::Bytes: return std::get<kBytes>(data_).get();
    case Kind::List: return std::get<kList>(data_).get();
    case Kind::Tuple: return std::get<kTuple>(data_).get();
    case Kind::Dict: return std::get<std::shared_ptr<const Mapping>>(data_).get();
    case Kind::Tensor: return &std::get<tercel::Tensor>(data_).impl();
    default: return nullptr;
  }
}

int64_t Value::depth() const {
  switch (kind()) {
    case Kind::List: return std::get<kList>(data_)->depth;
    case Kind::Tuple: return std::get<kTuple>(data_)->depth;
    case Kind::Dict: return std::get<std::shared_ptr<const Mapping>>(data_)->depth;
    default: return 0;
  }
}

std::string_view to_string(Value::Kind kind) {
  static constexpr std::array<std::string_view, 12> kNames = {"None",  "bool", "int",    "float", "str",    "list",
                                                              "tuple", "dict", "Tensor", "dtype", "device", "bytes"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace tercel::io

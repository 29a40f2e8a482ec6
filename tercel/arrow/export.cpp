#include "tercel/arrow/export_impl.h"

#include <arrow/array/data.h>
#include <arrow/extension_type.h>
#include <arrow/type.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "tercel/arrow/arrow_io_impl.h"
#include "tercel/data/arrow_made_impl.h"

namespace tercel::arrow_module {

using ::arrow::DataType;
using ::arrow::Status;
using ::arrow::TimeUnit;
using ::arrow::Type;

namespace {

template <class To>
const To& as(const DataType& type) {
  return static_cast<const To&>(type);
}

std::string timed(const char* prefix, TimeUnit::type unit) {
  static constexpr char kUnits[] = {'s', 'm', 'u', 'n'};
  return prefix + std::string(1, kUnits[unit]);
}

/**
 * The format string of a type that is no dictionary. Of one that is neither numbers nor lists, Arrow's name of it: the
 * library refuses such columns before it asks for them.
 */
std::string format_of(const DataType& type) {
  switch (type.id()) {
    case Type::NA: return "n";
    case Type::BOOL: return "b";
    case Type::INT8: return "c";
    case Type::UINT8: return "C";
    case Type::INT16: return "s";
    case Type::UINT16: return "S";
    case Type::INT32: return "i";
    case Type::UINT32: return "I";
    case Type::INT64: return "l";
    case Type::UINT64: return "L";
    case Type::HALF_FLOAT: return "e";
    case Type::FLOAT: return "f";
    case Type::DOUBLE: return "g";
    case Type::DATE32: return "tdD";
    case Type::DATE64: return "tdm";
    case Type::TIME32:
    case Type::TIME64: return timed("tt", as<::arrow::TimeType>(type).unit());
    case Type::TIMESTAMP: {
      const auto& time = as<::arrow::TimestampType>(type);
      return timed("ts", time.unit()) + ":" + time.timezone();
    }
    case Type::DURATION: return timed("tD", as<::arrow::DurationType>(type).unit());
    case Type::LIST: return "+l";
    case Type::LARGE_LIST: return "+L";
    case Type::LIST_VIEW: return "+vl";
    case Type::LARGE_LIST_VIEW: return "+vL";
    case Type::FIXED_SIZE_LIST: return "+w:" + std::to_string(as<::arrow::FixedSizeListType>(type).list_size());
    default: return type.ToString();
  }
}

const DataType& storage(const DataType& type) {
  return type.id() == Type::EXTENSION ? storage(*as<::arrow::ExtensionType>(type).storage_type()) : type;
}

ArrowSchema export_type(const DataType& given, const std::string& name, bool nullable) {
  const DataType& type = storage(given);
  if (type.id() == Type::DICTIONARY) {
    const auto& dictionary = as<::arrow::DictionaryType>(type);
    ArrowSchema field = data::make_field(format_of(*dictionary.index_type()), name, nullable);
    data::set_dictionary(field, export_type(*dictionary.value_type(), "", true));
    return field;
  }
  std::vector<ArrowSchema> children;
  for (const auto& child : type.fields())
    children.push_back(export_type(*child->type(), child->name(), child->nullable()));
  return data::make_field(format_of(type), name, nullable, std::move(children));
}

ArrowSchema export_schema(const ::arrow::Schema& schema) {
  std::vector<ArrowSchema> fields;
  for (const auto& field : schema.fields())
    fields.push_back(export_type(*field->type(), field->name(), field->nullable()));
  return data::make_field("+s", "", false, std::move(fields));
}

ArrowArray export_array(const std::shared_ptr<::arrow::ArrayData>& array) {
  std::vector<const void*> buffers;
  if (array->type->id() != Type::NA)
    for (const auto& buffer : array->buffers) buffers.push_back(buffer ? buffer->data() : nullptr);
  std::vector<ArrowArray> children;
  for (const auto& child : array->child_data) children.push_back(export_array(child));
  ArrowArray made =
      data::make_array(array->length, array->null_count.load(), std::move(buffers), array, std::move(children));
  made.offset = array->offset;
  if (array->dictionary) data::set_dictionary(made, export_array(array->dictionary));
  return made;
}

ArrowArray export_batch(const ::arrow::RecordBatch& batch) {
  std::vector<ArrowArray> columns;
  for (const auto& column : batch.column_data()) columns.push_back(export_array(column));
  return data::make_array(batch.num_rows(), 0, {nullptr}, nullptr, std::move(columns));
}

int errno_of(const Status& status) {
  if (status.ok()) return 0;
  if (status.IsOutOfMemory()) return ENOMEM;
  if (status.IsIOError()) return EIO;
  return status.IsNotImplemented() ? ENOSYS : EINVAL;
}

struct Stream {
  std::shared_ptr<::arrow::RecordBatchReader> reader;
  std::string error;

  /** The errno value of what f returns or throws. */
  template <class F>
  static int call(ArrowArrayStream* self, F&& f) {
    auto& stream = *static_cast<Stream*>(self->private_data);
    const Status status = caught([&] { return f(stream); });
    if (!status.ok()) stream.error = status.ToString();
    return errno_of(status);
  }
};

}  // namespace

void export_stream(std::shared_ptr<::arrow::RecordBatchReader> reader, ArrowArrayStream* out) {
  *out = {};
  out->private_data = new Stream{std::move(reader), {}};
  out->get_schema = [](ArrowArrayStream* self, ArrowSchema* schema) {
    return Stream::call(self, [&](Stream& stream) {
      *schema = export_schema(*stream.reader->schema());
      return Status::OK();
    });
  };
  out->get_next = [](ArrowArrayStream* self, ArrowArray* batch) {
    return Stream::call(self, [&](Stream& stream) {
      std::shared_ptr<::arrow::RecordBatch> next;
      ARROW_RETURN_NOT_OK(stream.reader->ReadNext(&next));
      *batch = next ? export_batch(*next) : ArrowArray{};
      return Status::OK();
    });
  };
  out->get_last_error = [](ArrowArrayStream* self) {
    const auto& stream = *static_cast<const Stream*>(self->private_data);
    return stream.error.empty() ? nullptr : stream.error.c_str();
  };
  out->release = [](ArrowArrayStream* self) {
    delete static_cast<Stream*>(self->private_data);
    self->release = nullptr;
  };
}

}  // namespace tercel::arrow_module

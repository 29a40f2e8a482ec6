#include <cerrno>
#include <string>

#include "tercel/data/arrow_owned_impl.h"
#include "tercel/util/error.h"
#include "tercel/util/format.h"

namespace tercel::data {

void fail_arrow_memory(std::string_view owner, std::string_view reason) {
  throw_error<OutOfMemoryError>({owner, ": Arrow: ", reason, "; TERCEL_ARROW_MEMORY sets the limit, in bytes"});
}

void ArrowStream::check(int code, std::string_view owner) {
  if (code == 0) return;
  const char* text = stream_.get_last_error ? stream_.get_last_error(&stream_) : nullptr;
  const std::string reason = text ? printable(text) : str_cat({"error ", code});
  if (code == ENOMEM && taken_) throw_error<OutOfMemoryError>({owner, ": Arrow: ", reason});
  if (code == ENOMEM) fail_arrow_memory(owner, reason);
  throw_error<DataError>({owner, ": Arrow: ", reason});
}

void ArrowStream::take(ArrowArrayStream* stream, std::string_view owner) {
  reset();
  TERCEL_CHECK(stream && stream->release, DataError, owner,
               ": expected an Arrow stream, found one that was released: it can be read once");
  stream_ = *stream;
  taken_ = true;
  stream->release = nullptr;
  TERCEL_CHECK(stream_.get_schema && stream_.get_next, DataError, owner,
               ": expected an Arrow stream with get_schema and get_next, found one without");
}

bool ArrowStream::next(ArrowArray* out, std::string_view owner) {
  out->release = nullptr;
  check(stream_.get_next(&stream_, out), owner);
  return out->release != nullptr;
}

void ArrowStream::get_schema(ArrowSchema* out, std::string_view owner) {
  out->release = nullptr;
  check(stream_.get_schema(&stream_, out), owner);
  TERCEL_CHECK(out->release, DataError, owner, ": expected the schema of an Arrow stream, found one that was released");
}

}  // namespace tercel::data

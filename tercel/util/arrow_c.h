// The structs of the Arrow C data and stream interfaces.
//
// They are those of https://arrow.apache.org/docs/format/CDataInterface.html, with their names, layout and meaning; a
// pointer to ours may be cast to one of theirs.
#pragma once

#include <cstdint>

namespace tercel {

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

static_assert(sizeof(ArrowSchema) == 72 && sizeof(ArrowArray) == 80 && sizeof(ArrowArrayStream) == 40);

}  // namespace tercel

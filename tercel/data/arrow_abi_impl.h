// The border between the library and the module libtercel_arrow.so, which alone knows Arrow. Private.
//
// Note [Arrow module]
// Arrow is 60 MB, and its C++ interface changes with each major version. So the library does not link it: what needs it
// is a module that is loaded when the first Parquet file is opened. Only plain structs and function pointers cross the
// border; exceptions do not. Data crosses it in the structs of the Arrow C interface. Library and module are built
// together: kArrowAbiVersion changes with any struct here.
#pragma once

#include <cstdint>

#include "tercel/util/arrow_c.h"

namespace tercel::data {

constexpr int32_t kArrowAbiVersion = 2;
/** The module's only symbol, of type ArrowEntry. */
constexpr const char* kArrowEntry = "tercel_arrow_api";

enum class ArrowCode : int32_t {
  Ok = 0,
  Data = 1,         // the bytes of a file violate its format
  Memory = 2,       // the limit of the memory pool, or the system's
  Io = 3,           // a callback failed: the caller knows why
  Unsupported = 4,  // such as a codec that this Arrow was built without
};

/** Why a function failed, with a zero at the end. */
struct ArrowFailure {
  char text[1024];
};

/** A file to be read. The callback may be called by several threads; it returns the bytes read, or -1. */
struct ArrowInput {
  void* context;
  int64_t size;
  int64_t (*read_at)(void* context, void* out, int64_t bytes, int64_t offset);
};

/** A file to be written, in order. The callback returns 0, or -1. */
struct ArrowOutput {
  void* context;
  int32_t (*write)(void* context, const void* data, int64_t bytes);
};

struct ArrowWriteOptions {
  const char* codec;  // "none", "snappy", "gzip", "brotli", "zstd", "lz4"
  int64_t row_group_rows;
  int32_t dictionary;  // 1: columns with few different values are dictionary-encoded
};

/** What a URL of an object store names. */
struct ArrowStoreInfo {
  int32_t kind;      // 0: nothing, 1: a file, 2: a folder
  int64_t size;      // bytes of a file
  int64_t mtime_ns;  // of a file, since 1970
};

struct ArrowStoreFile;      // the module's: an open file of an object store
struct ArrowParquetFile;    // the module's: the metadata of a Parquet file
struct ArrowParquetWriter;  // the module's

/** Functions that return a code describe failures in the last argument. */
struct ArrowApi {
  int32_t abi_version;
  int32_t arrow_major;
  const char* arrow_version;  // of the library that was loaded

  /** Bytes that all readers and writers may hold at a time. */
  void (*set_memory_limit)(int64_t bytes);

  /** Reads the metadata. The input is not used after the call. */
  ArrowCode (*open_file)(const ArrowInput* input, ArrowParquetFile** out, ArrowFailure* failure);
  void (*close_file)(ArrowParquetFile* file);
  /**
   * Record batches of at most `batch_rows` rows of a row group, of the given leaf columns; decoded when they are asked
   * for, by the calling thread, which allocates no more than `largest_allocation` bytes at once. May be called by
   * several threads. The input is used until the stream is released.
   */
  ArrowCode (*read_row_group)(ArrowParquetFile* file, const ArrowInput* input, int32_t row_group, const int32_t* leaves,
                              int32_t leaf_count, int64_t batch_rows, int64_t largest_allocation, ArrowArrayStream* out,
                              ArrowFailure* failure);

  /** Takes ownership of the schema. The output is used until finish_writer() or close_writer(). */
  ArrowCode (*open_writer)(const ArrowOutput* output, ArrowSchema* schema, const ArrowWriteOptions* options,
                           ArrowParquetWriter** out, ArrowFailure* failure);
  /** Writes a struct array as rows; takes ownership of it. */
  ArrowCode (*write_rows)(ArrowParquetWriter* writer, ArrowArray* rows, ArrowFailure* failure);
  /** Writes the footer. */
  ArrowCode (*finish_writer)(ArrowParquetWriter* writer, ArrowFailure* failure);
  void (*close_writer)(ArrowParquetWriter* writer);

  // Object stores: "s3://bucket/key" and "gs://bucket/key". Credentials come from the environment, as users of the
  // stores' own tools expect. All may be called by several threads.
  ArrowCode (*store_info)(const char* url, ArrowStoreInfo* out, ArrowFailure* failure);
  /** Calls `add` with the name of each file and folder directly in a folder. */
  ArrowCode (*store_list)(const char* url, void* context, void (*add)(void* context, const char* name),
                          ArrowFailure* failure);
  /** Opens a file; `version` receives a number that another content of the same name does not have. */
  ArrowCode (*store_open)(const char* url, int64_t* size, uint64_t* version, ArrowStoreFile** out,
                          ArrowFailure* failure);
  ArrowCode (*store_read)(ArrowStoreFile* file, void* out, int64_t bytes, int64_t offset, int64_t* found,
                          ArrowFailure* failure);
  void (*store_close)(ArrowStoreFile* file);
};

using ArrowEntry = const ArrowApi* (*)();

}  // namespace tercel::data

// The module's table of functions: see Note [Arrow module].
#include <arrow/config.h>
#include <arrow/device.h>
#include <arrow/util/config.h>

#include "tercel/arrow/arrow_io_impl.h"
#include "tercel/util/export.h"

namespace tercel::arrow_module {

namespace {

void set_memory_limit(int64_t bytes) { pool().set_limit(bytes); }

/**
 * Makes what Arrow makes when it is first used: the host calls this while no process can be forked, and a child that
 * was forked in the middle of it would wait for ever.
 */
void initialize_arrow() {
  pool();
  static_cast<void>(::arrow::default_cpu_memory_manager());
}

}  // namespace

extern "C" TERCEL_API const data::ArrowApi* tercel_arrow_api() {
  initialize_arrow();
  static const data::ArrowApi api{data::kArrowAbiVersion,
                                  ::arrow::GetBuildInfo().version_major,
                                  ::arrow::GetBuildInfo().version_string.c_str(),
                                  set_memory_limit,
                                  open_file,
                                  close_file,
                                  read_row_group,
                                  open_writer,
                                  write_rows,
                                  finish_writer,
                                  close_writer,
                                  store_info,
                                  store_list,
                                  store_open,
                                  store_read,
                                  store_close};
  return &api;
}

}  // namespace tercel::arrow_module

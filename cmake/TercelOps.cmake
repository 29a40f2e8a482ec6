# Generates code from the table of ops before anything is compiled: methods of Tensor, out variants. See
# Note [The table of ops] in tercel/core/op.h.

tercel_find_package(Python3 python3 COMPONENTS Interpreter)

set(TERCEL_GENERATED ${PROJECT_BINARY_DIR}/generated)
set(TERCEL_GENERATED_HEADERS
  ${TERCEL_GENERATED}/tercel/core/tensor_methods.h ${TERCEL_GENERATED}/tercel/ops/out_variants.h)
set(TERCEL_GENERATED_LISTS
  ${TERCEL_GENERATED}/python/src/autocast_ops.inc ${TERCEL_GENERATED}/python/src/layout_any_ops.inc
  ${TERCEL_GENERATED}/python/src/layout_sparse_ops.inc)
set(TERCEL_GENERATED_OPS
  ${TERCEL_GENERATED}/tercel/ops/tensor_methods.cpp ${TERCEL_GENERATED}/tercel/ops/out_variants.cpp)

file(GLOB_RECURSE op_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tercel/ops/*.h)
set(op_tools ${PROJECT_SOURCE_DIR}/tools/make_ops.py ${PROJECT_SOURCE_DIR}/tools/op_headers.py
  ${PROJECT_SOURCE_DIR}/tools/public_headers.py)
add_custom_command(OUTPUT ${TERCEL_GENERATED_HEADERS} ${TERCEL_GENERATED_OPS} ${TERCEL_GENERATED_LISTS}
  COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/make_ops.py ${PROJECT_SOURCE_DIR} ${TERCEL_GENERATED}
  DEPENDS ${op_headers} ${op_tools} COMMENT "Reading the table of ops" VERBATIM)
# Every layer, and every kernel, depends on this target.
add_custom_target(tercel_op_table
  DEPENDS ${TERCEL_GENERATED_HEADERS} ${TERCEL_GENERATED_OPS} ${TERCEL_GENERATED_LISTS})

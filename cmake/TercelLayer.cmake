# tercel_layer(NAME <layer> [DEPS <lower layers>] [PRIVATE_LIBS <libraries>])
#
# Makes the target tercel_<layer>, a static library, from tercel/<layer>/**/*.cpp, and links it with the layers in DEPS.
# A layer whose folder has no sources creates no target but may be named in DEPS. Kernels
# (tercel/<layer>/cpu/*_kernels.cpp) are compiled once per instruction set: see TercelIsa.cmake. Sources in a folder
# named cuda belong to the layer when TERCEL_CUDA is on.
#
# Upward links are errors: a layer may name only strictly lower ones, and io, data and distributed none above core.

include(${CMAKE_CURRENT_LIST_DIR}/TercelIsa.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/TercelPresets.cmake)

# tools/check_layers.py reads this order and checks includes against it.
# arrow and mpi are modules that are loaded, not linked (TercelArrow.cmake, TercelMpi.cmake): they include only the
# borders in data and distributed.
set(TERCEL_LAYER_ORDER util:0 core:10 autograd:20 ops:30 nn:40 optim:40 io:40 data:40 distributed:40 arrow:45 mpi:45
    recsys:50 cli:60)
set(TERCEL_CORE_ONLY_LAYERS io data distributed)

function(tercel_layer_rank layer result)
  foreach(entry IN LISTS TERCEL_LAYER_ORDER)
    if(entry MATCHES "^${layer}:([0-9]+)$")
      set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "tercel_layer: unknown layer '${layer}'; the layers are ${TERCEL_LAYER_ORDER}")
endfunction()

# Refuses a DEPS entry that is not strictly lower than the layer.
function(tercel_check_layer_deps layer)
  tercel_layer_rank(${layer} rank)
  foreach(dep IN LISTS ARGN)
    tercel_layer_rank(${dep} dep_rank)
    if(NOT dep_rank LESS rank)
      message(FATAL_ERROR "tercel_layer: upward link refused: ${layer} (${rank}) -> ${dep} (${dep_rank})")
    endif()
    if(layer IN_LIST TERCEL_CORE_ONLY_LAYERS AND NOT dep MATCHES "^(util|core)$")
      message(FATAL_ERROR "tercel_layer: upward link refused: ${layer} may link util and core only, not ${dep}")
    endif()
  endforeach()
endfunction()

function(tercel_layer)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" NAME "DEPS;PRIVATE_LIBS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES OR NOT arg_NAME)
    message(FATAL_ERROR "tercel_layer: expected NAME, DEPS, PRIVATE_LIBS; found '${ARGN}'")
  endif()
  tercel_check_layer_deps(${arg_NAME} ${arg_DEPS})

  set(folder ${PROJECT_SOURCE_DIR}/tercel/${arg_NAME})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${folder}/*.cu)
  set(kernels ${sources})
  list(FILTER kernels INCLUDE REGEX "/cpu/[^/]*_kernels\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "/cpu/[^/]*_kernels\\.cpp$")
  if(TERCEL_CUDA)
    list(APPEND sources ${cuda_sources})
  else()
    list(FILTER sources EXCLUDE REGEX "/${arg_NAME}/([^/]*/)*cuda/")
  endif()
  if(arg_NAME STREQUAL ops)
    list(APPEND sources ${TERCEL_GENERATED_OPS})
  endif()
  if(arg_NAME STREQUAL recsys)
    tercel_presets(presets)
    list(APPEND sources ${presets})
  endif()
  if(arg_NAME STREQUAL util)
    list(APPEND sources ${PROJECT_BINARY_DIR}/generated/version.cpp)
  endif()
  if(NOT sources AND NOT kernels)
    return()
  endif()

  set(target tercel_${arg_NAME})
  add_library(${target} STATIC EXCLUDE_FROM_ALL ${sources})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  add_dependencies(${target} tercel_op_table)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:tercel_code> ${arg_PRIVATE_LIBS})
  if(arg_NAME STREQUAL util)
    target_link_libraries(${target} PRIVATE Threads::Threads)
  endif()
  foreach(dep IN LISTS arg_DEPS)
    if(TARGET tercel_${dep})
      target_link_libraries(${target} PUBLIC tercel_${dep})
    endif()
  endforeach()
  if(kernels)
    tercel_isa_kernels(${arg_NAME} "${kernels}" "${arg_PRIVATE_LIBS}")
  endif()
  set_property(GLOBAL APPEND PROPERTY TERCEL_LAYERS ${arg_NAME})
endfunction()

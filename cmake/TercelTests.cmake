# tests/<layer>/*.cpp make the program test_<layer>, linked with that layer and those below it alone.
# CTest has one entry per suite (see ListSuites.cmake); a suite with "Threads" in its name has the label `threads` and
# runs under ThreadSanitizer too. There, test files without such a suite are not compiled. The ops suites run once per
# instruction set. The target test_programs builds all of them.

tercel_find_package(GTest libgtest-dev)
tercel_find_package(rapidcheck librapidcheck-dev CONFIG)

set(tercel_test_environment UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=allocator_may_return_null=1)

# An op without a conformance row does not compile.
function(tercel_op_rows test)
  file(GLOB_RECURSE read CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tercel/ops/*.h ${PROJECT_SOURCE_DIR}/tests/ops/*_rows.h)
  set(script ${PROJECT_SOURCE_DIR}/tools/check_op_rows.py)
  set(stamp ${PROJECT_BINARY_DIR}/tests/op_rows.stamp)
  add_custom_command(OUTPUT ${stamp}
    COMMAND Python3::Interpreter -B ${script} ${PROJECT_SOURCE_DIR}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${read} ${script} ${PROJECT_SOURCE_DIR}/tools/public_headers.py COMMENT "Looking for ops without a conformance row" VERBATIM)
  add_custom_target(op_rows DEPENDS ${stamp})
  add_dependencies(${test} op_rows)
endfunction()

add_custom_target(test_programs)

# Leaves those files of the list that have a suite for ThreadSanitizer, and what is no test, which they need; none if no
# file has one.
function(tercel_keep_thread_tests list)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${${list}})
  set(support ${${list}})
  list(FILTER support EXCLUDE REGEX "_test\\.cpp$")
  set(kept "")
  foreach(source IN LISTS ${list})
    file(STRINGS ${source} suites LIMIT_COUNT 1
      REGEX "^((TYPED_)?TEST(_[FP])?|RC_GTEST_(FIXTURE_)?PROP)\\([A-Za-z0-9_]*Threads")
    if(suites)
      list(APPEND kept ${source})
    endif()
  endforeach()
  if(kept)
    list(APPEND kept ${support})
  endif()
  set(${list} ${kept} PARENT_SCOPE)
endfunction()

function(tercel_layer_tests layer target)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${layer}/*.cpp)
  if(TERCEL_SANITIZE STREQUAL thread)
    tercel_keep_thread_tests(sources)
  endif()
  if(NOT sources OR NOT TARGET ${target})
    return()
  endif()
  set(test test_${layer})
  add_executable(${test} ${sources})
  target_link_libraries(${test} PRIVATE tercel_code ${target} GTest::gtest_main rapidcheck rapidcheck_gtest
    nlohmann_json::nlohmann_json ZLIB::ZLIB)
  set_target_properties(${test} PROPERTIES TERCEL_IS_TEST ON)
  add_dependencies(test_programs ${test})

  if(layer STREQUAL ops)
    tercel_op_rows(${test})
  endif()
  if(TARGET tercel_arrow AND layer MATCHES "^(data|cli)$")
    add_dependencies(${test} tercel_arrow)
  endif()
  if(TARGET tercel_mpi AND layer MATCHES "^(distributed|cli)$")
    add_dependencies(${test} tercel_mpi)
  endif()

  set(environment ${tercel_test_environment})
  # Reads of uninitialised memory are to fail. Not for cli, whose tests measure how much memory the program touches.
  if(NOT layer STREQUAL cli)
    list(APPEND environment TERCEL_POISON_MEMORY=1)
  endif()
  if(TARGET tercel_program AND layer STREQUAL cli)
    list(APPEND environment TERCEL_PROGRAM=$<TARGET_FILE:tercel_program>)
    add_dependencies(${test} tercel_program)
  endif()
  set(isas "")
  if(layer STREQUAL ops)
    set(isas ${TERCEL_ISAS})
  endif()
  set(list_file ${PROJECT_BINARY_DIR}/tests/${test}.cmake)
  file(GENERATE OUTPUT ${list_file} CONTENT
"set(layer ${layer})
set(program [[$<TARGET_FILE:${test}>]])
set(environment [[${environment}]])
set(isas [[${isas}]])
include([[${PROJECT_SOURCE_DIR}/cmake/ListSuites.cmake]])
")
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY TEST_INCLUDE_FILES ${list_file})
endfunction()

foreach(entry IN LISTS TERCEL_LAYER_ORDER)
  string(REGEX REPLACE ":.*" "" layer ${entry})
  tercel_layer_tests(${layer} tercel_${layer})
endforeach()

# The house's own rules.
file(GLOB build_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/build/*_test.cmake)
foreach(file IN LISTS build_tests)
  get_filename_component(name ${file} NAME_WE)
  add_test(NAME build.${name} COMMAND ${CMAKE_COMMAND} -P ${file})
  set_tests_properties(build.${name} PROPERTIES LABELS build)
endforeach()
file(GLOB tool_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/build/*_test.py)
foreach(file IN LISTS tool_tests)
  get_filename_component(name ${file} NAME_WE)
  add_test(NAME build.${name} COMMAND Python3::Interpreter -B ${file})
  set_tests_properties(build.${name} PROPERTIES LABELS build ENVIRONMENT
    "CXX=${CMAKE_CXX_COMPILER};LD=${TERCEL_LD};NM=${TERCEL_NM};OBJCOPY=${TERCEL_OBJCOPY}")
endforeach()
if(TARGET tercel_shared AND PROJECT_IS_TOP_LEVEL)
  add_test(NAME build.consumer COMMAND ${CMAKE_COMMAND}
    -DBUILD=${PROJECT_BINARY_DIR} -DSOURCE=${PROJECT_SOURCE_DIR} -DCXX=${CMAKE_CXX_COMPILER}
    -DGENERATOR=${CMAKE_GENERATOR} -P ${PROJECT_SOURCE_DIR}/tests/build/consumer.cmake)
  set_tests_properties(build.consumer PROPERTIES LABELS build)
endif()

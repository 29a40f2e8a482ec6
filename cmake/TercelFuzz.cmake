# fuzz/<thing>_fuzz.cpp: one libFuzzer program each; the seeds are in fuzz/corpus/<thing>/.

if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
  message(FATAL_ERROR "TERCEL_FUZZ needs clang (libFuzzer); the compiler is ${CMAKE_CXX_COMPILER_ID}")
endif()

file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/*_fuzz.cpp)
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  # Only the layers that the target includes, and their dependencies, are built for it: most parsers need no ops.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(STRINGS ${source} includes REGEX "^#include \"tercel/[a-z]+/")
  list(TRANSFORM includes REPLACE "^#include \"tercel/([a-z]+)/.*" "tercel_\\1")
  list(REMOVE_DUPLICATES includes)
  target_link_libraries(${name} PRIVATE tercel_code ${includes} ZLIB::ZLIB)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endforeach()

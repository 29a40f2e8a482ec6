# benchmarks/<thing>_bench.cpp: one program each, <thing>_bench. machine_limits.cpp measures the machine's limits.

tercel_find_package(benchmark libbenchmark-dev CONFIG)

add_library(tercel_limits STATIC ${PROJECT_SOURCE_DIR}/benchmarks/machine_limits.cpp)
target_link_libraries(tercel_limits PUBLIC tercel_code tercel)

file(GLOB bench_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/benchmarks/*_bench.cpp)
foreach(source IN LISTS bench_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE tercel_limits tercel_code tercel benchmark::benchmark)
endforeach()

# It holds every conformance row; the work is in the library.
set_source_files_properties(${PROJECT_SOURCE_DIR}/benchmarks/ops_bench.cpp PROPERTIES
  COMPILE_OPTIONS "$<$<CONFIG:Release>:-O1>")

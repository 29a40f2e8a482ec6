# The module libtercel_arrow.so (tercel/arrow), which alone links Arrow and Parquet: the library loads it when it first
# opens a Parquet file. See Note [Arrow module] in tercel/data/arrow_abi_impl.h.
#
# TERCEL_ARROW is AUTO (built where Arrow is found), ON (or configuring fails) or OFF. Arrow is a package that CMake finds,
# or the pyarrow of a Python: Python_EXECUTABLE, build/venv, python3.

set(TERCEL_ARROW AUTO CACHE STRING "Build the module that reads and writes Parquet: AUTO, ON or OFF")
set_property(CACHE TERCEL_ARROW PROPERTY STRINGS AUTO ON OFF)
# The oldest major version with the interface that tercel/arrow uses.
set(tercel_arrow_oldest 23)

# Sets tercel_arrow_{include,arrow,parquet,version} from the pyarrow of an interpreter, where it has one.
function(tercel_find_pyarrow python)
  execute_process(COMMAND ${python} -c "import pyarrow; print(pyarrow.get_include(), pyarrow.get_library_dirs()[0], sep='\\n')"
    OUTPUT_VARIABLE found RESULT_VARIABLE result ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT result EQUAL 0)
    return()
  endif()
  string(REPLACE "\n" ";" found "${found}")
  list(GET found 0 include)
  list(GET found 1 folder)
  file(STRINGS ${include}/arrow/util/config.h version REGEX "define ARROW_(SO_VERSION|VERSION_MAJOR) ")
  string(REGEX REPLACE ".*ARROW_VERSION_MAJOR ([0-9]+).*" "\\1" major "${version}")
  string(REGEX REPLACE ".*ARROW_SO_VERSION \"([0-9]+)\".*" "\\1" so_version "${version}")
  # By their full names: the wheel has no libarrow.so, and folders of other packages are not ours to write to.
  foreach(name IN ITEMS arrow parquet)
    if(NOT EXISTS ${folder}/lib${name}.so.${so_version})
      return()
    endif()
    set(tercel_arrow_${name} ${folder}/lib${name}.so.${so_version} PARENT_SCOPE)
  endforeach()
  set(tercel_arrow_include ${include} PARENT_SCOPE)
  set(tercel_arrow_major ${major} PARENT_SCOPE)
  set(tercel_arrow_so_version ${so_version} PARENT_SCOPE)
endfunction()

set(tercel_arrow_major 0)
# ThreadSanitizer cannot see what an Arrow without it synchronises.
if(TERCEL_ARROW AND NOT TERCEL_SANITIZE MATCHES thread)
  find_package(Arrow CONFIG QUIET)
  find_package(Parquet CONFIG QUIET)
  if(TARGET Arrow::arrow_shared AND TARGET Parquet::parquet_shared)
    set(tercel_arrow_major ${ARROW_VERSION_MAJOR})
    set(tercel_arrow_so_version ${ARROW_SO_VERSION})
    set(tercel_arrow_arrow Arrow::arrow_shared)
    set(tercel_arrow_parquet Parquet::parquet_shared)
  else()
    foreach(python IN ITEMS "${Python_EXECUTABLE}" ${PROJECT_SOURCE_DIR}/build/venv/bin/python "${Python3_EXECUTABLE}")
      if(NOT tercel_arrow_major AND EXISTS "${python}")
        tercel_find_pyarrow(${python})
      endif()
    endforeach()
  endif()
  if(tercel_arrow_major LESS tercel_arrow_oldest AND NOT TERCEL_ARROW STREQUAL AUTO)
    message(FATAL_ERROR "TERCEL_ARROW=${TERCEL_ARROW} needs Arrow and Parquet of version ${tercel_arrow_oldest} or later, "
      "found ${tercel_arrow_major} (0: none): pip install pyarrow, and set Python_EXECUTABLE, or install libarrow-dev and "
      "libparquet-dev")
  endif()
endif()

if(tercel_arrow_major GREATER_EQUAL tercel_arrow_oldest)
  file(GLOB arrow_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tercel/arrow/*.cpp)
  # What both sides of the border make structs of the C interface with.
  list(APPEND arrow_sources tercel/data/arrow_made.cpp)
  add_library(tercel_arrow MODULE ${arrow_sources})
  target_include_directories(tercel_arrow SYSTEM PRIVATE ${tercel_arrow_include})
  target_link_libraries(tercel_arrow PRIVATE ${tercel_arrow_parquet} ${tercel_arrow_arrow})
  # Without sanitizers, since Arrow has none: what crosses the border is checked on our side.
  target_include_directories(tercel_arrow PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(tercel_arrow PRIVATE $<TARGET_PROPERTY:tercel_base,INTERFACE_COMPILE_OPTIONS>)
  if(NOT TERCEL_SANITIZE)
    target_link_options(tercel_arrow PRIVATE LINKER:-z,defs)
  endif()
  # The library names the libraries that the module needs when they are missing.
  set_source_files_properties(tercel/data/arrow_module.cpp PROPERTIES COMPILE_DEFINITIONS
    "TERCEL_ARROW_MAJOR=${tercel_arrow_major};TERCEL_ARROW_SO_VERSION=\"${tercel_arrow_so_version}\"")
endif()

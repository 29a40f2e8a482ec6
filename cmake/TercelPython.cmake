# The Python package: the extension tercel._C, beside the package's Python files in build/<preset>/python/tercel, so that
# PYTHONPATH=build/<preset>/python imports what was just built. A wheel is the same target, installed (pyproject.toml).

# Not tercel_find_package: nanobind reads the variables that this sets.
find_package(Python COMPONENTS Interpreter Development.Module QUIET)
if(NOT Python_FOUND)
  message(FATAL_ERROR "TERCEL_PYTHON needs Python's headers: apt-get install python3-dev (or scripts/install-deps)")
endif()
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT ERROR_QUIET)
find_package(nanobind CONFIG QUIET)
if(NOT nanobind_FOUND)
  message(FATAL_ERROR "TERCEL_PYTHON needs nanobind for ${Python_EXECUTABLE}: pip install nanobind "
    "(scripts/python-env makes an environment that has it)")
endif()

# What the headers say of the ops is said in Python too.
file(GLOB_RECURSE op_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tercel/ops/*.h)
set(op_docs ${PROJECT_BINARY_DIR}/generated/python/src/op_docs.inc)
add_custom_command(OUTPUT ${op_docs}
  COMMAND Python::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/make_op_docs.py ${PROJECT_SOURCE_DIR} ${op_docs}
  DEPENDS ${op_headers} ${PROJECT_SOURCE_DIR}/tools/make_op_docs.py ${PROJECT_SOURCE_DIR}/tools/doc_lines.py
    ${PROJECT_SOURCE_DIR}/tools/op_headers.py ${PROJECT_SOURCE_DIR}/tools/public_headers.py
  COMMENT "Reading what the headers say of the ops" VERBATIM)

# The entries that only pass arguments to ops.
set(op_entries ${PROJECT_BINARY_DIR}/generated/python/src/op_entries.cpp)
add_custom_command(OUTPUT ${op_entries}
  COMMAND Python::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/make_op_entries.py ${PROJECT_SOURCE_DIR} ${op_entries}
  DEPENDS ${op_headers} ${PROJECT_SOURCE_DIR}/tools/make_op_entries.py ${PROJECT_SOURCE_DIR}/tools/op_headers.py
    ${PROJECT_SOURCE_DIR}/tools/public_headers.py
  COMMENT "Binding the table of ops" VERBATIM)

# The interpreter may well be newer than nanobind's sources expect of warnings: those are not ours.
nanobind_build_library(nanobind-static AS_SYSINCLUDE)

file(GLOB python_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/src/*.cpp)
add_library(tercel_python MODULE ${python_sources} ${op_docs} ${op_entries})
target_link_libraries(tercel_python PRIVATE tercel_code nanobind-static tercel nlohmann_json::nlohmann_json)
set(python_package ${PROJECT_BINARY_DIR}/python/tercel)
set_target_properties(tercel_python PROPERTIES
  PREFIX "" OUTPUT_NAME _C LIBRARY_OUTPUT_DIRECTORY ${python_package} SUFFIX ".${Python_SOABI}${CMAKE_SHARED_MODULE_SUFFIX}")
# Slots and getters are C functions of one type: the casts between them are how the interpreter is spoken to.
target_compile_options(tercel_python PRIVATE -Wno-cast-function-type)
# All that anyone asks of it is PyInit__C: whatever else the library exports stays inside, also for other extensions.
target_link_options(tercel_python PRIVATE LINKER:--exclude-libs,ALL)

file(GLOB_RECURSE python_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/python/tercel
  ${PROJECT_SOURCE_DIR}/python/tercel/*.py ${PROJECT_SOURCE_DIR}/python/tercel/py.typed
  ${PROJECT_SOURCE_DIR}/python/tercel/METADATA)
# Links of files that were removed since would be imported as modules.
file(GLOB_RECURSE python_links LIST_DIRECTORIES false RELATIVE ${python_package} ${python_package}/*.py)
foreach(file IN LISTS python_links)
  if(NOT file IN_LIST python_files)
    file(REMOVE ${python_package}/${file})
  endif()
endforeach()
foreach(file IN LISTS python_files)
  get_filename_component(folder ${python_package}/${file} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/tercel/${file} ${python_package}/${file} SYMBOLIC)
endforeach()

# Type stubs come from the signatures that the built module knows. An instrumented one wants its runtime loaded first.
set(python_stub_interpreter Python::Interpreter)
if(TERCEL_SANITIZE MATCHES address)
  set(python_asan_library libasan.so)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    set(python_asan_library libclang_rt.asan-x86_64.so)
  endif()
  foreach(name IN ITEMS ${python_asan_library} libstdc++.so)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${name} OUTPUT_STRIP_TRAILING_WHITESPACE
      OUTPUT_VARIABLE path)
    string(APPEND python_preload "${path} ")
  endforeach()
  set(python_stub_interpreter ${CMAKE_COMMAND} -E env "LD_PRELOAD=${python_preload}" ASAN_OPTIONS=detect_leaks=0
    $<TARGET_FILE:Python::Interpreter>)
endif()
set(python_stub ${python_package}/_C.pyi)
add_custom_command(TARGET tercel_python POST_BUILD
  COMMAND ${python_stub_interpreter} -B ${PROJECT_SOURCE_DIR}/tools/make_stubs.py ${python_package}
  BYPRODUCTS ${python_stub} COMMENT "Writing the type stubs of tercel._C" VERBATIM)

# The modules for Parquet and MPI are looked for in a folder beside the extension: in the package's own, they would look
# like modules of Python.
foreach(module IN ITEMS tercel_arrow tercel_mpi)
  if(TARGET ${module})
    add_dependencies(tercel_python ${module})
    file(MAKE_DIRECTORY ${python_package}/lib)
    file(CREATE_LINK ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/lib${module}.so ${python_package}/lib/lib${module}.so SYMBOLIC)
    install(TARGETS ${module} LIBRARY DESTINATION tercel/lib COMPONENT python)
  endif()
endforeach()

install(TARGETS tercel_python LIBRARY DESTINATION tercel COMPONENT python)
install(FILES ${python_stub} DESTINATION tercel COMPONENT python)

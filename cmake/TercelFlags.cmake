# Compiler and linker flags, as interface targets:
#   tercel_base     what every source of ours gets
#   tercel_code     base, optimisation by configuration and hardening: all code but kernels
#   tercel_kernels  base and what kernel files need (TercelIsa.cmake adds the instruction set)
# None of them reaches a user of the installed library.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

if(TERCEL_CCACHE AND PROJECT_IS_TOP_LEVEL)
  find_program(CCACHE_PROGRAM ccache)
  mark_as_advanced(CCACHE_PROGRAM)
  if(CCACHE_PROGRAM)
    # base_dir makes two checkouts, or two build folders, share their cached objects.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
endif()

set(tercel_cxx $<COMPILE_LANGUAGE:CXX>)

add_library(tercel_base INTERFACE)
target_include_directories(tercel_base INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
target_compile_options(tercel_base INTERFACE
  "$<${tercel_cxx}:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion>"
  "$<${tercel_cxx}:-ffp-contract=off;-ffunction-sections;-fdata-sections;-fno-semantic-interposition>")
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # GCC ivdep; | and & of masks, which are bools where an operand is one number
  target_compile_options(tercel_base INTERFACE "$<${tercel_cxx}:-Wno-unknown-pragmas;-Wno-bitwise-instead-of-logical>")
endif()
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(tercel_base INTERFACE $<${tercel_cxx}:-Werror>)
endif()
# __FILE__ in messages is relative to the source root; ccache turns the absolute path into a relative one first.
file(RELATIVE_PATH tercel_relative_root ${CMAKE_BINARY_DIR} ${PROJECT_SOURCE_DIR})
target_compile_options(tercel_base INTERFACE
  "$<${tercel_cxx}:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=;-ffile-prefix-map=${tercel_relative_root}/=>")
target_link_options(tercel_base INTERFACE LINKER:--gc-sections LINKER:--as-needed)

if(TERCEL_CUDA)
  target_compile_definitions(tercel_base INTERFACE TERCEL_CUDA=1)
  target_compile_options(tercel_base INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;--extended-lambda;-Xcompiler=-Wall,-Wextra>")
endif()

add_library(tercel_code INTERFACE)
target_link_libraries(tercel_code INTERFACE tercel_base)
add_library(tercel_kernels INTERFACE)
target_link_libraries(tercel_kernels INTERFACE tercel_base)

if(TERCEL_SANITIZE)
  set(tercel_sanitizers ${TERCEL_SANITIZE})
  if(tercel_sanitizers MATCHES undefined)
    string(APPEND tercel_sanitizers ",float-cast-overflow")
  endif()
  set(tercel_sanitizer_flags -fsanitize=${tercel_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_compile_options(tercel_code INTERFACE "$<${tercel_cxx}:${tercel_sanitizer_flags};-O1>")
  target_link_options(tercel_base INTERFACE ${tercel_sanitizer_flags})
  target_compile_options(tercel_kernels INTERFACE ${tercel_sanitizer_flags})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Instrumented, xsimd's reduction of angles looks uninitialized to g++ 12; without sanitizers the warning stays on.
    target_compile_options(tercel_kernels INTERFACE -Wno-maybe-uninitialized)
  endif()
  target_compile_definitions(tercel_code INTERFACE _GLIBCXX_ASSERTIONS)
  set(tercel_kernel_level -O1)
else()
  # Most of a test's time is its compilation.
  target_compile_options(tercel_code INTERFACE
    "$<$<AND:${tercel_cxx},$<CONFIG:Release>>:$<IF:$<BOOL:$<TARGET_PROPERTY:TERCEL_IS_TEST>>,-O1,-O2>;-fstack-protector-strong>")
  target_compile_definitions(tercel_code INTERFACE
    $<$<CONFIG:Release>:_FORTIFY_SOURCE=2> $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
  target_link_options(tercel_base INTERFACE LINKER:-z,relro LINKER:-z,now)
  # The generic kernels are for processors of before 2013: there half a megabyte counts more than the last tenth of speed.
  set(tercel_kernel_level
    "$<IF:$<BOOL:$<TARGET_PROPERTY:TERCEL_SMALL_KERNELS>>,-O2;-ftree-vectorize;$<$<CXX_COMPILER_ID:GNU>:-fvect-cost-model=dynamic>,-O3>")
endif()

# In every configuration: at -O2 plain loops are not vectorised, at -O0 intrinsics that want constants do not compile.
# Instrumented, -O1: the matrix product alone takes three minutes to compile with more.
target_compile_options(tercel_kernels INTERFACE ${tercel_kernel_level} -fno-math-errno -fno-trapping-math)

# Compiles the source for size in a release.
function(tercel_small source)
  if(NOT TERCEL_SANITIZE AND NOT TERCEL_FUZZ)
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-Os>")
  endif()
endfunction()

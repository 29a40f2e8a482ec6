# Tercel's dependencies. Public headers include none of them.

# Finds a package or stops with the command that installs it; `debian` is the package (or packages).
function(tercel_find_package name debian)
  find_package(${name} ${ARGN} QUIET)
  if(NOT ${name}_FOUND)
    string(REGEX REPLACE "[\r\n ]+" " " reason "${${name}_NOT_FOUND_MESSAGE}")
    message(FATAL_ERROR "Tercel needs ${name}: apt-get install ${debian} (or scripts/install-deps). ${reason}")
  endif()
endfunction()

tercel_find_package(SLEEF libsleef-dev)
tercel_find_package(xxHash libxxhash-dev)
tercel_find_package(ZLIB zlib1g-dev)
tercel_find_package(xsimd libxsimd-dev CONFIG)
# Debian's target xsimd links libxtl, which does not exist: xsimd is headers only.
add_library(tercel_xsimd INTERFACE)
target_include_directories(tercel_xsimd SYSTEM INTERFACE $<TARGET_PROPERTY:xsimd,INTERFACE_INCLUDE_DIRECTORIES>)
tercel_find_package(nlohmann_json nlohmann-json3-dev CONFIG)
set(THREADS_PREFER_PTHREAD_FLAG ON)
tercel_find_package(Threads libc6-dev)

# Libraries that programs linked with the static library need; tercelConfig.cmake finds them too.
set(TERCEL_LINK_PACKAGES SLEEF xxHash ZLIB Threads)
set(TERCEL_LINK_LIBRARIES SLEEF::SLEEF xxHash::xxHash ZLIB::ZLIB Threads::Threads)

if(TERCEL_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "TERCEL_CUDA needs nvcc, from the CUDA toolkit: put it in PATH or set CUDACXX")
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    # CMake before 3.26 does not know that nvcc 12 and later can.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  tercel_find_package(CUDAToolkit "the CUDA toolkit")
  list(APPEND TERCEL_LINK_PACKAGES CUDAToolkit)
  list(APPEND TERCEL_LINK_LIBRARIES CUDA::cudart_static)
endif()
